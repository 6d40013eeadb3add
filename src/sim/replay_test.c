/* covers replay.c, replay_job.c, replay_market.c */
#include "sim/pool.h"
#include "sim/replay.h"
#include "testing/testing.h"

#include <string.h>

static struct workload *make(enum workload_kind kind, int64_t load_milli)
{
    AUTO(workload_traces) struct workload_traces *traces = workload_traces_invent(1);
    return workload_new(traces,
                        &(struct workload_options){
                            .kind = kind, .load_milli = load_milli, .seed = 4, .day_count = 4});
}

TEST(the_core_carries_every_workload_and_its_books_balance)
{
    for (int kind = 0; kind < WORKLOAD_KIND_COUNT; kind++) {
        struct error error;
        AUTO(workload) struct workload *workload = make((enum workload_kind)kind, 1200);
        struct outcome outcome AUTO_OUTCOME, best AUTO_OUTCOME;
        struct replay_counts counts;
        ASSERT_OK(replay_run(workload, &(struct replay_options){.has_rush = true}, &outcome,
                             &counts, &error));
        pool_run(workload, &(struct pool_options){.rule = POOL_KDA}, &best);
        const double gain = outcome_gain_micro(&outcome) / outcome_gain_micro(&best);
        assert_true(gain > 0.5 && gain < 1.1);
        assert_true(counts.leases > 0 && counts.events > counts.commands);
        for (int i = 0; i < OUTCOME_RESOURCES; i++)
            assert_true(outcome.used_hours[i] <= outcome.there_hours[i] * 1.000001);
    }
}

TEST(nobody_pays_more_than_its_maximum)
{
    struct error error;
    AUTO(workload) struct workload *workload = make(WORKLOAD_SYNTHETIC, 1500);
    struct outcome outcome AUTO_OUTCOME;
    struct replay_counts counts;
    ASSERT_OK(replay_run(workload, &(struct replay_options){.has_rush = true}, &outcome, &counts,
                         &error));
    for (size_t i = 0; i < outcome.fate_count; i++) {
        const struct sim_job *job = &workload->jobs[i];
        /* Ten minutes more per interruption: the work since the last checkpoint. */
        assert_true(outcome.fates[i].paid_micro <=
                    (double)job->maximum_micro * ((double)job->run_s / 3600 + 4));
    }
}

TEST(a_replay_repeats_to_the_last_bit)
{
    struct error error;
    AUTO(workload) struct workload *workload = make(WORKLOAD_NASA, 1500);
    struct outcome first AUTO_OUTCOME, again AUTO_OUTCOME;
    struct replay_counts counts;
    ASSERT_OK(replay_run(workload, &(struct replay_options){0}, &first, &counts, &error));
    ASSERT_OK(replay_run(workload, &(struct replay_options){0}, &again, &counts, &error));
    assert_memory_equal(first.fates, again.fates, first.fate_count * sizeof(*first.fates));
    assert_memory_equal(&first.worth_micro, &again.worth_micro, sizeof(double));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_core_carries_every_workload_and_its_books_balance),
        cmocka_unit_test(nobody_pays_more_than_its_maximum),
        cmocka_unit_test(a_replay_repeats_to_the_last_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
