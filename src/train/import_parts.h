/*
 * Import parts: an import as the four files of a data set. Rows that train come in a seeded order;
 * where the import has no test rows, a tenth of them (at most IMPORT_TEST_ROWS_MAX) is kept for it.
 *
 * Images are idx of bytes, numbers and sparse rows of at most IMPORT_DENSE_WIDTH_MAX places idx of
 * floats, other sparse rows idx of floats [rows, 2, entries] (places, then the numbers there, zeros
 * behind the last), tokens idx of ints; labels are idx of bytes up to 256 classes, else ints, and
 * floats where a number is to be told. Columns of numbers and numbers to be told are scaled to mean
 * 0 and deviation 1 by the rows that train. `columns` is JSON that says how to bring further rows
 * into the same shape:
 *
 *     {"form":"floats","target":"class","label":"NAME","width":8,"classes":["NAME",...],
 *      "features":[{"name":"NAME","mean":0,"deviation":1},...],"words":["WORD",...],
 *      "target_mean":0,"target_deviation":1}
 */
#pragma once

#include "base/buffer.h"
#include "train/dataset_catalogue.h"
#include "train/import.h"
#include "train/import_columns.h"

enum { IMPORT_DENSE_WIDTH_MAX = 1024 };

/* Which rows of an import without test rows train. */
enum import_split { IMPORT_SPLIT_TENTH, IMPORT_SPLIT_ALL_TRAIN, IMPORT_SPLIT_ALL_TEST };

struct import_parts_options {
    uint64_t seed;
    enum import_split split;
    const struct import_columns *columns; /* scale as they say; NULL: by the rows themselves */
    uint32_t entries;  /* of sparse rows: at least so many, 0: as the longest has */
    double label_skew; /* 0: every shard looks like the whole; 1: the rows lie sorted by their
                          target, so that each shard has few classes; between: that share of rows */
};

struct import_parts {
    struct spool files[DATASET_PART_COUNT];
    struct buffer columns;
    double mean, deviation; /* of the bytes of images that train, over 255; else 0 and 1 */
    double target_mean, target_deviation; /* of numbers to be told that train; else 0 and 1 */
};

/* What the files will hold, as dataset_open says it of them; the count is that of rows that train
 * and test together. */
struct dataset_shape import_parts_shape(const struct import *import);
/* The same with room for entries of others' sparse rows: a power of two. */
struct dataset_shape import_parts_shape_shared(const struct import *import);

/* EXHAUSTED: no room. INVALID: a sparse row is longer than `entries`. On success the caller calls
 * import_parts_done. */
MUST_CHECK int import_parts_init(struct import_parts *parts, const struct import *import,
                                 const struct import_parts_options *options, struct error *error);
void import_parts_done(struct import_parts *parts);
