/*
 * CSV columns: what each column of a table is, found by one pass over all rows: numbers, or
 * categories where a word stands among them or the options say so.
 */
#pragma once

#include "train/csv_record.h"
#include "train/import.h"
#include "train/reader_internal.h"

enum { CSV_CATEGORIES_MAX = 1000 /* of a one-hot column */, CSV_CLASSES_MAX = 1000 };

enum csv_column_kind {
    CSV_COLUMN_NUMBER,
    CSV_COLUMN_CATEGORY,
    CSV_COLUMN_TARGET,
    CSV_COLUMN_SKIPPED
};

struct csv_column {
    char name[IMPORT_NAME_SIZE]; /* "1", "2" ... where the file has none */
    enum csv_column_kind kind;
    double sum;     /* of the numbers */
    uint64_t count; /* of them */
    uint64_t missing;
    uint64_t word_line; /* where the first word stood; 0: there is none */
    char word[40];
    struct map values; /* different ones, by number in order of their names once all are seen */
    bool has_too_many; /* values: then the map is empty */
    uint32_t place;    /* of its first number in a row */
};

struct csv_columns {
    struct csv_column *columns;
    uint32_t count;
    uint32_t target; /* index */
    bool has_heading;
    uint64_t rows;
};

/* Whether the first record names the columns. */
bool csv_is_heading(const struct csv_record *record, const struct import_options *options);

/* INVALID with line and column; NOT_FOUND: no such column. On success the caller calls
 * csv_columns_done. */
MUST_CHECK int csv_columns_read(const struct reader_source *source,
                                const struct import_options *options,
                                struct csv_columns *out_columns, struct error *error);
void csv_columns_done(struct csv_columns *columns);
#define AUTO_CSV_COLUMNS __attribute__((cleanup(csv_columns_done)))
