/* What the meter counts, for whom, and what it adds up to at a slot's end. */
#include "market/fixed.h"
#include "market/price_meter.h"
#include "testing/testing.h"

#define HOUR_MS INT64_C(3600000)

static struct price_usage cores(int64_t count, int64_t hours)
{
    return price_usage_of((struct price_units){.core_milli = count * 1000}, hours * HOUR_MS);
}

static struct price_inputs core_inputs(const struct price_meter *meter)
{
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    price_meter_inputs(meter, inputs);
    return inputs[PRICE_CORE];
}

TEST(an_empty_meter_counts_nothing_and_one_borrower_s_voice)
{
    struct price_meter meter;
    price_meter_init(&meter);
    assert_true(price_meter_is_empty(&meter));
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    price_meter_inputs(&meter, inputs);
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        assert_int_equal(inputs[r].wanted_milli_s, 0);
        assert_int_equal(inputs[r].offered_milli_s, 0);
        assert_int_equal(inputs[r].borrower_count, 0);
        assert_int_equal(inputs[r].effective_q16, FIXED_Q16_ONE);
    }
    price_meter_done(&meter);
}

TEST(borrowers_of_equal_size_count_as_many_as_they_are)
{
    struct price_meter meter;
    price_meter_init(&meter);
    for (uint64_t id = 1; id <= 7; id++)
        for (int part = 0; part < 3; part++)
            price_meter_want(&meter, id, cores(2, 1));
    price_meter_offer(&meter, cores(8, 6));
    const struct price_inputs inputs = core_inputs(&meter);
    assert_int_equal(inputs.wanted_milli_s, INT64_C(7) * 3 * 2000 * 3600);
    assert_int_equal(inputs.offered_milli_s, INT64_C(8000) * 6 * 3600);
    assert_int_equal(inputs.borrower_count, 7);
    assert_int_equal(inputs.effective_q16, 7 * FIXED_Q16_ONE);
    price_meter_done(&meter);
}

TEST(a_whale_among_small_ones_is_hardly_more_than_one)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_want(&meter, 1, cores(90, 6));
    for (uint64_t id = 2; id <= 11; id++)
        price_meter_want(&meter, id, cores(1, 6));
    /* (90 + 10)^2 / (8100 + 10) = 1.2330 */
    assert_int_equal(core_inputs(&meter).effective_q16, 10000 * FIXED_Q16_ONE / 8110);
    price_meter_done(&meter);
}

TEST(resources_are_counted_apart)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_want(
        &meter, 1, price_usage_of((struct price_units){.core_milli = 500, .ram_milli = 250}, 1500));
    price_meter_want(&meter, 2, price_usage_of((struct price_units){.gpu_milli = 1000}, 999));
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    price_meter_inputs(&meter, inputs);
    assert_int_equal(inputs[PRICE_CORE].wanted_milli_s, 750);
    assert_int_equal(inputs[PRICE_RAM].wanted_milli_s, 375);
    assert_int_equal(inputs[PRICE_GPU].wanted_milli_s, 999);
    assert_int_equal(inputs[PRICE_DISK].wanted_milli_s, 0);
    assert_int_equal(inputs[PRICE_CORE].borrower_count, 1);
    assert_int_equal(inputs[PRICE_GPU].borrower_count, 1);
    price_meter_done(&meter);
}

TEST(what_a_lender_rents_itself_is_taken_back_in_any_order)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_unoffer(&meter, cores(3, 2));
    assert_int_equal(core_inputs(&meter).offered_milli_s, 0);
    price_meter_offer(&meter, cores(4, 6));
    assert_int_equal(core_inputs(&meter).offered_milli_s, INT64_C(18) * 1000 * 3600);
    price_meter_done(&meter);
}

