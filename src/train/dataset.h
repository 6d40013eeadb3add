/*
 * Dataset: images with labels in memory, a range of them, and the order they are drawn in.
 *
 * Images of bytes stay bytes; a batch is scaled to floats, (byte / 255 - mean) / deviation, as it
 * is drawn. Floats are taken as they are: rows of a table are images one pixel high.
 */
#pragma once

#include "base/error.h"
#include "base/random.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdint.h>

struct dataset_options {
    const char *images_path; /* idx of rank 3 [count, height, width] or 4 [count, channels, ...];
                                of floats also of rank 2 [count, width] */
    const char *labels_path; /* idx of rank 1 */
    uint32_t classes;        /* labels must be below */
    double mean, deviation;  /* of byte / 255; deviation > 0 */
    size_t size_max;         /* bytes of the images; 0: DATASET_SIZE_MAX */
};

#define DATASET_SIZE_MAX ((size_t)1 << 31)

struct dataset_shape {
    uint32_t count;
    uint32_t channels, height, width;
    uint32_t classes;
};

struct dataset;

/* INVALID when images and labels disagree or a label is too large; else as idx_open. */
MUST_CHECK int dataset_open(const struct dataset_options *options, struct dataset **out_dataset,
                            struct error *error);
void dataset_free(struct dataset *dataset); /* NULL is fine */
DEFINE_AUTO(dataset);

const struct dataset_shape *dataset_shape(const struct dataset *dataset);

/* Scales the images named by `indices` one after the other into `out_images`. */
void dataset_gather(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                    float *out_images, int32_t *out_labels);

/* Draws records [first, first + count) without end, each epoch in a new seeded order. The order
 * depends only on seed, range and epoch, so that position and epoch are enough to resume. */
struct sampler {
    uint32_t *order; /* [count], indices into the dataset */
    uint32_t first, count;
    uint32_t position; /* in the epoch */
    uint64_t epoch;
    uint64_t seed;
};

/* INVALID when the range is empty or past the dataset's end. */
MUST_CHECK int sampler_init(struct sampler *sampler, const struct dataset *dataset, uint32_t first,
                            uint32_t count, uint64_t seed, struct error *error);
void sampler_done(struct sampler *sampler);
/* The next `count` indices; a batch may run over an epoch's end. */
void sampler_next(struct sampler *sampler, uint32_t *out_indices, uint32_t count);
/* Continues where a sampler of the same seed and range stood. */
MUST_CHECK int sampler_seek(struct sampler *sampler, uint64_t epoch, uint32_t position,
                            struct error *error);
