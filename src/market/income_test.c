#include "market/income.h"
#include "testing/testing.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

TEST(a_lease_is_spread_over_the_hours_it_was_paid_for_and_nothing_is_lost)
{
    struct income_bucket buckets[4] = {0};
    const struct income_axis axis = {.from_ms = 10 * HOUR_MS, .step_ms = HOUR_MS, .count = 4};
    income_spread(&axis, 10 * HOUR_MS + HOUR_MS / 2, 2 * HOUR_MS, 1001, buckets);
    assert_int_equal(buckets[0].earned_micro, 250);
    assert_int_equal(buckets[1].earned_micro, 500);
    assert_int_equal(buckets[2].earned_micro, 251);
    assert_int_equal(buckets[3].earned_micro, 0);
    assert_int_equal(buckets[0].busy_ms, HOUR_MS / 2);
    assert_int_equal(buckets[1].busy_ms, HOUR_MS);
    income_spread(&axis, 11 * HOUR_MS, HOUR_MS, 7, buckets); /* one more beside it */
    assert_int_equal(buckets[1].earned_micro, 507);
    assert_int_equal(buckets[1].busy_ms, 2 * HOUR_MS);
}

TEST(what_lies_outside_the_axis_is_left_out)
{
    struct income_bucket buckets[2] = {0};
    const struct income_axis axis = {.from_ms = 10 * HOUR_MS, .step_ms = HOUR_MS, .count = 2};
    income_spread(&axis, 8 * HOUR_MS, 2 * HOUR_MS, 100, buckets);
    income_spread(&axis, 12 * HOUR_MS, HOUR_MS, 100, buckets);
    income_spread(&axis, 11 * HOUR_MS, 0, 100, buckets);
    assert_int_equal(buckets[0].earned_micro + buckets[1].earned_micro, 0);
    income_spread(&axis, 9 * HOUR_MS, 4 * HOUR_MS, 400, buckets); /* from before to behind */
    assert_int_equal(buckets[0].earned_micro, 100);
    assert_int_equal(buckets[1].earned_micro, 100);
}

static struct income_wish two_cores(void)
{
    return (struct income_wish){
        .units = {.core_milli = 2000}, .until_ms = 30 * DAY_MS, .fee_basis_points = 1000};
}

static void set_past(struct income_past past[SLOT_PER_DAY], int64_t price_micro, int64_t used)
{
    for (int s = 0; s < SLOT_PER_DAY; s++)
        past[s] = (struct income_past){.price = {.core_micro = price_micro},
                                       .is_used_known = true,
                                       .used_milli = {[PRICE_CORE] = used}};
}

TEST(an_offer_that_is_always_open_earns_its_price_less_the_fee)
{
    struct income_past past[SLOT_PER_DAY];
    set_past(past, 100, 250);
    const struct income_wish wish = two_cores();
    const struct income_estimate estimate = income_estimate(&wish, past);
    assert_int_equal(estimate.full_micro, INT64_C(720) * 2 * 100 * 9 / 10);
    assert_int_equal(estimate.likely_micro, INT64_C(720) * 2 * 100 * 9 / 10 / 4);
    assert_true(estimate.is_likely_known);
    assert_int_equal(estimate.open_ms[0], 30 * 6 * HOUR_MS);
}

TEST(only_open_hours_count_each_at_its_own_price)
{
    struct income_past past[SLOT_PER_DAY];
    set_past(past, 100, 1000);
    past[3].price.core_micro = 300;
    const struct span evening = {.open_ms = 17 * HOUR_MS, .close_ms = 20 * HOUR_MS};
    struct income_wish wish = two_cores();
    wish.fee_basis_points = 0;
    wish.window = (struct window){&evening, 1};
    const struct income_estimate estimate = income_estimate(&wish, past);
    assert_int_equal(estimate.open_ms[2], HOUR_MS);
    assert_int_equal(estimate.open_ms[3], 2 * HOUR_MS);
    assert_int_equal(estimate.full_micro, 2 * 100 + 2 * 2 * 300);
}

TEST(where_the_minimum_is_above_the_price_nothing_is_counted)
{
    struct income_past past[SLOT_PER_DAY];
    set_past(past, 100, 1000);
    past[1].price.core_micro = 300;
    past[2].is_used_known = false;
    struct income_wish wish = two_cores();
    wish.minimum.core_micro = 200;
    wish.fee_basis_points = 0;
    const struct income_estimate estimate = income_estimate(&wish, past);
    assert_true(estimate.is_dear[0] && !estimate.is_dear[1] && estimate.is_dear[3]);
    assert_int_equal(estimate.full_micro, INT64_C(180) * 2 * 300);
    assert_false(estimate.is_likely_known);
    wish.units.core_milli = 10; /* also where an hour makes no difference of a microcredit */
    wish.minimum.core_micro = 301;
    assert_int_equal(income_estimate(&wish, past).full_micro, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_spread_over_the_hours_it_was_paid_for_and_nothing_is_lost),
        cmocka_unit_test(what_lies_outside_the_axis_is_left_out),
        cmocka_unit_test(an_offer_that_is_always_open_earns_its_price_less_the_fee),
        cmocka_unit_test(only_open_hours_count_each_at_its_own_price),
        cmocka_unit_test(where_the_minimum_is_above_the_price_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
