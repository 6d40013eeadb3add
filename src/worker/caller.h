/*
 * Caller: a worker's steps, made by functions (function/work.h).
 *
 * A round publishes the model in the lease's store, has each function take batches of the shard
 * from there, and adds the mean of what they changed: W += (U_1 + ... + U_n) / n. So n functions of
 * k batches each are k steps of a batch n times as large. The daemon makes the calls; a call that
 * fails is made again, and what one left undone is the next round's.
 *
 * The training thread makes rounds; what the daemon answers comes on the link's thread.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/scope.h"
#include "worker/worker_internal.h"

#include <stdbool.h>
#include <stdint.h>

struct caller;

/* Puts the job and its records into the store. Borrows the work. */
MUST_CHECK int caller_open(const struct work *work, struct caller **out_caller,
                           struct error *error);
void caller_free(struct caller *caller); /* NULL is fine */
DEFINE_AUTO(caller);

/* --- the training thread --- */

struct caller_round {
    uint32_t steps; /* 0: it was stopped, and nothing was learnt */
    uint32_t samples;
    double loss;
    bool has_diverged; /* and nothing was learnt */
};

/* Of at most `batches` a function. UNAVAILABLE when a call failed too often; INVALID or EXHAUSTED
 * when it never can be made. */
MUST_CHECK int caller_make_round(struct caller *caller, uint32_t batches, float *parameters,
                                 struct caller_round *out_round, struct error *error);

struct caller_counts {
    uint64_t calls;
    uint64_t again; /* of them, because one before failed */
    uint64_t cut;   /* of them, whose time ended before their batches did */
};
struct caller_counts caller_counts(const struct caller *caller);

/* --- any thread --- */

void caller_on_called(struct caller *caller, const struct child_message *message);
/* Ends the round under way; there is no other. */
void caller_stop(struct caller *caller);
