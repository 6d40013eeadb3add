/* covers workload_traces.c */
#include "sim/workload.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>

static struct workload *make(const struct workload_traces *traces, enum workload_kind kind,
                             int64_t load_milli, uint64_t seed)
{
    return workload_new(traces,
                        &(struct workload_options){
                            .kind = kind, .load_milli = load_milli, .seed = seed, .day_count = 4});
}

static void assert_sound(const struct workload *workload)
{
    assert_true(workload->job_count > 100);
    for (size_t i = 0; i < workload->job_count; i++) {
        const struct sim_job *job = &workload->jobs[i];
        assert_true(i == 0 || workload->jobs[i - 1].arrival_s <= job->arrival_s);
        assert_true(job->run_s >= 60 && job->run_s <= INT64_C(48) * 3600);
        assert_true(job->latest_s >= job->arrival_s + job->run_s + INT64_C(2) * 3600);
        assert_true(job->node_count >= 1 && job->node.cores_milli > 0);
        assert_true(job->member < workload->member_count);
        assert_true(job->worth_micro > 0 && job->cold_micro > 0);
        assert_true(job->arrival_s < workload->hour_count * 3600);
    }
    for (size_t i = 0; i < workload->lender_count; i++)
        assert_true(workload->lenders[i].member < workload->member_count);
}

TEST(every_kind_makes_jobs_that_fit_its_machines_at_the_load_asked_for)
{
    AUTO(workload_traces) struct workload_traces *traces = workload_traces_invent(1);
    for (int kind = 0; kind < WORKLOAD_KIND_COUNT; kind++) {
        AUTO(workload) struct workload *workload = make(traces, (enum workload_kind)kind, 800, 3);
        assert_sound(workload);
        assert_true(workload->load > 0.6 && workload->load < 0.95);
    }
}

TEST(a_seed_gives_the_same_workload_and_another_a_different_one)
{
    AUTO(workload_traces) struct workload_traces *traces = workload_traces_invent(1);
    AUTO(workload) struct workload *first = make(traces, WORKLOAD_SYNTHETIC, 1500, 5);
    AUTO(workload) struct workload *again = make(traces, WORKLOAD_SYNTHETIC, 1500, 5);
    AUTO(workload) struct workload *other = make(traces, WORKLOAD_SYNTHETIC, 1500, 6);
    assert_int_equal(first->job_count, again->job_count);
    assert_memory_equal(first->jobs, again->jobs, first->job_count * sizeof(*first->jobs));
    assert_true(first->job_count != other->job_count ||
                memcmp(first->jobs, other->jobs, first->job_count * sizeof(*first->jobs)) != 0);
}

TEST(the_shares_of_start_modes_are_four_three_three)
{
    AUTO(workload_traces) struct workload_traces *traces = workload_traces_invent(1);
    AUTO(workload)
    struct workload *workload = workload_new(
        traces, &(struct workload_options){
                    .kind = WORKLOAD_SYNTHETIC, .load_milli = 800, .seed = 2, .day_count = 40});
    double counts[JOB_START_COUNT] = {0};
    for (size_t i = 0; i < workload->job_count; i++)
        counts[workload->jobs[i].start] += 1.0 / (double)workload->job_count;
    assert_true(counts[JOB_START_NOW] > 0.38 && counts[JOB_START_NOW] < 0.42);
    assert_true(counts[JOB_START_DEADLINE] > 0.28 && counts[JOB_START_DEADLINE] < 0.32);
}

TEST(the_real_traces_are_read_whole)
{
    struct error error;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a test has one thread */
    const char *data = getenv("SOUK_DATA");
    if (!data)
        SKIP("SOUK_DATA is not set");
    AUTO(workload_traces) struct workload_traces *traces = NULL;
    ASSERT_OK(workload_traces_read(data, &traces, &error));
    assert_true(traces->nasa.count > 18000);
    assert_true(traces->alibaba.count > 7000);
    assert_int_equal(traces->loads.count, 11746);
    assert_true(traces->spot_count >= 10);
    AUTO(workload)
    struct workload *workload = workload_new(
        traces, &(struct workload_options){.kind = WORKLOAD_NASA, .load_milli = 1500, .seed = 4});
    assert_sound(workload);
    assert_true(workload->load > 1.4 && workload->load < 1.6);
    assert_true(workload->hour_count > INT64_C(90) * 24);
}

TEST(a_folder_without_traces_is_an_error)
{
    struct error error;
    struct workload_traces *traces = NULL;
    ASSERT_FAILS(workload_traces_read("/nonexistent", &traces, &error), ERROR_NOT_FOUND);
    assert_null(traces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_makes_jobs_that_fit_its_machines_at_the_load_asked_for),
        cmocka_unit_test(a_seed_gives_the_same_workload_and_another_a_different_one),
        cmocka_unit_test(the_shares_of_start_modes_are_four_three_three),
        cmocka_unit_test(the_real_traces_are_read_whole),
        cmocka_unit_test(a_folder_without_traces_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
