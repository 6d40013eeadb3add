#include "recommend/belief.h"
#include "testing/testing.h"

#include <math.h>
#include <stdbool.h>

static bool is_near(double left, double right)
{
    return fabs(left - right) < 1e-12;
}

/* One number of variance 1, seen as 3 with variance 1: half of the way, half of the variance. */
static void an_observation_as_sure_as_the_prior_moves_it_half(void **state)
{
    (void)state;
    struct belief belief = {.count = 0};
    const struct belief_term term = {belief_add(&belief, (struct estimate){1, 1}), 1};
    const double likelihood = belief_observe(&belief, &term, 1, 3, 1);
    const struct estimate told = belief_estimate(&belief, &term, 1);
    assert_true(is_near(told.mean, 2));
    assert_true(is_near(told.variance, 0.5));
    assert_true(is_near(likelihood, -0.5 * (log(2) + 2)));
}

/* x + y = 4 is surely seen: each moves by its share, and their difference is as unsure as before.
 */
static void a_sum_ties_what_it_is_made_of(void **state)
{
    (void)state;
    struct belief belief = {.count = 0};
    const uint32_t x = belief_add(&belief, (struct estimate){0, 3});
    const uint32_t y = belief_add(&belief, (struct estimate){0, 1});
    const struct belief_term sum[] = {{x, 1}, {y, 1}};
    const struct belief_term apart[] = {{x, 1}, {y, -3}};
    belief_observe(&belief, sum, 2, 4, 1e-12);
    assert_true(fabs(belief.mean[x] - 3) < 1e-9);
    assert_true(fabs(belief.mean[y] - 1) < 1e-9);
    assert_true(belief_estimate(&belief, sum, 2).variance < 1e-11);
    assert_true(fabs(belief_estimate(&belief, apart, 2).variance - 12) < 1e-9);
}

static void the_order_of_observations_does_not_matter(void **state)
{
    (void)state;
    const struct belief_term first[] = {{0, 1}, {1, 2}}, second[] = {{1, 1}, {2, -1}};
    struct estimate told[2];
    for (int turn = 0; turn < 2; turn++) {
        struct belief belief = {.count = 0};
        for (int i = 0; i < 3; i++)
            belief_add(&belief, (struct estimate){i, 1 + i});
        if (turn == 0)
            belief_observe(&belief, first, 2, 7, 0.5);
        belief_observe(&belief, second, 2, -1, 0.25);
        if (turn == 1)
            belief_observe(&belief, first, 2, 7, 0.5);
        told[turn] = belief_estimate(&belief, first, 2);
    }
    assert_true(is_near(told[0].mean, told[1].mean));
    assert_true(is_near(told[0].variance, told[1].variance));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observation_as_sure_as_the_prior_moves_it_half),
        cmocka_unit_test(a_sum_ties_what_it_is_made_of),
        cmocka_unit_test(the_order_of_observations_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
