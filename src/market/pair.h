/*
 * Pair: the round trip between two machines, measured on a direct path between them.
 *
 * Each machine keeps those it was tried with, so a table of all has no more than
 * MACHINE_PAIRS_MAX / 2 entries for each machine; the oldest goes for a new one. What is older than
 * PAIR_FRESH_MS says nothing any more. Where nothing is known packets go through the market: the
 * sum of the two round trips to it.
 */
#pragma once

#include "market/machine.h"

enum {
    MACHINE_PAIRS_MAX = 32,
    PAIR_FRESH_MS = 10 * 60 * 1000,
};

/* One end's view; the other's is the same. */
struct pair_peer {
    struct machine *machine;
    int64_t rtt_us;
    int64_t measured_ms;
};

struct machine_pairs {
    struct pair_peer peers[MACHINE_PAIRS_MAX]; /* by id */
    size_t count;
};

/* Both ends get it, in the place of what they knew. `rtt_us` > 0. */
void pair_put(struct machine *a, struct machine *b, int64_t rtt_us, int64_t now_ms);
/* The machine is away, or another: at both ends nothing is known of it any more. */
void pair_forget_machine(struct machine *machine);
void pair_free(struct machine *machine);

bool pair_is_known(const struct machine *a, const struct machine *b); /* however old */
bool pair_is_full(const struct machine *machine);
/* On a direct path, if that was measured lately; 0: not known. */
int64_t pair_direct_us(const struct machine *a, const struct machine *b, int64_t now_ms);
/* The smaller of a direct path's and the market's; 0: neither is known. */
int64_t pair_rtt_us(const struct machine *a, const struct machine *b, int64_t now_ms);
/* The least direct round trip that the machine has to any other; 0: none is known. */
int64_t pair_nearest_us(const struct machine *machine, int64_t now_ms);
/* The same, however old; or to the market if that is less: what an index may rely on. */
int64_t pair_nearness_us(const struct machine *machine);
