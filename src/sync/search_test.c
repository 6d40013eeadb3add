/* Rewards and both searches against curves whose answer is known; covers reward.c. */
#include "sync/search.h"
#include "testing/testing.h"

#include <math.h>

static struct sync_reward reward_of(double l0, double l1, double l2, double gamma_s, double target)
{
    const struct sync_loss points[3] = {
        {0, l0}, {(int64_t)(0.5e9 * gamma_s), l1}, {(int64_t)(1e9 * gamma_s), l2}};
    return sync_reward_of(points, target);
}

TEST(the_reward_recovers_the_curve_it_was_made_from)
{
    /* l(t) = 1 / (0.02 t + 0.5) + 0.3 reaches 0.8 at t = 75 s. */
    const double l0 = 1 / 0.5 + 0.3, l1 = 1 / (0.02 * 30 + 0.5) + 0.3,
                 l2 = 1 / (0.02 * 60 + 0.5) + 0.3;
    const struct sync_reward reward = reward_of(l0, l1, l2, 60, 0.8);
    assert_true(reward.has_fit);
    assert_true(fabs(reward.fit - 1.0 / 75) < 1e-9);
}

TEST(a_curve_that_bends_down_has_no_fit)
{
    /* Its asymptote lies above the losses. */
    const struct sync_reward reward = reward_of(0.988, 0.963, 0.903, 60, 0.85);
    assert_false(reward.has_fit);
    assert_true(fabs(reward.slope - (0.988 - 0.903) / 60 / 0.988) < 1e-12);
}

TEST(rising_and_noisy_losses_have_only_a_slope)
{
    assert_false(reward_of(1.0, 1.1, 0.9, 60, 0.8).has_fit);
    assert_false(reward_of(1.0, 0.9, 1.2, 60, 0.8).has_fit);
    assert_true(reward_of(1.0, 0.9, 1.2, 60, 0.8).slope < 0);
    assert_false(reward_of(1.0, 0.9, 0.8, 60, 0.7).has_fit);
}

TEST(fit_and_slope_are_never_compared_with_each_other)
{
    const struct sync_reward fitted = {.has_fit = true, .fit = 100, .slope = 0.1};
    const struct sync_reward plain = {.has_fit = false, .slope = 0.2};
    assert_false(sync_reward_is_better(&fitted, &plain, 0));
    assert_true(sync_reward_is_better(&plain, &fitted, 0));
}

static void feed_slope(struct rate_search *search, double slope)
{
    rate_search_feed(search, &(struct sync_reward){.slope = slope});
}

TEST(the_paper_search_climbs_to_the_peak_and_stops)
{
    struct rate_search search;
    rate_search_begin(&search, SYNC_SEARCH_PAPER, 5, 100);
    assert_int_equal(search.candidate, 1);
    for (int i = 0; i < 50 && search.is_active; i++)
        feed_slope(&search, 10 - fabs((double)search.candidate - 4));
    assert_false(search.is_active);
    assert_int_equal(search.candidate, 4);
}

TEST(the_paper_search_stops_at_once_on_a_flattening_curve)
{
    struct rate_search search;
    rate_search_begin(&search, SYNC_SEARCH_PAPER, 5, 100);
    feed_slope(&search, 1.0);
    feed_slope(&search, 0.9);
    assert_false(search.is_active);
    assert_int_equal(search.candidate, 1);
}

/* The loss flattens with each period, whatever the rate; rate 16 is best. */
static uint32_t auto_search(uint32_t start)
{
    struct rate_search search;
    double level = 1;
    rate_search_begin(&search, SYNC_SEARCH_AUTO, start, 64);
    for (int i = 0; i < 50 && search.is_active; i++, level *= 0.95)
        feed_slope(&search, level / (1 + fabs(log2(search.candidate / 16.0))));
    assert_false(search.is_active);
    return search.candidate;
}

TEST(the_paired_search_finds_the_peak_though_the_curve_flattens)
{
    assert_int_equal(auto_search(4), 16);
    assert_int_equal(auto_search(16), 16);
    assert_int_equal(auto_search(64), 16);
}

TEST(an_abandoned_search_keeps_the_best_known_rate)
{
    struct rate_search search;
    rate_search_begin(&search, SYNC_SEARCH_AUTO, 8, 64);
    feed_slope(&search, 1);
    assert_int_equal(search.candidate, 16);
    rate_search_abandon(&search);
    assert_int_equal(search.candidate, 8);
    rate_search_begin(&search, SYNC_SEARCH_PAPER, 8, 64);
    feed_slope(&search, 1);
    rate_search_abandon(&search);
    assert_int_equal(search.candidate, 1);
}

TEST(a_search_that_is_off_keeps_the_rate)
{
    struct rate_search search;
    rate_search_begin(&search, SYNC_SEARCH_OFF, 7, 64);
    assert_false(search.is_active);
    assert_int_equal(search.candidate, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reward_recovers_the_curve_it_was_made_from),
        cmocka_unit_test(a_curve_that_bends_down_has_no_fit),
        cmocka_unit_test(rising_and_noisy_losses_have_only_a_slope),
        cmocka_unit_test(fit_and_slope_are_never_compared_with_each_other),
        cmocka_unit_test(the_paper_search_climbs_to_the_peak_and_stops),
        cmocka_unit_test(the_paper_search_stops_at_once_on_a_flattening_curve),
        cmocka_unit_test(the_paired_search_finds_the_peak_though_the_curve_flattens),
        cmocka_unit_test(an_abandoned_search_keeps_the_best_known_rate),
        cmocka_unit_test(a_search_that_is_off_keeps_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
