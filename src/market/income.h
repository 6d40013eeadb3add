/*
 * Income: what a machine earned in each stretch of time, and what an offer would in a month.
 */
#pragma once

#include "market/price.h"
#include "market/window.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stretches of equal length, one after the other. */
struct income_axis {
    int64_t from_ms;
    int64_t step_ms; /* > 0 */
    size_t count;
};

struct income_bucket {
    int64_t earned_micro;
    int64_t busy_ms; /* of leases, each for itself */
};

/* Adds what a lease earned, evenly over the time that it was paid for: all parts together are
 * exactly that. What lies outside the axis is left out. */
void income_spread(const struct income_axis *axis, int64_t started_ms, int64_t paid_ms,
                   int64_t earned_micro, struct income_bucket *buckets);

/* What is known of one time of day. */
struct income_past {
    struct price_vector price;
    bool is_used_known;
    int64_t used_milli[PRICE_RESOURCE_COUNT]; /* of what was lent then */
};

struct income_wish {
    struct price_units units;    /* what is lent */
    struct price_vector minimum; /* the owner's */
    struct window window;        /* when */
    int64_t from_ms, until_ms;
    int64_t slot_offset_ms;
    int64_t fee_basis_points;
};

struct income_estimate {
    int64_t open_ms[SLOT_PER_DAY];
    bool is_dear[SLOT_PER_DAY]; /* the minimum is above the price: nothing is counted */
    int64_t full_micro;         /* leased as a whole whenever it is open */
    int64_t likely_micro;       /* leased as much as others were */
    bool is_likely_known;
};

/* By past prices, less the market's fee. `past` has SLOT_PER_DAY items. */
struct income_estimate income_estimate(const struct income_wish *wish,
                                       const struct income_past *past);