TEST(a_spread_job_counts_evenly_and_no_more_than_it_was)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_spread(&meter, 10, 1, cores(1, 10), 3, true);
    int64_t sum = 0;
    for (int slot = 0; slot < 3; slot++) {
        const int64_t part = core_inputs(&meter).wanted_milli_s;
        assert_int_equal(part, INT64_C(10) * 1000 * 3600 / 3);
        sum += part;
        price_meter_next_slot(&meter, NULL, NULL);
    }
    assert_int_equal(sum, INT64_C(10) * 1000 * 3600);
    assert_true(price_meter_is_empty(&meter));
    price_meter_done(&meter);
}

TEST(a_remainder_is_not_lost)
{
    struct price_meter meter;
    price_meter_init(&meter);
    const struct price_usage ten = {.milli_s = {10, 0, 0, 0}};
    price_meter_spread(&meter, 10, 1, ten, 4, true);
    int64_t sum = 0;
    for (int slot = 0; slot < 4; slot++) {
        sum += core_inputs(&meter).wanted_milli_s;
        price_meter_next_slot(&meter, NULL, NULL);
    }
    assert_int_equal(sum, 10);
    price_meter_done(&meter);
}

TEST(a_job_that_ended_early_goes_on_counting_what_it_really_used)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_spread(&meter, 10, 1, cores(1, 16), 4, true); /* four hours a slot */
    price_meter_next_slot(&meter, NULL, NULL);
    price_meter_spread_ended(&meter, 10, cores(1, 9)); /* eight are counted, one is left */
    assert_int_equal(core_inputs(&meter).wanted_milli_s, INT64_C(4) * 1000 * 3600);
    price_meter_next_slot(&meter, NULL, NULL);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 1800);
    price_meter_next_slot(&meter, NULL, NULL);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 1800);
    price_meter_next_slot(&meter, NULL, NULL);
    assert_true(price_meter_is_empty(&meter));
    /* Less used than counted: nothing more is counted, nothing taken back. */
    price_meter_spread(&meter, 11, 1, cores(1, 4), 2, true);
    price_meter_spread_ended(&meter, 11, cores(1, 1));
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 7200);
    price_meter_next_slot(&meter, NULL, NULL);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 0);
    price_meter_spread_ended(&meter, 99, cores(1, 1)); /* not spread: nothing happens */
    price_meter_done(&meter);
}

TEST(cancelled_time_counts_for_nobody)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_spread(&meter, 10, 1, cores(4, 6), 2, true);
    price_meter_spread(&meter, 11, 2, cores(1, 6), 2, true);
    price_meter_spread_cancelled(&meter, 10);
    const struct price_inputs inputs = core_inputs(&meter);
    assert_int_equal(inputs.wanted_milli_s, INT64_C(3) * 1000 * 3600);
    assert_int_equal(inputs.borrower_count, 1);
    assert_int_equal(inputs.effective_q16, FIXED_Q16_ONE);
    price_meter_spread_cancelled(&meter, 10);
    price_meter_done(&meter);
}

static bool is_odd(const void *context, uint64_t job)
{
    assert_null(context);
    return job % 2 == 1;
}

TEST(a_slot_that_is_too_dear_does_not_count_and_is_not_made_up_for)
{
    struct price_meter meter;
    price_meter_init(&meter);
    price_meter_spread(&meter, 10, 1, cores(1, 4), 4, true);
    price_meter_spread(&meter, 11, 2, cores(1, 4), 4, false);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 3600);
    assert_int_equal(core_inputs(&meter).borrower_count, 1);
    price_meter_next_slot(&meter, is_odd, NULL);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 3600);
    price_meter_spread_cancelled(&meter, 10); /* it has nothing in this slot to take back */
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 3600);
    price_meter_spread_ended(&meter, 11, cores(1, 4));
    price_meter_next_slot(&meter, NULL, NULL);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, 1000 * 3600);
    price_meter_done(&meter);
}

