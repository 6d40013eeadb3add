/*
 * CSV table: a file of rows, each with numbers and one label, as somebody else's program wrote it.
 *
 * Fields are separated by commas, or by semicolons or tabs where the first line has no comma; they
 * may stand in quotes. A first line with a word among its numbers holds the columns' names. The
 * label is any text: its different values are the classes, numbers in their order and words in
 * theirs. A file ending in .gz is read through gzip.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CSV_TABLE_FEATURES_MAX = 1024,
    CSV_TABLE_CLASSES_MAX = 256,
    CSV_TABLE_ROWS_MIN = 10,
    CSV_TABLE_NAME_SIZE = 64,
};

struct csv_table_options {
    const char *label; /* the label's column by name; NULL: the last one */
    size_t size_max;   /* bytes of the file, decompressed */
};

struct csv_table {
    uint32_t row_count;
    uint32_t feature_count;
    uint32_t class_count;
    float *values;                              /* [row_count][feature_count], finite */
    uint8_t *labels;                            /* [row_count], below class_count */
    char (*feature_names)[CSV_TABLE_NAME_SIZE]; /* "1", "2" ... where the file has none */
    char (*class_names)[CSV_TABLE_NAME_SIZE];
    char label_name[CSV_TABLE_NAME_SIZE];
};

/* NOT_FOUND: no such file, or no such column. INVALID, with the line: a field that is no number, a
 * row of another length, too few rows, more classes than CSV_TABLE_CLASSES_MAX or only one.
 * EXHAUSTED: more than size_max. */
MUST_CHECK int csv_table_open(const char *path, const struct csv_table_options *options,
                              struct csv_table **out_table, struct error *error);
/* The same from memory. */
MUST_CHECK int csv_table_parse(struct text csv, const struct csv_table_options *options,
                               struct csv_table **out_table, struct error *error);
void csv_table_free(struct csv_table *table); /* NULL is fine */
DEFINE_AUTO(csv_table);
