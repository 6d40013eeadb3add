/*
 * Import columns: what the data of others must look like to be learnt from together: the columns,
 * classes and scales that import_parts wrote of one import, read again for another.
 */
#pragma once

#include "base/arena.h"
#include "base/json_schema.h"
#include "train/import.h"

enum { IMPORT_COLUMNS_SIZE_MAX = 16 << 20 };

struct import_column {
    struct text name;
    double mean, deviation;
};

struct import_columns {
    struct text form, target, label;
    struct json_array classes;  /* struct text */
    struct json_array features; /* struct import_column */
    struct json_array words;    /* struct text */
    double target_mean, target_deviation;
    uint64_t width; /* places of a row */
};

/* INVALID: not what import_parts writes. Texts go to the arena. */
MUST_CHECK int import_columns_read(struct arena *arena, struct text json,
                                   struct import_columns *out_columns, struct error *error);

/* Numbers the import's classes and lays out its columns as the columns say, whichever classes and
 * words of one-hot columns it has. INVALID, quoting nothing that only the data have: it is of
 * another form, has other columns, or a class or word that they lack. */
MUST_CHECK int import_fit(struct import *import, const struct import_columns *columns,
                          struct error *error);
