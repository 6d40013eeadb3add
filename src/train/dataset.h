/*
 * Dataset: records with their targets, mapped from files or in memory.
 *
 * Images of bytes stay bytes; a batch is scaled to floats, (byte / 255 - mean) / deviation, as it
 * is drawn. Floats are taken as they are: rows of a table are images one pixel high. Files may be
 * larger than memory: what a batch draws is read as it is drawn.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdint.h>

/*
 * What one record is. Inputs are always floats, row-major:
 *
 *     images     [channels, height, width]
 *     rows       of a table: channels and height 1
 *     sequences  of numbers: channels 1, height steps of width features
 *     tokens     channels and height 1, width tokens, each a whole number below `vocabulary`
 *                (floats hold those exactly up to 2^24)
 *     sparse     channels 1, height 2, width entries: their places, whole numbers below
 *                `vocabulary`, then the number at each; 0 fills up
 *
 * Targets are a class below `classes`; `values` numbers; or a class for each of `steps` (the next
 * token after each, where width tokens go in: steps is width, classes is vocabulary).
 */
enum dataset_target { DATASET_CLASS, DATASET_VALUES, DATASET_STEPS };

struct dataset_options {
    /* Idx of rank 3 [count, height, width] or 4 [count, channels, ...]; of floats also of rank 2
     * [count, width]; tokens are ints [count, length], with DATASET_STEPS one more than steps;
     * sparse rows are floats [count, 2, entries]. */
    const char *images_path;
    /* Idx of rank 1: bytes or ints of classes, floats of values; DATASET_STEPS needs none. */
    const char *labels_path;
    enum dataset_target target;
    uint32_t classes;       /* labels must be below */
    uint32_t vocabulary;    /* of tokens, or places of sparse rows; 0: the inputs are numbers */
    double mean, deviation; /* of byte / 255; deviation > 0 */
    size_t size_max;        /* bytes of the images; 0: DATASET_SIZE_MAX */
};

#define DATASET_SIZE_MAX ((size_t)64 << 30)

struct dataset_shape {
    uint32_t count;
    uint32_t channels, height, width;
    uint32_t classes;    /* of DATASET_CLASS and DATASET_STEPS; else 0 */
    uint32_t vocabulary; /* of tokens, or places of sparse rows; 0: the inputs are numbers */
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

/* INVALID when images and labels disagree, a label, token or place is too large or a number is not
 * finite: with the record and the byte; else as idx_open. */
MUST_CHECK int dataset_open(const struct dataset_options *options, struct dataset **out_dataset,
                            struct error *error);
/* Of arrays in memory, which it borrows: inputs or pixels [count, channels height width], labels
 * [count, dataset_labels_each] or values [count, values], the other NULL. INVALID when a label or a
 * token is out of range, or a number is not finite. */
struct dataset_arrays {
    const float *inputs;
    const uint8_t *pixels;  /* instead of inputs, scaled as those of files are */
    double mean, deviation; /* of pixels */
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

/* What lies where an image has no pixel: black, scaled. */
float dataset_black(const struct dataset *dataset);

/* Bytes of one record in a file; 0: it lies in memory. */
size_t dataset_record_bytes(const struct dataset *dataset);
/* The records are wanted soon: those in a file are read ahead. */
void dataset_expect(const struct dataset *dataset, uint32_t first, uint32_t count);
