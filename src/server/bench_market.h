/*
 * Bench of matching: a market of so many offers is made by commands to the core, one offer to a
 * machine, and jobs with mixed wishes are submitted one by one. Most machines have a record of
 * leases, and some jobs ask for what nobody has. Nothing is stored: what is measured
 * is the core's own work, on one thread, in CPU time.
 *
 * A decision is one call of core_decide that submits a job: check, quote, hold, match, leases. A
 * placement is a job that got all its leases in that call.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct bench_market_options {
    uint64_t offer_count;
    uint64_t job_count;
    uint64_t seed;
};

struct bench_market_result {
    uint64_t placed_count;
    uint64_t lease_count;
    double placements_per_s; /* placed jobs over the time of all submits */
    double decision_mean_us;
    double decision_p50_us;
    double decision_p99_us;
    double decision_max_us;
    double bytes_per_offer;   /* what the heap grew by when the offers were made */
    double bytes_per_machine; /* the rest of it: machines without offers, accounts */
};

MUST_CHECK int bench_market_run(const struct bench_market_options *options,
                                struct bench_market_result *out_result, struct error *error);
