#include "sim/outcome.h"
#include "testing/testing.h"

static bool is_near(double value, double expected)
{
    return value > expected - 1e-9 && value < expected + 1e-9;
}

TEST(gini_is_zero_for_equals_and_near_one_for_a_single_owner)
{
    double equal[] = {3, 3, 3, 3};
    assert_true(is_near(outcome_gini(equal, 4), 0));
    double single[] = {0, 10, 0, 0};
    assert_true(is_near(outcome_gini(single, 4), 0.75));
    double mixed[] = {4, 1, 3, 2};
    assert_true(is_near(outcome_gini(mixed, 4), 0.25));
    double nothing[] = {0, 0};
    assert_true(is_near(outcome_gini(nothing, 2), 0));
}

TEST(quantiles_lie_between_their_neighbours)
{
    double values[] = {5, 1, 4, 2, 3};
    assert_true(is_near(outcome_quantile(values, 5, 0.5), 3));
    assert_true(is_near(outcome_quantile(values, 5, 0.1), 1.4));
    assert_true(is_near(outcome_quantile(values, 5, 1), 5));
    assert_true(is_near(outcome_quantile(values, 0, 0.5), 0));
}

TEST(the_daily_move_is_against_the_same_slot_a_day_before)
{
    const double steady[] = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4};
    assert_true(is_near(outcome_day_move(steady, 12), 0));
    const double rising[] = {1, 2, 3, 4, 1.1, 2.2, 3.3, 4.4};
    assert_true(is_near(outcome_day_move(rising, 8), 0.1));
    assert_true(is_near(outcome_day_move(rising, 3), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gini_is_zero_for_equals_and_near_one_for_a_single_owner),
        cmocka_unit_test(quantiles_lie_between_their_neighbours),
        cmocka_unit_test(the_daily_move_is_against_the_same_slot_a_day_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
