/* Lengths and rounds worked out by hand, and against a plain way to the same. */
#include "base/random.h"
#include "exchange/robust.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 150 }; /* two blocks and a part of one */

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.9g where %.9g was expected", value, expected);
}

static struct robust_round *round_of(enum robust_kind kind, double trim, size_t count)
{
    return robust_round_new(&(struct robust_options){kind, trim}, count);
}

static void add(struct robust_round *round, double weight, float first, float second)
{
    struct error error;
    ASSERT_OK(robust_round_add(round, (const float[]){first, second}, weight, &error));
}

static void assert_sum(struct robust_round *round, double first, double second)
{
    float sum[2];
    robust_round_sum(round, sum);
    assert_near((double)sum[0], first, 1e-5);
    assert_near((double)sum[1], second, 1e-5);
}

TEST(names_are_read_and_written)
{
    struct error error;
    for (enum robust_kind kind = 0; kind < ROBUST_KIND_COUNT; kind++) {
        enum robust_kind read = ROBUST_KIND_COUNT;
        ASSERT_OK(robust_kind_parse(text_of(robust_kind_name(kind)), &read, &error));
        assert_int_equal(read, kind);
    }
    enum robust_kind read;
    ASSERT_FAILS(robust_kind_parse(TEXT("mean"), &read, &error), ERROR_INVALID);
}

TEST(the_median_of_three_is_the_middle_one_times_the_weights)
{
    AUTO(robust_round) struct robust_round *round = round_of(ROBUST_MEDIAN, 0, 2);
    add(round, 1, 1, -8);
    add(round, 1, 900000, 2);
    add(round, 1, 3, 4);
    assert_sum(round, 3 * 3, 3 * 2);
    robust_round_empty(round);
    assert_int_equal(robust_round_count(round), 0);
    for (int i = 0; i < 4; i++)
        add(round, 0.5, (float)i, -(float)i); /* of four: between the two in the middle */
    assert_sum(round, 2 * 1.5, 2 * -1.5);
}

TEST(rounds_of_one_and_two_are_their_mean)
{
    AUTO(robust_round) struct robust_round *round = round_of(ROBUST_TRIMMED, 0, 2);
    add(round, 2, 5, 7);
    assert_sum(round, 10, 14);
    add(round, 2, 7, 9);
    assert_sum(round, 24, 32);
    AUTO(robust_round) struct robust_round *unequal = round_of(ROBUST_MEDIAN, 0, 2);
    add(unequal, 3, 4, 0);
    add(unequal, 1, 0, 8);
    assert_sum(unequal, 12, 8);
}

TEST(trimming_leaves_out_at_least_one_at_each_end)
{
    AUTO(robust_round) struct robust_round *round = round_of(ROBUST_TRIMMED, 0.1, 2);
    add(round, 1, -100, 1);
    add(round, 1, 2, 2);
    add(round, 1, 4, 3);
    add(round, 1, 500, 400);
    assert_sum(round, 4 * 3, 4 * 2.5);
    AUTO(robust_round) struct robust_round *ten = round_of(ROBUST_TRIMMED, 0.3, 2);
    for (int i = 0; i < 10; i++)
        add(ten, 1, i < 3 ? -1e5F : 1, i < 3 ? 1e5F : 2);
    assert_sum(ten, 10, 20);
}

TEST(unequal_weights_are_weighed)
{
    AUTO(robust_round) struct robust_round *round = round_of(ROBUST_MEDIAN, 0, 2);
    add(round, 3, 1, 6);
    add(round, 1, 2, 5);
    add(round, 1, 3, 4);
    assert_sum(round, 5 * 1, 5 * 6); /* more than half lies at the first */
    AUTO(robust_round) struct robust_round *trimmed = round_of(ROBUST_TRIMMED, 0.2, 2);
    add(trimmed, 9, 1e6F, -1e6F);
    add(trimmed, 1, 2, 2);
    add(trimmed, 3, 6, 6);
    add(trimmed, 9, -1e6F, 1e6F);
    assert_sum(trimmed, 22 * 5, 22 * 5);
    AUTO(robust_round) struct robust_round *half = round_of(ROBUST_MEDIAN, 0, 2);
    add(half, 1, 1, 1);
    add(half, 1, 2, 2);
    add(half, 2, 4, 4);
    assert_sum(half, 4 * 3, 4 * 3); /* half of the weight lies on either side of 2 to 4 */
}

