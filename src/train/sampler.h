/*
 * Sampler: the order in which the records of a shard are drawn, without end, each epoch anew.
 *
 * The order depends only on seed, range, record size and epoch, so that position and epoch are
 * enough to go on. Records in memory, or in a file of at most SAMPLER_WINDOW_BYTES, are shuffled
 * all together. Of a larger file blocks of neighbours are shuffled, and then the records of as many
 * blocks as make up a window: a window's worth is read at a time, in blocks, however large the file
 * is.
 */
#pragma once

#include "base/error.h"
#include "train/dataset.h"

#include <stdint.h>

#define SAMPLER_WINDOW_BYTES ((size_t)64 << 20)
#define SAMPLER_BLOCK_BYTES  ((size_t)256 << 10)

struct sampler {
    const struct dataset *dataset;
    uint32_t first, count;  /* records */
    uint32_t block_records; /* the last block may have fewer */
    uint32_t window_blocks;
    uint32_t *blocks; /* in the epoch's order; NULL: the window is the whole shard */
    uint32_t block_count;
    uint32_t *order;        /* indices into the dataset, of the window at hand */
    uint32_t window_first;  /* the position of order[0] */
    uint32_t window_count;  /* records in it */
    uint32_t window_number; /* of the epoch */
    uint32_t position;      /* in the epoch */
    uint64_t epoch;
    uint64_t seed;
};

/* INVALID when the range is empty or past the dataset's end. Borrows the dataset. */
MUST_CHECK int sampler_init(struct sampler *sampler, const struct dataset *dataset, uint32_t first,
                            uint32_t count, uint64_t seed, struct error *error);
void sampler_done(struct sampler *sampler);
/* The next `count` indices; a batch may run over an epoch's end. */
void sampler_next(struct sampler *sampler, uint32_t *out_indices, uint32_t count);
/* Continues where a sampler of the same seed and range stood. */
MUST_CHECK int sampler_seek(struct sampler *sampler, uint64_t epoch, uint32_t position,
                            struct error *error);
