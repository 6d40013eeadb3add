/*
 * Flow table: to whom a job has spoken of late, so that only those may answer.
 *
 * Of fixed size: a flow that is new takes the place of the one in its set that has been silent
 * longest. New ones are counted: each takes a place in the home's router too, for a minute or more,
 * and a router that has none left carries nothing new of the owner's either. Time is in
 * milliseconds of any clock that does not go back.
 */
#pragma once

#include "base/scope.h"
#include "net/fence.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FLOW_TABLE_SETS = 256,
    FLOW_TABLE_WAYS = 8,
    /* After which an answer is none any more. Who connected may be silent for long (RFC 5382). */
    FLOW_TABLE_SILENCE_MS = 300000,
    FLOW_TABLE_TCP_SILENCE_MS = 7440000,
    FLOW_TABLE_NEW_MAX = 256, /* at once */
    FLOW_TABLE_NEW_PER_S = 50,
};

struct flow_table;

/* `seed` keeps the job from choosing what shares a set. */
struct flow_table *flow_table_new(uint64_t seed);
void flow_table_free(struct flow_table *table); /* NULL is fine */
DEFINE_AUTO(flow_table);

/* The job wants to send something. False: to somebody new, and there were too many of late. */
MUST_CHECK bool flow_table_note(struct flow_table *table, const struct fence_flow *flow,
                                int64_t now_ms);
/* Whether the job asked for this; an answer keeps a flow alive. */
bool flow_table_has(struct flow_table *table, const struct fence_flow *flow, int64_t now_ms);