static int compare_floats(const void *left, const void *right)
{
    const float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

/* Any number of pushes, both ways of sorting, every place in a block. */
TEST(rounds_of_any_size_are_joined_as_a_plain_sort_would)
{
    static const size_t sizes[] = {3, 4, 5, 18, 48, 49, 130};
    static float pushes[130][COUNT];
    struct random random;
    random_init(&random, 7);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const size_t size = sizes[s];
        AUTO(robust_round) struct robust_round *median = round_of(ROBUST_MEDIAN, 0, COUNT);
        AUTO(robust_round) struct robust_round *trimmed = round_of(ROBUST_TRIMMED, 0.25, COUNT);
        struct error error;
        for (size_t i = 0; i < size; i++) {
            for (size_t p = 0; p < COUNT; p++)
                pushes[i][p] = (float)random_normal(&random);
            ASSERT_OK(robust_round_add(median, pushes[i], 1, &error));
            ASSERT_OK(robust_round_add(trimmed, pushes[i], 1, &error));
        }
        float medians[COUNT], means[COUNT];
        robust_round_sum(median, medians);
        robust_round_sum(trimmed, means);
        for (size_t p = 0; p < COUNT; p++) {
            float column[130];
            for (size_t i = 0; i < size; i++)
                column[i] = pushes[i][p];
            qsort(column, size, sizeof *column, compare_floats);
            const double middle = ((double)column[(size - 1) / 2] + (double)column[size / 2]) / 2;
            const size_t cut = size / 4 > 1 ? size / 4 : 1;
            double sum = 0;
            for (size_t i = cut; i < size - cut; i++)
                sum += (double)column[i];
            const double n = (double)size;
            assert_near((double)medians[p], n * middle, 1e-4 * n);
            assert_near((double)means[p], n * sum / (double)(size - 2 * cut), 1e-4 * n);
        }
    }
}

TEST(squares_are_summed_whatever_the_count)
{
    static float values[5000];
    for (size_t i = 0; i < 5000; i++)
        values[i] = (float)(i % 7) - 3;
    for (size_t count = 0; count <= 5000; count += count < 70 ? 1 : 617) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += (double)values[i] * (double)values[i];
        assert_near(robust_square_sum(values, count), sum, 1e-9);
    }
}

/* --- lengths --- */

static struct robust_norms *norms_of(uint32_t count, const double *values, double steps)
{
    static struct robust_norms norms;
    robust_norms_init(&norms);
    for (uint32_t i = 0; i < count; i++) {
        norms.norms[i] = values[i];
        norms.steps[i] = steps;
    }
    norms.worker_end = count;
    return &norms;
}

TEST(the_usual_length_is_the_median_over_the_workers)
{
    struct robust_norms *norms = norms_of(0, NULL, 1);
    assert_true(robust_norms_limit(norms, 1) == 0);
    norms = norms_of(3, (const double[]){1, 2, 1e9}, 1);
    assert_near(robust_norms_limit(norms, 1), 10 * 2, 1e-9);
    /* Nothing at all, of one in three, holds nobody down; nor the smaller of two. */
    norms = norms_of(3, (const double[]){0, 2, 3}, 1);
    assert_near(robust_norms_limit(norms, 1), 10 * 2, 1e-9);
    norms = norms_of(2, (const double[]){0, 3}, 1);
    assert_near(robust_norms_limit(norms, 1), 10 * 3, 1e-9);
    robust_norms_forget(norms, 1);
    assert_true(robust_norms_limit(norms, 1) == 0);
}

TEST(more_steps_may_go_further_up_to_what_is_credible)
{
    const struct robust_norms *norms = norms_of(3, (const double[]){1, 1, 1}, 1);
    assert_near(robust_norms_limit(norms, 16), 10 * 8, 1e-9);
    assert_near(robust_norms_limit(norms, 1000000), 10 * 8, 1e-9);
    norms = norms_of(3, (const double[]){1, 1, 1}, 100);
    assert_near(robust_norms_limit(norms, 100), 10, 1e-9);
    assert_near(robust_norms_limit(norms, 1), 10 / 8.0, 1e-9);
}

TEST(a_push_that_is_too_long_is_shortened_and_noted_so)
{
    static const float model[4] = {30, 40}; /* of length 50 */
    static const float nothing[4];
    struct robust_norms *norms = norms_of(0, NULL, 1);
    assert_near(robust_norms_take(norms, 7, 1, 500, model, 4), 0.1, 1e-9);
    assert_near(norms->norms[7], 50, 1e-9);
    assert_near(robust_norms_take(norms_of(0, NULL, 1), 0, 1, 4, nothing, 4), 0.5, 1e-9);
    norms = norms_of(3, (const double[]){1, 2, 3}, 1);
    assert_near(robust_norms_take(norms, 1, 1, 20, model, 4), 1, 0);
    /* However often it pushes, one of three moves the limit no further than the next. */
    for (int i = 0; i < 1000; i++)
        assert_true(robust_norms_take(norms, 1, 1, 1e9, model, 4) <= 30 / 1e9);
    assert_near(robust_norms_limit(norms, 1), 30, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(the_median_of_three_is_the_middle_one_times_the_weights),
        cmocka_unit_test(rounds_of_one_and_two_are_their_mean),
        cmocka_unit_test(trimming_leaves_out_at_least_one_at_each_end),
        cmocka_unit_test(unequal_weights_are_weighed),
        cmocka_unit_test(rounds_of_any_size_are_joined_as_a_plain_sort_would),
        cmocka_unit_test(squares_are_summed_whatever_the_count),
        cmocka_unit_test(the_usual_length_is_the_median_over_the_workers),
        cmocka_unit_test(more_steps_may_go_further_up_to_what_is_credible),
        cmocka_unit_test(a_push_that_is_too_long_is_shortened_and_noted_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