TEST(spreads_that_end_leave_the_others_their_turn)
{
    struct price_meter meter;
    price_meter_init(&meter);
    for (uint64_t job = 1; job <= 9; job++)
        price_meter_spread(&meter, job, job, cores(1, 12), job % 2 ? 1 : 2, true);
    price_meter_next_slot(&meter, NULL, NULL);
    const struct price_inputs inputs = core_inputs(&meter);
    assert_int_equal(inputs.borrower_count, 4);
    assert_int_equal(inputs.wanted_milli_s, INT64_C(4) * 6 * 1000 * 3600);
    price_meter_done(&meter);
}

TEST(a_copy_goes_its_own_way)
{
    struct price_meter meter, copy;
    price_meter_init(&meter);
    price_meter_want(&meter, 1, cores(1, 6));
    price_meter_spread(&meter, 10, 2, cores(2, 6), 2, true);
    price_meter_offer(&meter, cores(5, 6));
    price_meter_copy(&meter, &copy);
    price_meter_want(&copy, 3, cores(1, 1));
    price_meter_spread_cancelled(&copy, 10);
    price_meter_next_slot(&copy, NULL, NULL);
    assert_true(price_meter_is_empty(&copy));
    const struct price_inputs inputs = core_inputs(&meter);
    assert_int_equal(inputs.wanted_milli_s, INT64_C(12) * 1000 * 3600);
    assert_int_equal(inputs.offered_milli_s, INT64_C(30) * 1000 * 3600);
    assert_int_equal(inputs.borrower_count, 2);
    price_meter_next_slot(&meter, NULL, NULL);
    assert_int_equal(core_inputs(&meter).wanted_milli_s, INT64_C(6) * 1000 * 3600);
    price_meter_done(&copy);
    price_meter_done(&meter);
}

TEST(the_largest_sums_stop_at_their_maximum)
{
    struct price_meter meter;
    price_meter_init(&meter);
    const struct price_usage most = {
        .milli_s = {PRICE_USAGE_MILLI_S_MAX, PRICE_USAGE_MILLI_S_MAX, 1, 1}};
    for (uint64_t id = 1; id <= 1000; id++) {
        price_meter_want(&meter, id, most);
        price_meter_want(&meter, id, most);
        price_meter_offer(&meter, most);
    }
    const struct price_inputs inputs = core_inputs(&meter);
    assert_true(inputs.wanted_milli_s == PRICE_USAGE_MILLI_S_MAX);
    assert_true(inputs.offered_milli_s == PRICE_USAGE_MILLI_S_MAX);
    assert_int_equal(inputs.effective_q16, 1000 * FIXED_Q16_ONE);
    assert_true(price_inputs_are_valid(&inputs));
    const struct price_units huge = {.core_milli = INT64_C(20000000000)};
    assert_true(price_usage_of(huge, INT64_MAX / 8).milli_s[PRICE_CORE] == PRICE_USAGE_MILLI_S_MAX);
    price_meter_done(&meter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_meter_counts_nothing_and_one_borrower_s_voice),
        cmocka_unit_test(borrowers_of_equal_size_count_as_many_as_they_are),
        cmocka_unit_test(a_whale_among_small_ones_is_hardly_more_than_one),
        cmocka_unit_test(resources_are_counted_apart),
        cmocka_unit_test(what_a_lender_rents_itself_is_taken_back_in_any_order),
        cmocka_unit_test(a_spread_job_counts_evenly_and_no_more_than_it_was),
        cmocka_unit_test(a_remainder_is_not_lost),
        cmocka_unit_test(a_job_that_ended_early_goes_on_counting_what_it_really_used),
        cmocka_unit_test(cancelled_time_counts_for_nobody),
        cmocka_unit_test(a_slot_that_is_too_dear_does_not_count_and_is_not_made_up_for),
        cmocka_unit_test(spreads_that_end_leave_the_others_their_turn),
        cmocka_unit_test(a_copy_goes_its_own_way),
        cmocka_unit_test(the_largest_sums_stop_at_their_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
