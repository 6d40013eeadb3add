/*
 * Replay: runs a workload through the real core in virtual time: accounts, machines with offers,
 * jobs, leases that run, tick and end, and the core's own matching, prices and ledger.
 *
 * A machine is offline while its owner uses it. Whoever loses a machine goes on from the last
 * checkpoint (every ten minutes) as a new job, if there is still time. A member whose job would
 * cost more than its maximum asks again when the next slot begins.
 */
#pragma once

#include "sim/outcome.h"

struct replay_options {
    bool has_rush; /* a member rushes when its job is worth twice the price */
    bool is_karma; /* no money: nobody names a maximum */
    /* Called now and then with the share done; NULL is fine. */
    void (*progress)(void *context, double share);
    void *context;
};

struct replay_counts {
    uint64_t commands;
    uint64_t events;
    uint64_t leases;
    uint64_t lost_leases;
    uint64_t refused; /* submits beyond the maximum */
};

/* CORRUPT when an invariant of the core is broken, or it refuses what it must not. */
MUST_CHECK int replay_run(const struct workload *workload, const struct replay_options *options,
                          struct outcome *out_outcome, struct replay_counts *out_counts,
                          struct error *error);
