/*
 * Import classes: which classes the records of an import have, and how many are of each, out of the
 * labels and columns that its reader left.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

enum { IMPORT_CLASSES_SHOWN = 100 }; /* the first of more */

struct import_class_count {
    struct text name; /* in the arena */
    uint64_t records;
};

struct import_classes {
    struct import_class_count items[IMPORT_CLASSES_SHOWN];
    size_t count; /* 0: a number or the next one is to be told */
};

/* What a reader left: idx of labels, empty where there are none, and import_parts' columns. */
struct import_labels {
    struct text train, test, columns;
    uint64_t classes; /* where they have no names */
};

/* INVALID, CORRUPT: not what a reader writes. */
MUST_CHECK int import_classes_read(struct arena *arena, const struct import_labels *labels,
                                   struct import_classes *out_classes, struct error *error);
/* [{"name":"cat","records":12},...] */
void import_classes_write(struct json_writer *writer, const struct import_classes *classes);
