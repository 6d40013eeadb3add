/*
 * Reports of the bench of many lenders: what a lease under which nothing runs says of itself, as
 * one that trains does. A worker stands still for a part of its time that its rank sets; the
 * server's loss falls with time.
 */
#pragma once

#include "base/buffer.h"
#include "runtime/lease_message.h"

#include <stddef.h>
#include <stdint.h>

struct bench_member {
    struct lease_fence lease;
    uint64_t rank;
    int64_t elapsed_ms; /* since its lease began */
};

/* `begun_ms` is when its lease began, UTC. */
void bench_report_worker(const struct bench_member *worker, int64_t begun_ms, struct buffer *json);

/* Of the job's parameter server, that has applied all pushes of its workers; `before_ms` is how
 * much was elapsed at the report before. */
void bench_report_server(const struct bench_member *workers, size_t count, int64_t elapsed_ms,
                         int64_t before_ms, struct buffer *json);
