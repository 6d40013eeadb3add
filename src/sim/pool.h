/*
 * Pool: a market as a pool of hours: what is lent in an hour is one amount per resource, and a job
 * takes its width out of it for as long as it runs. No machines, so nothing is left over in
 * corners.
 *
 * The reference engine: auctions and karma reshuffle every hour, which no machine-level market can
 * do, and rules can be compared without the matcher. Posted prices start a job once and keep it.
 */
#pragma once

#include "sim/outcome.h"
#include "sim/pool_price.h"

enum pool_rule {
    POOL_FIXED,
    POOL_RANDOM,
    POOL_SOUK,
    POOL_FIRST_COME, /* no price */
    POOL_KARMA,
    POOL_KDA,
    POOL_MCAFEE,
    POOL_RULE_COUNT,
};

struct pool_options {
    enum pool_rule rule;
    double price_factor; /* of the first price, as a multiple of the cold start; 0: 1 */
    bool has_rush;
    uint64_t seed;
};

const char *pool_rule_name(enum pool_rule rule);

void pool_run(const struct workload *workload, const struct pool_options *options,
              struct outcome *out_outcome);

/* Knows all jobs beforehand, takes the best first and gives each the earliest hours that are free.
 */
void pool_run_offline(const struct workload *workload, struct outcome *out_outcome);
