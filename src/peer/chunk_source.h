/*
 * Chunk source: from where the next chunk is fetched: from another lender's machine that has it, or
 * from the market.
 *
 * What a reachable machine has is asked of it; what one is about to have is waited for a moment;
 * everything else comes from the market at once, a few at a time, each rank beginning at another
 * place so that ranks that start together fetch different chunks and exchange them. Pure: the
 * caller knows the clock and the links.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHUNK_MARKET_MAX = 2,         /* fetched from the market at a time */
    CHUNK_PATIENCE_MS = 1000,     /* the least, for machines that are about to have a chunk */
    CHUNK_PATIENCE_MS_MAX = 8000, /* and the most */
    CHUNK_SOURCE_MARKET = -1,
};

enum chunk_state { CHUNK_WAITS, CHUNK_RESTS, CHUNK_UNDER_WAY, CHUNK_DONE };

/* What another machine said of a chunk. */
enum chunk_holding { CHUNK_UNKNOWN, CHUNK_TAKEN, CHUNK_HELD };

struct chunk_view {
    size_t chunk_count;
    size_t peer_count;
    size_t first;        /* where to begin */
    size_t market_count; /* under way from the market */
    int64_t patience_ms; /* chunk_source_patience_ms */
    int64_t unmoved_ms;  /* since any chunk came from another machine, or the fetch began */
    const enum chunk_state *states;     /* of each chunk */
    const enum chunk_holding *holdings; /* of peer p and chunk c at p * chunk_count + c */
    const bool *is_peer_free;           /* linked, and nothing is under way from it */
};

struct chunk_choice {
    size_t chunk;
    int source; /* a peer, or CHUNK_SOURCE_MARKET */
};

/* Of a fetch of so many chunks by this of `world` ranks. */
size_t chunk_source_first(uint32_t rank, uint32_t world, size_t chunk_count);

/* How long another machine may need for what this one would fetch from the market in `market_ms`
 * (0: not known): twice that, since others ask the market too. */
int64_t chunk_source_patience_ms(int64_t market_ms);

/* False when nothing is to be begun now. */
bool chunk_source_choose(const struct chunk_view *view, struct chunk_choice *out_choice);
