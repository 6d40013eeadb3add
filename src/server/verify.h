/*
 * Verify: which metered ticks of a lease may be billed. Pure: no clocks, no sockets.
 *
 * A worker's tick is verified once its meter report came and the parameter server accepted a push
 * of that worker in the tick or after it; a push confirms all metered ticks before it. The end of
 * the training cuts a worker's last tick short, mostly between two pushes: that tick is verified if
 * the one before it was. The tick of a parameter server, and of a worker that has none, is verified
 * by its meter report alone, if it used CPU. Of a server besides
 * the lead it is enough that it is there: it holds a part of the model, or a copy. A tick at whose
 * end the owner holds the lease still is never verified: the moments in which it may say that it
 * lives are no work. Reports must come in the order of their ticks, and a lease cannot claim more
 * time, nor more ticks than milliseconds, than passed since it started: time beyond that is cut
 * off.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { VERIFY_PENDING_MAX = 128, VERIFY_SLACK_MS = 1000 };

struct verified_tick {
    uint64_t index;
    int64_t wall_ms;
};

struct verify_lease {
    bool is_standby;     /* a parameter server besides the lead: it is paid while it is there */
    bool is_alone;       /* a parameter server, or a worker that has none: nobody confirms it */
    int64_t started_ms;  /* by the market's clock */
    uint64_t next_index; /* the smallest index not seen yet */
    int64_t metered_ms;  /* of all ticks seen */
    bool has_push;       /* accepted since the last meter report */
    bool is_cut_short;   /* the training is over; the last tick's report is still to come */
    uint64_t paid_index; /* the smallest index that was not verified; 0: none was */
    uint32_t pending_count;
    struct verified_tick pending[VERIFY_PENDING_MAX]; /* metered, no push since */
};

/* `next_index` is what was billed before a restart: ticks below it are not taken again. */
void verify_lease_init(struct verify_lease *lease, bool is_alone, int64_t started_ms,
                       uint64_t next_index, int64_t metered_ms);

struct verify_meter {
    uint64_t index;
    int64_t wall_ms;
    int64_t cpu_ms;
    bool is_held; /* the machine's owner needs it: leases stand still */
};

/*
 * A meter report whose signature was checked, at `now_ms`. Writes what became verified, at most
 * VERIFY_PENDING_MAX + 1, into `out`. CONFLICT for a tick seen before, which is normal after a
 * reconnect; INVALID for one that makes no sense.
 */
MUST_CHECK int verify_meter(struct verify_lease *lease, const struct verify_meter *meter,
                            int64_t now_ms, struct verified_tick out[VERIFY_PENDING_MAX + 1],
                            uint32_t *out_count, struct error *error);

/* The parameter server accepted pushes of this lease. Returns how many ticks became verified. */
uint32_t verify_push(struct verify_lease *lease, struct verified_tick out[VERIFY_PENDING_MAX + 1]);

/* The parameter server ended the training with this worker, after the pushes it reported last.
 * Returns how many ticks became verified: at most one, now or with the next meter report. */
uint32_t verify_training_over(struct verify_lease *lease,
                              struct verified_tick out[VERIFY_PENDING_MAX + 1]);
