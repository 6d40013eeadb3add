/*
 * Lend, Slurm market: what the market says, asked by a thread of its own, so that a market which
 * does not answer never keeps a node from whoever waits for it.
 */
#pragma once

#include "base/error.h"
#include "base/map.h"
#include "base/scope.h"

#include <stdbool.h>

struct client;
struct lend_slurm_market;

/* Starts asking with a client like this one. Logs when the market goes and comes back. */
MUST_CHECK int lend_slurm_market_open(const struct client *client,
                                      struct lend_slurm_market **out_market, struct error *error);
/* Ends the thread, within about a second. NULL is fine. */
void lend_slurm_market_free(struct lend_slurm_market *market);
DEFINE_AUTO(lend_slurm_market);

/* The machines that waiting jobs lack, 0 while the market is away; and the names of this account's
 * machines with leases, as it said last: leases go on without it. False before it said anything. */
bool lend_slurm_market_read(struct lend_slurm_market *market, int64_t *out_wanted,
                            struct map *out_leased);

/* A one-time code, and the fingerprint that goes with it ("": none). UNAVAILABLE when none came
 * within a second; the next call may have it. */
enum { LEND_SLURM_CODE_SIZE = 128 };
struct lend_slurm_code {
    char code[LEND_SLURM_CODE_SIZE];
    char fingerprint[LEND_SLURM_CODE_SIZE];
};
MUST_CHECK int lend_slurm_market_take_code(struct lend_slurm_market *market,
                                           struct lend_slurm_code *out, struct error *error);
