/*
 * Price: what a unit-hour costs, what a lease has cost so far, what a job may cost at most.
 *
 * Prices are whole microcredits per unit-hour (core of the reference speed, GiB of RAM, GPU, GiB
 * of disk). A lease locks the prices it was matched at.
 *
 *     bill so far = floor(sum over resources of milliunits x price x ms / 3 600 000 000)
 *
 * Products are 128 bits wide and the result stops at PRICE_MICRO_MAX, so that no wish, however
 * large, wraps around into a small bill.
 */
#pragma once

#include "market/resources.h"

#include <stdint.h>

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

/* The flat table a market starts with. */
struct price_vector price_cold_start(void);

/* A speed weight outside its bounds counts as the nearer bound. */
struct price_units price_units(struct resources resources, int64_t speed_weight_milli);

int64_t price_bill_micro(struct price_units units, struct price_vector price, int64_t ms);
int64_t price_hourly_micro(struct price_units units, struct price_vector price);

/* Stops at PRICE_MICRO_MAX. */
int64_t price_add_micro(int64_t left, int64_t right);
