/*
 * Price meter: what was wanted by whom and what was lent during the running slot.
 *
 * Usage is counted in thousandths of a unit x seconds; each piece added is truncated to that, and
 * sums stop at PRICE_USAGE_MILLI_S_MAX. A job that may choose its slot is *spread*: its usage
 * counts evenly over all slots it could use, wherever it runs. Who trades with itself is the
 * caller's to leave out. The order of borrowers and spreads depends on the calls alone.
 */
#pragma once

#include "base/map.h"
#include "market/price_rule.h"

struct price_usage {
    int64_t milli_s[PRICE_RESOURCE_COUNT];
};

struct price_usage price_usage_of(struct price_units units, int64_t ms);
struct price_usage price_usage_add(struct price_usage left, struct price_usage right);

struct price_borrower {
    uint64_t id; /* of whoever counts as one */
    struct price_usage wanted;
};

struct price_spread {
    uint64_t job;
    uint64_t borrower;
    struct price_usage now;    /* the running slot's part, counted already */
    struct price_usage later;  /* not counted yet */
    struct price_usage before; /* counted in slots that ended, or too dear for it in any */
    int64_t slots_left;        /* after the running one */
};

struct price_meter {
    struct map borrowers; /* struct price_borrower by id */
    struct map spreads;   /* struct price_spread by job */
    struct price_usage offered;
};

void price_meter_init(struct price_meter *meter);
void price_meter_done(struct price_meter *meter);
/* With borrowers and spreads of its own. */
void price_meter_copy(const struct price_meter *meter, struct price_meter *out_copy);

void price_meter_want(struct price_meter *meter, uint64_t borrower, struct price_usage usage);
void price_meter_offer(struct price_meter *meter, struct price_usage usage);
/* Takes back what was offered: a part that its own lender rented. */
void price_meter_unoffer(struct price_meter *meter, struct price_usage usage);

/* Spreads a job's usage over the running slot and those after it, `slot_count` in all, >= 1. The
 * part of a slot whose price it would not pay counts nowhere. */
void price_meter_spread(struct price_meter *meter, uint64_t job, uint64_t borrower,
                        struct price_usage usage, int64_t slot_count, bool would_pay);
/* The job has ended and used so much in all: what is not counted yet goes to the slots left. */
void price_meter_spread_ended(struct price_meter *meter, uint64_t job, struct price_usage usage);
/* The job was cancelled: it does not count from the running slot on. */
void price_meter_spread_cancelled(struct price_meter *meter, uint64_t job);

/* What the running slot adds up to. */
void price_meter_inputs(const struct price_meter *meter,
                        struct price_inputs out_inputs[PRICE_RESOURCE_COUNT]);
bool price_meter_is_empty(const struct price_meter *meter); /* nothing counted, nothing to come */

/* Whether the spread job would pay the price of the slot that starts. */
typedef bool price_would_pay(const void *context, uint64_t job);

/* Starts the next slot: from zero, with the spread jobs' next parts. NULL: all would pay. */
void price_meter_next_slot(struct price_meter *meter, price_would_pay *would_pay,
                           const void *context);

/* For reading back a snapshot. */
void price_meter_restore_spread(struct price_meter *meter, const struct price_spread *spread);
