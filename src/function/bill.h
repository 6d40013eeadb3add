/*
 * Bill: what a call of a function costs. Pure.
 *
 * A function of m MB is m / 1769 of a core and m / 1024 GiB, each at its price, for the
 * milliseconds it was billed; rounded up to a microcredit.
 */
#pragma once

#include <stdint.h>

enum { BILL_MB_PER_CORE = 1769 };

struct bill_price {
    int64_t core_micro_per_hour;
    int64_t ram_micro_per_hour; /* of a GiB */
};

/*
 * The least prices of a core and of a GiB that together come to `gib_micro` for a GiB of function
 * in an hour: in the proportion of `usual`, which is not free, rounded up.
 */
struct bill_price bill_least(const struct bill_price *usual, int64_t gib_micro);

/* For megabytes times milliseconds, of any number of calls: rounded up once. Prices to 2^50, and
 * what was used to 2^60: the result fits where it is below 2^63. */
int64_t bill_use_micro(const struct bill_price *price, uint64_t mb_ms);
/* The same of one call alone. `billed_ms` from 0 to a day, memory to 2^20: it fits. */
int64_t bill_call_micro(const struct bill_price *price, uint32_t memory_mb, int64_t billed_ms);
