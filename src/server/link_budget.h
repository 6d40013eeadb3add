/*
 * Link budget: how much a machine may say on its link, in units that each message costs.
 *
 * A bucket that fills evenly and holds what LINK_BUDGET_BURST_S seconds bring. It may be overdrawn
 * by a message, since that is here already: the next ones wait until the debt is paid. What a
 * machine may say grows with the leases it has, for each of them talks. Pure: the time is given.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    LINK_BUDGET_BASE = 1024,      /* units a second */
    LINK_BUDGET_PER_LEASE = 1024, /* the same: twice what a daemon lets a lease say */
    LINK_BUDGET_BURST_S = 8,
};

struct link_budget {
    int64_t units;     /* below zero: a debt */
    int64_t filled_ns; /* up to when `units` is reckoned; 0: never yet */
};

/* What a message of this type (enum lease_message_type) and size costs, at least 1. Those that cost
 * the market more than bytes, a command for the core or a signature to check, cost more. */
int64_t link_budget_cost(uint16_t type, size_t size);

/* Takes `cost` and returns for how long nothing more may be said: 0, not at all. */
int64_t link_budget_take(struct link_budget *budget, int64_t cost, size_t lease_count,
                         int64_t now_ns);
