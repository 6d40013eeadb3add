/*
 * Import: what a reader makes of somebody's files: rows of one form, each with a target.
 *
 *     form      a row is
 *     bytes     channels x height x width pixels
 *     floats    channels x height x width numbers
 *     tokens    `width` numbers below `vocabulary`; 0 fills up a short row
 *     sparse    numbers at some of `width` places, in rising order
 *
 * Rows lie in spools, so they may be more than memory holds. All numbers are this machine's.
 */
#pragma once

#include "base/error.h"
#include "base/map.h"
#include "base/scope.h"
#include "base/text.h"
#include "train/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    IMPORT_ROWS_MIN = 10,
    IMPORT_TEST_ROWS_MAX = 10000,
    IMPORT_CLASSES_MAX = 65536,
    IMPORT_COLUMNS_MAX = 4096,         /* of a table */
    IMPORT_WIDTH_MAX = 16384,          /* places of a dense row of a table */
    IMPORT_SPARSE_WIDTH_MAX = 1 << 24, /* places of a sparse row */
    IMPORT_ROW_ENTRIES_MAX = 65536,    /* of a sparse row */
    IMPORT_SIDE_MAX = 16384,           /* of an image, as it is read */
    IMPORT_NAME_SIZE = 64,
    IMPORT_FEATURE_NAME_SIZE = 136,
};

#define IMPORT_ROWS_MAX (UINT32_MAX / 2)

enum import_form { IMPORT_BYTES, IMPORT_FLOATS, IMPORT_TOKENS, IMPORT_SPARSE, IMPORT_FORM_COUNT };
const char *import_form_name(enum import_form form); /* "bytes" ... */

/* What is to be told of a row: one of some classes, a number, or the tokens that come next: then a
 * row has one token more than the model sees at a time, and there are no targets. */
enum import_target { IMPORT_CLASS, IMPORT_NUMBER, IMPORT_NEXT, IMPORT_TARGET_COUNT };
const char *import_target_name(enum import_target target); /* "class" ... */

struct import_rows {
    uint32_t count;
    struct spool values;  /* uint8_t, float or int32_t; of sparse rows the float of each entry */
    struct spool indices; /* of sparse rows: uint32_t, the place of each entry */
    struct spool starts; /* of sparse rows: uint64_t, each row's first entry; the end is one more */
    struct spool targets; /* int32_t of a class, float of a number */
};

struct import_feature {
    char name[IMPORT_FEATURE_NAME_SIZE];
    bool is_scaled; /* to mean 0 and deviation 1, by the rows that train */
};

enum import_unit { IMPORT_WORDS, IMPORT_CHARACTERS };

struct import {
    enum import_form form;
    enum import_target target;
    uint32_t channels, height, width;
    uint32_t classes;               /* of IMPORT_CLASS */
    uint32_t vocabulary;            /* of tokens */
    struct import_rows train, test; /* test.count 0: some of train are to be kept for it */
    char target_name[IMPORT_NAME_SIZE];
    struct map class_names; /* by class; empty: they are numbers */
    enum import_unit unit;  /* of tokens, what one stands for */
    struct map words;       /* by token less `word_first`; empty: they are hashes */
    uint32_t word_first;
    struct import_feature *features; /* the first `feature_count` places of a row of a table */
    uint32_t feature_count;
    bool is_part, is_asked; /* as its options say */
    uint64_t dropped_rows;  /* had a value missing */
    uint64_t filled_values; /* were missing */
};

/* What is missing in a column of numbers. */
enum import_missing {
    IMPORT_MISSING_REFUSE,
    IMPORT_MISSING_DROP,
    IMPORT_MISSING_MEAN,
    IMPORT_MISSING_CONSTANT
};
/* Columns of words. */
enum import_categories {
    IMPORT_CATEGORIES_REFUSE,
    IMPORT_CATEGORIES_ONE_HOT,
    IMPORT_CATEGORIES_HASHED
};

struct import_options {
    const char *format; /* a reader's name; NULL: found out */
    const char *target; /* the column's name; NULL: the last */
    bool is_number;     /* the target is a number, not a class */
    bool is_part;       /* others have more: it may have rows of one class alone */
    bool is_asked;      /* a model is asked about the rows: a single one will do, and where targets
                           lie apart they may be missing, and are then empty */
    enum import_missing missing;
    double missing_value; /* of IMPORT_MISSING_CONSTANT */
    enum import_categories categories;
    const char *category_columns; /* names with a comma between that hold categories though they
                                     look like numbers; "*": all; NULL: none */
    const char *skip_columns;     /* names with a comma between; NULL: none */
    uint32_t buckets;             /* of hashed categories, and of hashed words */
    enum import_unit unit;
    bool are_words_hashed;
    uint32_t vocabulary;    /* words at most */
    uint32_t length;        /* tokens of a row */
    uint32_t window, ahead; /* of a table in order of time: import_windows.h; 0: rows alone */
    uint32_t image_height, image_width; /* 0: as they are, all alike */
    uint32_t image_channels;            /* 0: those of the first */
    uint32_t classes;                   /* labels must be below; 0: as many as there are */
    uint64_t size_max;                  /* bytes of one file, decompressed */
};

/* buckets 65536, vocabulary 20000, length 64, size_max 64 GiB. */
void import_options_default(struct import_options *out_options);

/* Releases all; an import of zeros is fine. */
void import_done(struct import *import);
#define AUTO_IMPORT __attribute__((cleanup(import_done)))

void import_rows_done(struct import_rows *rows);

/* The size of one element of `values`. */
size_t import_element_size(enum import_form form);

/* ---- For readers ---- */

/* Counts the row whose values and target were appended; EXHAUSTED past IMPORT_ROWS_MAX. */
MUST_CHECK int import_row_end(struct import_rows *rows, struct error *error);
MUST_CHECK int import_add_class_target(struct import_rows *rows, int32_t value,
                                       struct error *error);
MUST_CHECK int import_add_number_target(struct import_rows *rows, float value, struct error *error);
/* A sparse row: `count` entries in rising order of their places. */
MUST_CHECK int import_add_sparse(struct import_rows *rows, const uint32_t *indices,
                                 const float *values, uint32_t count, struct error *error);
/* The class of that name, a new one when it is new: INVALID when there are `classes_max` already or
 * the name is longer than IMPORT_NAME_SIZE - 1 or no plain text. */
MUST_CHECK int import_class(struct import *import, struct text name, uint32_t classes_max,
                            int32_t *out_class, struct error *error);
/* Numbers in their order, then words in theirs: the same data give the same classes whatever the
 * order of rows. Sets `classes`. */
void import_sort_classes(struct import *import);
/* Whether the rows are enough to train with, their targets within the classes and their numbers
 * finite: what every reader ends with. Completes the starts of sparse rows. */
MUST_CHECK int import_finish(struct import *import, struct error *error);

/* FNV-1a of `column`, a 0x1f byte and `value`, its bits mixed: the place of a hashed category is
 * this modulo the buckets. */
uint64_t import_hash(struct text column, struct text value);
