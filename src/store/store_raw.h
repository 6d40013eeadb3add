/*
 * Raw: how fast SQLite alone writes the rows of a store, to measure a store by.
 *
 * The rows are read from a finished store into memory; then they are inserted into a new file of
 * the same tables and settings (write-ahead log, full sync), by prepared statements, in batches of
 * one transaction each, by nothing but SQLite.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct store_raw_part {
    const char *table;
    uint64_t rows_per_unit; /* 0: the whole table is replaced in every batch */
    const char *order;      /* columns */
};

struct store_raw_options {
    const char *source; /* a closed store */
    const char *target; /* a file that does not exist yet */
    const struct store_raw_part *parts;
    size_t part_count;
    uint64_t unit_max;   /* stop after so many */
    uint64_t batch_size; /* units in a transaction */
};

struct store_raw_result {
    uint64_t unit_count;
    int64_t wall_ns; /* of the inserts and commits */
    int64_t cpu_ns;
};

MUST_CHECK int store_raw_insert(const struct store_raw_options *options,
                                struct store_raw_result *out_result, struct error *error);
