/*
 * Reputation: what a machine's leases came to, in whole numbers that anyone can add up.
 *
 * Counted are leases that ended: completed (it did what it was asked to, to the end), lost (gone,
 * or never started; one that was faulty counts as eight), reclaimed (ended by the owner), failed
 * (its process did; that says nothing of the machine). Leases of an owner with itself are not
 * counted.
 *
 * Old ones fade by count: with each lease that is counted, what was before weighs 1/64 less.
 *
 *     reliability = (completed + 1) / (completed + 2 + 2 x lost + reclaimed / 2)     faded
 *
 * So a machine without a past has 0.5, one that never failed comes near 0.98, and a loss costs
 * about three hundredths at first and nothing after some hundreds of leases.
 */
#pragma once

#include "market/lease_outcome.h"

#include <stdbool.h>
#include <stdint.h>

struct reputation {
    int64_t completed; /* leases, ever */
    int64_t lost;
    int64_t reclaimed;
    int64_t failed;
    int64_t completed_milli; /* faded, in thousandths of a lease */
    int64_t lost_milli;
    int64_t reclaimed_milli;
    int64_t leased_ms;    /* from the starts to the ends of those leases */
    int64_t delivered_ms; /* of it verified */
    int64_t ticks;        /* verified results */
    int64_t earned_micro; /* for them, less fees; of leases that run, too */
};

/* One lease that ended. */
struct reputation_lease {
    enum lease_outcome outcome;
    bool has_started;
    int64_t leased_ms;
    int64_t delivered_ms;
    int64_t ticks;
};

/* Of a tick: what it earned. */
void reputation_earn(struct reputation *reputation, int64_t amount_micro);
void reputation_count(struct reputation *reputation, const struct reputation_lease *lease);

int64_t reputation_reliability_milli(const struct reputation *reputation);
/* Of the time its leases ran, how much was verified; 1000 when none has run. */
int64_t reputation_delivered_milli(const struct reputation *reputation);
