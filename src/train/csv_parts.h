/*
 * CSV parts: a table of numbers as the four files of a data set: rows in a seeded order, a tenth of
 * them (at most CSV_TEST_ROWS_MAX) for the test, each column scaled to mean 0 and deviation 1 by
 * the rows that train.
 *
 * The values are idx of floats [rows, features], the labels idx of bytes. `columns` is JSON that
 * says how to bring further rows into the same shape:
 *
 *     {"label":"NAME","classes":["NAME",...],"features":[{"name":"NAME","mean":0,"deviation":1},...]}
 */
#pragma once

#include "base/buffer.h"
#include "train/csv_table.h"
#include "train/dataset_catalogue.h"

enum { CSV_TEST_ROWS_MAX = 10000 };

struct csv_parts {
    struct buffer files[DATASET_PART_COUNT];
    struct buffer columns;
};

/* EXHAUSTED: no memory. On success the caller calls csv_parts_done. */
MUST_CHECK int csv_parts_init(struct csv_parts *parts, const struct csv_table *table, uint64_t seed,
                              struct error *error);
void csv_parts_done(struct csv_parts *parts);
