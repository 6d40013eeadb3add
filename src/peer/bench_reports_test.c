#include "base/json.h"
#include "peer/bench_reports.h"
#include "runtime/child_message.h"
#include "testing/testing.h"

TEST(a_worker_counts_on_and_stands_still_for_a_part_of_its_time)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, LEASE_REPORT_SIZE_MAX);
    const struct bench_member worker = {.lease = {7, 1}, .rank = 15, .elapsed_ms = 10000};
    struct worker_report report = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    bench_report_worker(&worker, 1000000, &json);
    ASSERT_OK(json_read(arena, buffer_text(&json), &worker_report_schema, &report, &error));
    assert_int_equal(report.steps, 500);
    assert_int_equal(report.first_step_ms, 1000000);
    assert_true(report.wait_ms == 1500 && report.transfer_ms == 500 && report.compute_ms == 8000);
    assert_true(report.commits > 0 && report.loss > 0);
}

TEST(a_server_tells_the_pushes_of_all_its_workers_since_the_report_before)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, LEASE_REPORT_SIZE_MAX);
    const struct bench_member workers[] = {{.lease = {7, 1}, .elapsed_ms = 10000},
                                           {.lease = {8, 2}, .rank = 1, .elapsed_ms = 9000}};
    struct server_report report = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    bench_report_server(workers, 2, 10000, 8000, &json);
    ASSERT_OK(json_read(arena, buffer_text(&json), &server_report_schema, &report, &error));
    const struct server_report_worker *members = report.workers.items;
    assert_int_equal(report.workers.count, 2);
    assert_int_equal(members[0].accepted_pushes, 4);
    assert_int_equal(members[1].lease, 8);
    assert_int_equal(report.samples, members[0].samples + members[1].samples);
    assert_true(report.loss_evaluations > 0 && report.loss > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_counts_on_and_stands_still_for_a_part_of_its_time),
        cmocka_unit_test(a_server_tells_the_pushes_of_all_its_workers_since_the_report_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
