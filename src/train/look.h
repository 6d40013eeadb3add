/*
 * Look: what the beginning of somebody's file looks like: its format, and of a table or of lines of
 * text the first rows, to choose by what is to be told and how it is read.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "base/text.h"

#include <stdbool.h>

enum {
    LOOK_BYTES_MAX = 256 << 10, /* of the file's beginning */
    LOOK_ROWS_MAX = 8,
    LOOK_COLUMNS_MAX = 1000, /* shown of a row */
    LOOK_VALUE_SIZE_MAX = 80,
};

/* What an archive is called that becomes a folder: no reader has a format of that name. */
#define LOOK_FOLDER "folder"

struct look_row {
    struct json_array values; /* of struct text, cut to LOOK_VALUE_SIZE_MAX bytes */
};

struct look {
    struct text format;        /* of train/reader.h, or LOOK_FOLDER */
    struct json_array columns; /* of struct text */
    struct json_array rows;    /* of struct look_row */
};
/* For between processes: reading it checks all but that the format is one. */
extern const struct json_schema look_schema;

/* Whether a file of that name is an archive that becomes a folder: .tar, .tar.gz, .tgz, .tar.zst,
 * .zip. */
bool look_is_archive(struct text name);

/* The file holds the first bytes of one that goes on, unless `is_whole`. All lies in the arena.
 * INVALID, CORRUPT: nothing tells what it is, or its first rows are wrong. */
MUST_CHECK int look_at(struct arena *arena, const char *path, bool is_whole, struct look *out_look,
                       struct error *error);

/* For everybody: {"format":"csv","columns":["a",...],"rows":[["1",...],...]} */
void look_write(struct json_writer *writer, const struct look *look);
