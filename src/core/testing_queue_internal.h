/*
 * For tests of waiting: small jobs, machines for them, and their work.
 */
#pragma once

#include "core/core_internal.h"
#include "core/testing_internal.h"

#define MINUTE INT64_C(60000)

HELPER struct command some_job(uint64_t account, int64_t num_nodes, int64_t run_ms)
{
    return (struct command){.kind = COMMAND_SUBMIT_JOB,
                            .submit_job = {.account = account,
                                           .name = "job",
                                           .spec = TEXT("{}"),
                                           .num_nodes = num_nodes,
                                           .worker = {.cores_milli = 1000, .ram_bytes = MIB},
                                           .max_run_ms = run_ms,
                                           .expected_run_ms = run_ms,
                                           .tick_ms = 10000}};
}

HELPER struct job *submit(struct market *market, const struct command *command)
{
    const uint64_t id = market_do(market, command);
    union {
        const struct job *given;
        struct job *kept;
    } job = {core_job(market->core, id)};
    return job.kept;
}

HELPER void add_machines(struct market *market, int count)
{
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "machine-%d", i);
        market_add_machine(market, name, 1000, MACHINE_ROLE_WORKER);
    }
}

HELPER void pass_to(struct market *market, int64_t now_ms)
{
    market->now_ms = now_ms;
    market_do(market, &(struct command){.kind = COMMAND_TIME_PASSED});
}

/* Runs what was offered, and ends what has run as long as it may. */
HELPER void work(struct market *market, int64_t run_ms)
{
    for (size_t i = 0; i < core_job_count(market->core); i++) {
        const struct job *job = core_job_at(market->core, i);
        for (size_t l = 0; l < job->lease_count; l++) {
            const struct lease *lease = job->leases[l];
            if (lease->state == LEASE_STATE_OFFERED)
                market_run_lease(market, lease);
            else if (lease->state == LEASE_STATE_RUNNING &&
                     lease->started_ms + run_ms <= market->now_ms)
                market_end_lease(market, lease, LEASE_OUTCOME_SUCCEEDED, "");
        }
    }
}
