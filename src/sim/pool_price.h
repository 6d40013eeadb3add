/*
 * Pool price: the posted price of a pool of hours: fixed, drawn at random, or moved by Souk's rule,
 * which is market/price_rule.h itself.
 */
#pragma once

#include "base/random.h"
#include "market/price_meter.h"
#include "sim/outcome.h"

enum { POOL_SLOT_HOURS = 6 };

enum pool_price_rule {
    POOL_PRICE_FIXED,
    POOL_PRICE_RANDOM, /* each slot's anew, evenly from a hundredth of the highest on: DeepMarket */
    POOL_PRICE_SOUK,
};

struct pool_price {
    enum pool_price_rule rule;
    struct price_vector fixed; /* also the last one drawn */
    struct price_vector floor; /* the lowest minimum of all lenders */
    struct price_board board;
    struct price_meter meter;
    struct random random;
    double now[SLOT_PER_DAY][OUTCOME_RESOURCES]; /* per unit-hour, by slot of the day */
};

void pool_price_init(struct pool_price *price, enum pool_price_rule rule, double factor,
                     const struct workload *workload, uint64_t seed);
void pool_price_done(struct pool_price *price);

/* The price of the slot that `hour` is in, seen from the slot that runs: its forecast. */
double pool_price_at(const struct pool_price *price, int resource, int64_t hour);

/* Unit-hours of cores, GiB of RAM and GPUs. */
void pool_price_want(struct pool_price *price, uint32_t member,
                     const double unit_hours[OUTCOME_RESOURCES]);
void pool_price_offer(struct pool_price *price, const double unit_hours[OUTCOME_RESOURCES]);

/* The slot before `hour` has ended: moves the prices by what the meter saw and clears it. */
void pool_price_close(struct pool_price *price, int64_t hour);
