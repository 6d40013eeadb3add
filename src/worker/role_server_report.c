/* Role server: reports to the daemon. */
#include "base/assert.h"
#include "base/log.h"
#include "worker/role_server_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    REPORT_MS = 1000,
    LAST_REPORT_MS = 2000,
    REPORT_MS_MIN = 100, /* between reports that events bring */
};

/* A number may pass to another lease: then nothing of it was reported. */
static uint64_t reported_commits(const struct server_role *role, uint32_t worker, uint64_t lease)
{
    return role->reported_leases[worker] == lease ? role->reported_commits[worker] : 0;
}

static void worker_reports_fill(const struct server_role *role,
                                const struct exchange_status *status,
                                struct server_report_worker *out)
{
    for (uint32_t i = 0; i < status->worker_count; i++) {
        const struct exchange_worker_status *worker = &status->workers[i];
        out[i] = (struct server_report_worker){
            .lease = worker->lease,
            .fence = worker->fence,
            .is_member = worker->is_member,
            .steps = worker->steps,
            .samples = worker->samples,
            .commits = worker->commits,
            .accepted_pushes = worker->commits - reported_commits(role, i, worker->lease),
            .steps_per_second = worker->steps_per_second,
            .clipped = worker->clipped,
            .refused = worker->refused,
            .is_faulty = worker->is_faulty,
            .share = status->samples > 0 ? (double)worker->samples / (double)status->samples : 0,
        };
        if (worker->commits > 0)
            snprintf(out[i].codec, sizeof out[i].codec, "%s", codec_name(worker->codec));
        memcpy(out[i].fault, worker->fault, sizeof out[i].fault);
        memcpy(out[i].agreeing, worker->agreeing, sizeof out[i].agreeing);
        if (worker->is_faulty)
            out[i].accepted_pushes = 0; /* nothing of it is vouched for */
    }
}

/* What the policy and the links made of `auto`. */
static void choices_log(struct server_role *role, const struct exchange_status *status)
{
    if (strcmp(role->sync_reason, status->sync.reason) != 0) {
        memcpy(role->sync_reason, status->sync.reason, sizeof role->sync_reason);
        log_event(LOG_INFO, "policy_chosen", "policy=%s reason=\"%s\"", status->sync.policy,
                  status->sync.reason);
    }
    for (uint32_t i = 0; i < status->worker_count; i++) {
        if (role->codecs[i] == status->workers[i].codec)
            continue;
        role->codecs[i] = status->workers[i].codec;
        log_event(LOG_INFO, "codec_chosen", "lease=%" PRIu64 " codec=%s", status->workers[i].lease,
                  codec_name(role->codecs[i]));
    }
}

void server_report_send(struct server_role *role, const struct exchange_outcome *outcome)
{
    const struct exchange_status *status = exchange_server_status(role->server);
    struct server_report_worker *workers = calloc(status->worker_count + 1, sizeof *workers);
    ASSERT(workers);
    worker_reports_fill(role, status, workers);
    struct server_report report = {
        .elapsed_ms = status->elapsed_ms,
        .version = status->version,
        .steps = status->steps,
        .samples = status->samples,
        .epochs = status->epochs,
        .loss_evaluations = status->loss_evaluations,
        .loss = status->loss,
        .accuracy_evaluations = status->accuracy_evaluations,
        .test_accuracy = status->test_accuracy,
        .test_loss = status->test_loss,
        .gamma_ms = role->work->sync.gamma_ms,
        .commit_target = status->sync.commit_target,
        .commit_rate = status->sync.commit_rate,
        .implicit_momentum = status->sync.implicit_momentum,
        .is_searching = status->sync.is_searching,
        .checks = status->checks,
        .checks_undecided = status->checks_undecided,
        .workers_wanted = status->workers_wanted,
        .is_final = outcome != NULL,
        .workers = {workers, status->worker_count},
    };
    choices_log(role, status);
    snprintf(report.policy, sizeof report.policy, TEXT_FORMAT,
             TEXT_ARGS(role->work->lease.sync.policy));
    snprintf(report.policy_in_force, sizeof report.policy_in_force, "%s", status->sync.policy);
    snprintf(report.policy_reason, sizeof report.policy_reason, "%s",
             role->schedule ? epoch_schedule_reason(role->schedule) : status->sync.reason);
    if (outcome && outcome->has_accuracy) {
        report.test_accuracy = outcome->test_accuracy;
        report.test_loss = outcome->test_loss;
    }
    struct error error;
    role->reported_ns = clock_monotonic_ns(loop_clock(role->loop));
    /* Pushes count as reported only once they are: they are what workers are paid for. */
    if (control_report(role->work->control_fd, &server_report_schema, &report,
                       outcome ? LAST_REPORT_MS : 0, &error) < 0)
        log_event(LOG_WARN, "report_lost", "error=\"%s\"", error.message);
    else
        for (uint32_t i = 0; i < status->worker_count; i++) {
            role->reported_leases[i] = status->workers[i].lease;
            role->reported_commits[i] = status->workers[i].commits;
        }
    free(workers);
}

void server_report_due(void *context)
{
    struct server_role *role = context;
    server_report_send(role, NULL);
    loop_timer_start(role->report_timer, REPORT_MS);
}

/* At once, unless one went out just now: then soon. */
void server_report_change(void *context)
{
    struct server_role *role = context;
    const int64_t since_ms =
        (clock_monotonic_ns(loop_clock(role->loop)) - role->reported_ns) / 1000000;
    loop_timer_start(role->report_timer, since_ms >= REPORT_MS_MIN ? 0 : REPORT_MS_MIN - since_ms);
}
