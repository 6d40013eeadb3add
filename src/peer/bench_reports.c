#include "peer/bench_reports.h"

#include "base/assert.h"
#include "base/json.h"
#include "runtime/child_message.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_PER_SECOND = 50, BATCH = 32, COMMITS_PER_SECOND = 2, COMMIT_MS = 40 };

static uint64_t in(int64_t elapsed_ms, uint64_t per_second)
{
    return (uint64_t)elapsed_ms * per_second / 1000;
}

static void write_json(const struct json_schema *schema, const void *report, struct buffer *json)
{
    struct json_writer writer;
    json_writer_init(&writer, json);
    json_write(&writer, schema, report);
}

void bench_report_worker(const struct bench_member *worker, int64_t begun_ms, struct buffer *json)
{
    const double seconds = (double)worker->elapsed_ms / 1000;
    const double still = (double)(worker->rank % 40); /* of a hundred parts */
    const struct worker_report report = {
        .steps = in(worker->elapsed_ms, STEPS_PER_SECOND),
        .samples = in(worker->elapsed_ms, STEPS_PER_SECOND) * BATCH,
        .commits = in(worker->elapsed_ms, COMMITS_PER_SECOND),
        .loss = 2.3 / (1 + seconds / 10),
        .steps_per_second = STEPS_PER_SECOND,
        .commit_ms = COMMIT_MS,
        .compute_ms = (double)worker->elapsed_ms * (95 - still) / 100,
        .transfer_ms = (double)worker->elapsed_ms * 5 / 100,
        .wait_ms = (double)worker->elapsed_ms * still / 100,
        .first_step_ms = begun_ms};
    write_json(&worker_report_schema, &report, json);
}

static struct server_report_worker member_of(const struct bench_member *worker, size_t count,
                                             int64_t span_ms)
{
    const int64_t before_ms = worker->elapsed_ms > span_ms ? worker->elapsed_ms - span_ms : 0;
    const uint64_t commits = in(worker->elapsed_ms, COMMITS_PER_SECOND);
    return (struct server_report_worker){
        .lease = worker->lease.lease,
        .fence = worker->lease.fence,
        .is_member = true,
        .steps = in(worker->elapsed_ms, STEPS_PER_SECOND),
        .samples = in(worker->elapsed_ms, STEPS_PER_SECOND) * BATCH,
        .commits = commits,
        .accepted_pushes = commits - in(before_ms, COMMITS_PER_SECOND),
        .steps_per_second = STEPS_PER_SECOND,
        .share = 1.0 / (double)count,
        .codec = "f32"};
}

void bench_report_server(const struct bench_member *workers, size_t count, int64_t elapsed_ms,
                         int64_t before_ms, struct buffer *json)
{
    struct server_report_worker *members = calloc(count ? count : 1, sizeof(*members));
    ASSERT(members);
    const double seconds = (double)elapsed_ms / 1000;
    struct server_report report = {.elapsed_ms = elapsed_ms,
                                   .loss_evaluations = in(elapsed_ms, COMMITS_PER_SECOND),
                                   .loss = 2.3 / (1 + seconds / 10),
                                   .accuracy_evaluations = in(elapsed_ms, 1),
                                   .test_accuracy = 1 - 0.9 / (1 + seconds / 10),
                                   .policy = "adsp",
                                   .policy_in_force = "adsp",
                                   .gamma_ms = 1000,
                                   .workers = {members, count}};
    for (size_t i = 0; i < count; i++) {
        members[i] = member_of(&workers[i], count, elapsed_ms - before_ms);
        report.steps += members[i].steps;
        report.samples += members[i].samples;
        report.version += members[i].commits;
    }
    write_json(&server_report_schema, &report, json);
    free(members);
}
