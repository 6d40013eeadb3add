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

/*
 * What one record is. Inputs are always floats, row-major:
 *
 *     images     [channels, height, width]
 *     rows       of a table: channels and height 1
 *     sequences  of numbers: channels 1, height steps of width features
 *     tokens     channels and height 1, width tokens, each a whole number below `vocabulary`
 *                (floats hold those exactly up to 2^24)
 *
 * Targets are a class below `classes`; `values` numbers; or a class for each of `steps` (the next
 * token after each, where width tokens go in: steps is width, classes is vocabulary).
 */
enum dataset_target { DATASET_CLASS, DATASET_VALUES, DATASET_STEPS };

struct dataset_shape {
    uint32_t count;
    uint32_t channels, height, width;
    uint32_t classes;    /* of DATASET_CLASS and DATASET_STEPS; else 0 */
    uint32_t vocabulary; /* of tokens; 0: the inputs are numbers */
    enum dataset_target target;
    uint32_t values; /* of DATASET_VALUES */
    uint32_t steps;  /* of DATASET_STEPS */
};

/* Labels of one record: 0 with DATASET_VALUES. */
static inline uint32_t dataset_labels_each(const struct dataset_shape *shape)
{
    return shape->target == DATASET_CLASS ? 1 : shape->target == DATASET_STEPS ? shape->steps : 0;
}

struct dataset;

/* INVALID when images and labels disagree or a label is too large; else as idx_open. */
MUST_CHECK int dataset_open(const struct dataset_options *options, struct dataset **out_dataset,
                            struct error *error);
/* Of arrays in memory, which it borrows: inputs [count, channels height width], labels
 * [count, dataset_labels_each] or values [count, values], the other NULL. INVALID when a label or a
 * token is out of range, or a number is not finite. */
struct dataset_arrays {
    const float *inputs;
    const int32_t *labels;
    const float *values;
};
MUST_CHECK int dataset_open_arrays(const struct dataset_shape *shape,
                                   const struct dataset_arrays *arrays,
                                   struct dataset **out_dataset, struct error *error);
void dataset_free(struct dataset *dataset); /* NULL is fine */
DEFINE_AUTO(dataset);

const struct dataset_shape *dataset_shape(const struct dataset *dataset);

/* Puts the records named by `indices` one after the other into `out_images`, images of bytes
 * scaled, and their labels, dataset_labels_each of each, into `out_labels`; that may be NULL where
 * there are none. */
void dataset_gather(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                    float *out_images, int32_t *out_labels);

/* The numbers of DATASET_VALUES, `values` of each. */
void dataset_gather_values(const struct dataset *dataset, const uint32_t *indices, uint32_t count,
                           float *out_values);

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
