/*
 * Price: what a unit-hour costs, what a lease has cost so far, what a job may cost at most.
 *
 * Prices are whole microcredits per unit-hour (core of the reference speed, GiB of RAM, GPU, GiB
 * of disk). A lease locks the prices of the slots it may run in.
 *
 *     bill so far = floor(sum over slots and resources of milliunits x price x ms / 3 600 000 000)
 *
 * Products are 128 bits wide and the result stops at PRICE_MICRO_MAX, so that no wish, however
 * large, wraps around into a small bill.
 */
#pragma once

#include "market/resources.h"
#include "market/slot.h"

#include <stdbool.h>
#include <stdint.h>

/* What has a price of its own; the order of the fields below. */
enum price_resource { PRICE_CORE, PRICE_RAM, PRICE_GPU, PRICE_DISK, PRICE_RESOURCE_COUNT };

const char *price_resource_name(enum price_resource resource);       /* "core", "ram" ... */
const char *price_resource_unit_hours(enum price_resource resource); /* "core-h", "GiB-h" ... */

/* Microcredits per unit-hour. */
struct price_vector {
    int64_t core_micro;
    int64_t ram_micro;
    int64_t gpu_micro;
    int64_t disk_micro;
};

/* Thousandths of what is billed: cores weighed by speed, GiB, GPUs, GiB. */
struct price_units {
    int64_t core_milli;
    int64_t ram_milli;
    int64_t gpu_milli;
    int64_t disk_milli;
};

#define PRICE_MICRO_MAX       (INT64_MAX / 4)
#define PRICE_PER_HOUR_MAX    INT64_C(1000000000000) /* of one unit */
#define PRICE_SPEED_MILLI_MIN 50                     /* of speed weights: 0.05 to 20 */
#define PRICE_SPEED_MILLI_MAX 20000
#define PRICE_RUN_MS_MAX      (INT64_C(366) * 24 * 3600 * 1000)

int64_t price_vector_get(const struct price_vector *price, enum price_resource resource);
void price_vector_set(struct price_vector *price, enum price_resource resource, int64_t micro);
int64_t price_units_get(const struct price_units *units, enum price_resource resource);

/* The flat table a market starts with. */
struct price_vector price_cold_start(void);

/* A speed weight outside its bounds counts as the nearer bound. */
struct price_units price_units(struct resources resources, int64_t speed_weight_milli);

int64_t price_bill_micro(struct price_units units, struct price_vector price, int64_t ms);
int64_t price_hourly_micro(struct price_units units, struct price_vector price);

/* Floor of amount x points / 10000: a part that belongs to somebody else. */
int64_t price_part_micro(int64_t amount_micro, int64_t basis_points);

/* Stops at PRICE_MICRO_MAX. */
int64_t price_add_micro(int64_t left, int64_t right);

enum { PRICE_LOCK_SLOTS = 8 };

/* The prices a lease keeps. Time outside the locked slots costs as much as in the nearest one. */
struct price_lock {
    int64_t first_slot;
    int64_t offset_ms;  /* of the market's slots */
    int64_t slot_count; /* 1 .. PRICE_LOCK_SLOTS */
    struct price_vector slots[PRICE_LOCK_SLOTS];
    int64_t rush_ms; /* the first ms of the run cost double; 0: none do */
    /* Of one that was renewed: from when on it holds, and what the run cost before. */
    int64_t from_ms;
    int64_t before_micro;
    int64_t before_rest; /* the fraction of a microcredit, in 1 / PRICE_REST_PER_MICRO */
};

#define PRICE_REST_PER_MICRO INT64_C(3600000000)

/* One price at all times. */
struct price_lock price_lock_flat(struct price_vector price);

bool price_lock_is_flat(const struct price_lock *lock);

/* What `wall_ms` cost is settled, and the slots before their end are dropped; of those behind, the
 * prices stay. None may be left: then slot_count is 0, and the next price is the caller's. */
struct price_lock price_lock_settle(struct price_units units, const struct price_lock *lock,
                                    int64_t started_ms, int64_t wall_ms);

bool price_vector_equal(const struct price_vector *left, const struct price_vector *right);
bool price_units_equal(const struct price_units *left, const struct price_units *right);
bool price_lock_equal(const struct price_lock *left, const struct price_lock *right);

/* The whole bill of `wall_ms` from `started_ms` on: never less for a longer time. */
int64_t price_bill_lock_micro(struct price_units units, const struct price_lock *lock,
                              int64_t started_ms, int64_t wall_ms);

/* The most that a run of `run_ms` can cost that starts between the two instants. */
int64_t price_quote_lock_micro(struct price_units units, const struct price_lock *lock,
                               int64_t earliest_ms, int64_t latest_ms, int64_t run_ms);

/* In the dearest slot, and double when there is a rush. */
int64_t price_hourly_lock_micro(struct price_units units, const struct price_lock *lock);
