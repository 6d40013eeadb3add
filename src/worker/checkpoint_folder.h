/*
 * Checkpoint folder: what a borrower's program has finished writing, as one file, and back.
 *
 * Names that begin with a dot or end in .tmp or .part are not finished, whatever lies below them.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { CHECKPOINT_FILES_MAX = 10000 };

struct checkpoint_scan {
    uint64_t signature;  /* of all names, sizes and times; 0: there is nothing */
    char open_path[256]; /* a file that is open for writing; empty: none is */
};

/* `looks_for_writers` opens each file, which is more work. */
MUST_CHECK int checkpoint_scan(const char *folder, bool looks_for_writers,
                               struct checkpoint_scan *out_scan, struct error *error);

/* Writes the file anew, or leaves what was there. CONFLICT when the folder is not, or has not
 * stayed, as `signature` says. */
MUST_CHECK int checkpoint_pack(const char *folder, const char *path, uint64_t bytes_max,
                               uint64_t signature, struct error *error);
/* The folder has what the file has, and nothing else. Changes the working folder. */
MUST_CHECK int checkpoint_unpack(const char *path, const char *folder, uint64_t bytes_max,
                                 struct error *error);
MUST_CHECK int checkpoint_clear(const char *folder, struct error *error);
