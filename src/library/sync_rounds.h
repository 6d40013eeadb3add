/*
 * Sync rounds: the calls in which ranks meet, by number: who has called, what they gave, and what
 * came of it. Pure: kept by rank 0's library, which tells it who is there.
 *
 * A round is done when all who are waited for have called, and with a broadcast when its root has.
 * Nobody waits for a rank that is away, or that has the round behind it: that one was in it when
 * another rank 0 kept the rounds. What came of a round is kept, so that a rank that comes late, or
 * starts its program again, walks through the rounds of the others with their results.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "library/sync_message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sync_round {
    struct sync_call call; /* as the first to call said */
    uint8_t *bytes;        /* the sum, or what is broadcast; NULL of a barrier */
    uint32_t contributors;
    bool is_done;
    bool has_called[SYNC_WORLD_MAX];
};

struct sync_rounds;

/* `kept_max_bytes` of results are kept, the oldest go first; those that somebody who is waited for
 * has not come to yet are kept beyond it. */
struct sync_rounds *sync_rounds_new(uint32_t world, size_t kept_max_bytes);
void sync_rounds_free(struct sync_rounds *rounds); /* NULL is fine */
DEFINE_AUTO(sync_rounds);

/* The rank is there, or is expected; it has so many rounds behind it. */
void sync_rounds_await(struct sync_rounds *rounds, uint32_t rank, uint64_t done);
/* Nobody waits for it any more: of what it alone could broadcast nothing will come. */
void sync_rounds_excuse(struct sync_rounds *rounds, uint32_t rank);

/* CONFLICT when others call something else in this round, UNAVAILABLE when it is over and no longer
 * kept, or nothing can come of it. `out_is_wanted`: what the rank has to give is not there yet. */
MUST_CHECK int sync_rounds_call(struct sync_rounds *rounds, uint32_t rank,
                                const struct sync_call *call, bool *out_is_wanted,
                                struct error *error);
/* All of what a rank gives: as many bytes as its call said, NULL of one that gives none. */
void sync_rounds_give(struct sync_rounds *rounds, uint32_t rank, uint64_t number,
                      const uint8_t *bytes);
/* NULL while it is not done. */
const struct sync_round *sync_rounds_result(struct sync_rounds *rounds, uint64_t number);
/* UNAVAILABLE for a broadcast that is not done and whose root is not waited for. */
MUST_CHECK int sync_rounds_check(const struct sync_rounds *rounds, uint64_t number,
                                 struct error *error);
/* More is kept than should be, for those who are behind: who is ahead must wait. */
bool sync_rounds_is_full(struct sync_rounds *rounds);
