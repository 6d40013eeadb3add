/*
 * Range: the part of a model that one of its servers holds.
 *
 * Ranges follow each other without gaps and are as equal as can be: by whole runs of
 * EXCHANGE_DATA_FLOATS where each has many of them, so that no range has a short one but the last.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct range {
    size_t first, count;
};

/* `rank` < `servers` <= `count`. */
struct range range_of(size_t count, uint32_t servers, uint32_t rank);
