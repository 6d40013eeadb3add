/*
 * Direct: reads what a job's ranks print from the lenders' machines, beside the market's stream.
 *
 * Each running worker is asked for at the market, dialled in the background at the addresses that
 * its daemon told, and read from where the caller is. Only addresses are dialled that a lender's
 * daemon would dial (peer/path.h). Whatever goes wrong is no error: the market has it all.
 */
#pragma once

#include "base/scope.h"
#include "client/api.h"
#include "client/client.h"
#include "net/loop.h"

#include <stddef.h>
#include <stdint.h>

enum { DIRECT_LINKS_MAX = 64 };

struct direct;

struct direct_options {
    struct client *client;
    struct loop *loop;
    struct http_client *http;
    uint64_t job;
    /* Where the next part of a lease's output begins. */
    uint64_t (*next)(void *context, uint64_t lease);
    /* False: its link is of no use any more. */
    bool (*on_bytes)(void *context, uint64_t lease, uint64_t rank, uint64_t offset,
                     struct text bytes);
    void *context;
};

struct direct *direct_new(const struct direct_options *options);
void direct_free(struct direct *direct); /* NULL is fine */
DEFINE_AUTO(direct);

/* The job as it is now: workers that came are looked for, those that ended are let go. */
void direct_set_job(struct direct *direct, const struct api_job *job);
size_t direct_count(const struct direct *direct); /* leases that anything was read from */
