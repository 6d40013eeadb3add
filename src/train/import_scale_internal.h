/* Import scale, inside: shared by import_parts.c and import_scale.c. */
#pragma once

#include "train/import_parts.h"

struct scale {
    double mean, deviation;
};

/* Some rows of an import, in an order. */
struct selection {
    const struct import *import;
    const struct import_rows *rows;
    const uint32_t *order;
    uint32_t count;
    const struct scale *scales; /* [feature_count]; NULL: as they are */
    struct scale target;        /* of a number to be told */
    uint32_t entries;           /* of sparse rows that stay so: the most of a row; 0: dense */
};

/* A value that is one of a column's; false: it has none, or a sparse row has not this place. */
bool selection_column_of(const struct import *import, size_t place, uint32_t *out_column);
/* What a sparse row has, and where. */
size_t import_sparse_entries(const struct import_rows *rows, uint32_t row, const float **out_values,
                             const uint32_t **out_indices);
/* Mean and deviation of each column; one that never changes is left where it is. */
void selection_measure(const struct selection *train, struct scale *scales);
/* What is to be told of a row, as a number. */
double import_target_of(const struct import *import, const struct import_rows *rows, uint32_t row);
struct scale selection_measure_target(const struct selection *train);
/* The mean and deviation of images. */
void import_parts_measure_bytes(struct import_parts *parts, const struct spool *bytes);
