/*
 * Raw: how fast SQLite alone writes the rows of a store, to measure a store by.
 *
 * The rows are read from a finished store into memory; then they are inserted into a new file of
 * the same tables and settings (write-ahead log, full sync), by prepared statements, in batches of
 * one transaction each, by nothing but SQLite.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_raw_part {
    const char *table;
    const char *order; /* columns: the order in which its rows were written */
    bool is_repeated; /* the whole table is put again by every batch; else it is spread over them */
};

struct store_raw_options {
    const char *source; /* a closed store */
    const char *target; /* a file that does not exist yet */
    const struct store_raw_part *parts;
    size_t part_count;
    uint64_t batch_count; /* transactions */
};

struct store_raw_result {
    int64_t wall_ns; /* of the inserts and commits */
    int64_t cpu_ns;
};

MUST_CHECK int store_raw_insert(const struct store_raw_options *options,
                                struct store_raw_result *out_result, struct error *error);
