/*
 * Meter: what a lease used, tick by tick; each is signed by the machine before it goes out.
 *
 * Ticks are counted from the moment the lease runs: tick i covers [i, i+1) tick lengths after it.
 * The figures given are sums since the sandbox began; a tick's own are differences. A tick that is
 * read late is as long as it was; the one after it is shorter, so none of the time is lost or
 * counted twice. A lease whose work functions do is metered by their calls: a tick has as much of
 * its time as they took; one without a call is not reported, and has no number.
 */
#pragma once

#include "peer/identity.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stdint.h>

/* Sums so far. */
struct meter_usage {
    int64_t cpu_ms;
    int64_t memory_peak_bytes; /* the highest so far, not a sum */
    uint64_t bytes_in;
    uint64_t bytes_out;
    int64_t called_ms; /* all its functions together were called for so long */
};

struct meter {
    uint64_t lease;
    uint64_t fence;
    int64_t tick_ms;
    int64_t start_ns;
    uint64_t next_index;  /* of what is reported: without gaps, or who pays misses one */
    int64_t period_count; /* that ended, with and without a report */
    bool is_by_calls;
    int64_t metered_ms; /* since start_ns, over all ticks given out */
    struct meter_usage metered;
};

/* The lease runs from now on; `usage` is what starting it took, which no tick counts. */
void meter_start(struct meter *meter, const struct lease_fence *lease, int64_t tick_ms,
                 int64_t now_ns, const struct meter_usage *usage);

/* How long until the current tick ends; 0 when it has. */
int64_t meter_wait_ms(const struct meter *meter, int64_t now_ns);

/* Ends the current tick now, early too (the lease's last one). False when no time has passed since
 * the last, or none of it was used. */
bool meter_take(struct meter *meter, int64_t now_ns, const struct meter_usage *usage,
                struct meter_message *out_message);

/* With the machine's key, which only its daemon has. */
void meter_sign(struct meter_message *message, const struct identity *identity);
