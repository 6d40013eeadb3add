/*
 * Epoch plan: which batches of an epoch are handed out, which came back, and which update may be
 * added next. Pure: driven by the job's driver, by tests and by nothing else.
 *
 * Every batch is waiting, out or covered. A span that failed, and what a call did not do of its
 * span, waits again; so each batch is covered exactly once. Spans are told apart by their first
 * batch: two that are not covered never overlap.
 *
 * HSP, asynchronous inside the epoch with a bound on how old an update may be: the version of the
 * model is the number of updates added so far; an update whose call started from version v and is
 * added as update u is u - v updates late, and never more than `staleness`. An update waits where
 * adding it would leave an older one, still out, no way within the bound; the oldest never waits.
 * No more than staleness + 1 spans are out at a time.
 */
#pragma once

#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_span {
    uint64_t first, count; /* batches */
};

struct plan_task {
    struct batch_span span;
    uint32_t failures;   /* of this span so far */
    uint32_t generation; /* rises when what was left in the store is of no use */
};

struct epoch_plan_options {
    uint64_t batch_count;  /* of the epoch, > 0 */
    uint64_t span_batches; /* handed out at a time, > 0 */
    uint64_t staleness;
    uint64_t version;                 /* of the model as the epoch starts */
    uint64_t seed;                    /* of the order in which spans are handed out */
    const struct batch_span *covered; /* by what the model has already; may be NULL */
    size_t covered_count;
};

struct epoch_plan;

struct epoch_plan *epoch_plan_new(const struct epoch_plan_options *options);
void epoch_plan_free(struct epoch_plan *plan); /* NULL is fine */
DEFINE_AUTO(epoch_plan);

/* Hands the next span out, to start from model `base`, at most `version`. False: none waits, or the
 * bound does not let another out. */
bool epoch_plan_take(struct epoch_plan *plan, uint64_t base, struct plan_task *out_task);
/* Whether its update may be added now. */
bool epoch_plan_may_fold(const struct epoch_plan *plan, uint64_t first);
/* It was, and covers the first `batches` of the span, 1 to all; the rest waits again. The version
 * rises by one. */
void epoch_plan_fold(struct epoch_plan *plan, uint64_t first, uint64_t batches);
/* Nothing came of it: it waits again. Returns how often it has failed. */
uint32_t epoch_plan_fail(struct epoch_plan *plan, uint64_t first);
/* The same, and what lies in the store for it must not be used. */
uint32_t epoch_plan_spoil(struct epoch_plan *plan, uint64_t first);
/* It was not tried: it waits again. */
void epoch_plan_give_back(struct epoch_plan *plan, uint64_t first);

uint64_t epoch_plan_version(const struct epoch_plan *plan);
/* The oldest base that is out; the version when none is. */
uint64_t epoch_plan_oldest(const struct epoch_plan *plan);
size_t epoch_plan_out_count(const struct epoch_plan *plan);
uint64_t epoch_plan_covered_count(const struct epoch_plan *plan); /* batches */
bool epoch_plan_is_complete(const struct epoch_plan *plan);
/* What is covered, as few spans as do: writes at most `max` and returns how many there are. */
size_t epoch_plan_covered(const struct epoch_plan *plan, struct batch_span *out, size_t max);
/* Updates that were late by the most so far. */
uint64_t epoch_plan_staleness_seen(const struct epoch_plan *plan);
