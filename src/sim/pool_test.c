/* covers pool.c, pool_hour.c, pool_offline.c, pool_price.c */
#include "sim/pool.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>

static struct workload *busy(uint64_t seed)
{
    AUTO(workload_traces) struct workload_traces *traces = workload_traces_invent(1);
    return workload_new(
        traces, &(struct workload_options){
                    .kind = WORKLOAD_SYNTHETIC, .load_milli = 1500, .seed = seed, .day_count = 14});
}

static double gain(const struct workload *workload, const struct pool_options *options)
{
    struct outcome outcome AUTO_OUTCOME;
    pool_run(workload, options, &outcome);
    return outcome_gain_micro(&outcome);
}

TEST(money_and_hours_add_up_under_every_rule)
{
    AUTO(workload) struct workload *workload = busy(3);
    for (int rule = 0; rule < POOL_RULE_COUNT; rule++) {
        struct outcome outcome AUTO_OUTCOME;
        pool_run(workload,
                 &(struct pool_options){.rule = (enum pool_rule)rule, .has_rush = true, .seed = 1},
                 &outcome);
        double lent = 0, spent = 0, worth = 0;
        for (size_t i = 0; i < outcome.member_count; i++) {
            lent += outcome.lent_micro[i];
            spent += outcome.spent_micro[i];
        }
        for (size_t i = 0; i < outcome.fate_count; i++) {
            const struct sim_job *job = &workload->jobs[i];
            assert_true(outcome.fates[i].run_h <= (double)job->run_s / 3600 + 1e-6);
            if (outcome.fates[i].is_finished)
                worth += (double)job->worth_micro * (double)job->run_s / 3600;
        }
        assert_true(lent > spent * 0.999999 - 1 && lent < spent * 1.000001 + 1);
        assert_true(worth > outcome.worth_micro * 0.999999 &&
                    worth < outcome.worth_micro * 1.000001);
        for (int i = 0; i < OUTCOME_RESOURCES; i++)
            assert_true(outcome.used_hours[i] <= outcome.there_hours[i] * 1.000001);
        assert_true(outcome.worth_micro > 0);
    }
}

TEST(a_truthful_auction_each_hour_beats_what_no_price_and_wrong_prices_reach)
{
    AUTO(workload) struct workload *workload = busy(3);
    const double best = gain(workload, &(struct pool_options){.rule = POOL_KDA});
    const double ours = gain(workload, &(struct pool_options){.rule = POOL_SOUK, .has_rush = true});
    assert_true(ours < best * 1.05);
    assert_true(ours > best * 0.80);
    assert_true(gain(workload, &(struct pool_options){.rule = POOL_FIRST_COME}) < ours);
    assert_true(gain(workload, &(struct pool_options){.rule = POOL_FIXED, .price_factor = 3}) <
                ours);
    assert_true(
        gain(workload, &(struct pool_options){.rule = POOL_FIXED, .price_factor = 1.0 / 3}) < ours);
    struct outcome offline AUTO_OUTCOME;
    pool_run_offline(workload, &offline);
    assert_true(outcome_gain_micro(&offline) > 0.9 * best);
}

TEST(a_run_repeats_to_the_last_bit)
{
    AUTO(workload) struct workload *workload = busy(8);
    const struct pool_options options = {.rule = POOL_RANDOM, .seed = 12};
    struct outcome first AUTO_OUTCOME, again AUTO_OUTCOME;
    pool_run(workload, &options, &first);
    pool_run(workload, &options, &again);
    assert_memory_equal(&first.worth_micro, &again.worth_micro, sizeof(double));
    assert_memory_equal(first.slot_price, again.slot_price, first.slot_count * sizeof(double));
}

TEST(scarcity_raises_the_price_and_idleness_lowers_it)
{
    AUTO(workload_traces) struct workload_traces *traces = workload_traces_invent(1);
    for (int64_t load = 300; load <= 3000; load += 2700) {
        AUTO(workload)
        struct workload *workload = workload_new(
            traces,
            &(struct workload_options){
                .kind = WORKLOAD_SYNTHETIC, .load_milli = load, .seed = 3, .day_count = 14});
        struct outcome outcome AUTO_OUTCOME;
        pool_run(workload, &(struct pool_options){.rule = POOL_SOUK}, &outcome);
        const double last = outcome.slot_price[40];
        assert_true(load == 300 ? last < 0.8 : last > 1.5);
    }
}

TEST(a_washed_machine_moves_the_price_but_serves_nobody)
{
    AUTO(workload) struct workload *workload = busy(3);
    struct outcome plain AUTO_OUTCOME, washed AUTO_OUTCOME;
    pool_run(workload, &(struct pool_options){.rule = POOL_SOUK}, &plain);
    for (size_t i = 0; i < workload->lender_count / 2; i++) {
        memset(workload->lenders[i].hours, LENDER_WASHES, (size_t)workload->hour_count);
        workload->lenders[i].washed_by = 1;
    }
    pool_run(workload, &(struct pool_options){.rule = POOL_SOUK}, &washed);
    assert_true(washed.lender_income_micro[0] == 0);
    double before = 0, after = 0;
    for (size_t i = 0; i < plain.slot_count; i++) {
        before += plain.slot_price[i];
        after += washed.slot_price[i];
    }
    assert_true(after > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(money_and_hours_add_up_under_every_rule),
        cmocka_unit_test(a_truthful_auction_each_hour_beats_what_no_price_and_wrong_prices_reach),
        cmocka_unit_test(a_run_repeats_to_the_last_bit),
        cmocka_unit_test(scarcity_raises_the_price_and_idleness_lowers_it),
        cmocka_unit_test(a_washed_machine_moves_the_price_but_serves_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
