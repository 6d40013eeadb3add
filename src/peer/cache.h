/*
 * Cache: the blobs a lender keeps for later leases, in the state folder: how many, and what of it
 * is used.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { CACHE_BYTES_MIN = 64 << 20 }; /* what two leases need at a time */

/* The most that is kept where a quarter of the disk lent is meant, with its least and most. */
int64_t cache_bytes_default(int64_t disk_bytes);
/* What is kept now, by files; 0 before the first lease. */
MUST_CHECK int cache_measure(const char *state_dir, uint64_t *out_bytes, struct error *error);
