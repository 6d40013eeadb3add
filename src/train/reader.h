/*
 * Reader: one format of data files. Which one a path is, is told by what lies there and its name;
 * `options->format` overrides.
 *
 * To add one: a file reader_NAME.c with a `const struct reader`, its row in reader.c, its name in
 * runtime/job_spec.c and docs/data.md, a fuzz target with a corpus where it decodes bytes.
 */
#pragma once

#include "base/error.h"
#include "train/data_stream.h"
#include "train/import.h"

#include <stdbool.h>
#include <stddef.h>

/* What there is to tell a format by. */
struct reader_clue {
    const char *path;
    bool is_folder;
    struct text name;  /* without a folder, .gz and .zst */
    struct text start; /* of a file: its first bytes, decompressed, DATA_PEEK_MAX at most */
};

struct reader {
    const char *name; /* "csv" */
    const char *help; /* what it takes, for people */
    bool (*matches)(const struct reader_clue *clue);
    /* Fills an import of zeros; on failure what it holds is released by the caller. */
    int (*read)(const char *path, const struct import_options *options, struct import *out_import,
                struct error *error);
};

size_t reader_count(void);
const struct reader *reader_at(size_t index);

/* NOT_FOUND: no such path or format. INVALID: nothing reads it. */
MUST_CHECK int reader_find(const char *path, const char *format, const struct reader **out_reader,
                           struct error *error);

/* Finds the reader and reads. On success the caller calls import_done; messages name the path. */
MUST_CHECK int import_read(const char *path, const struct import_options *options,
                           struct import *out_import, struct error *error);
