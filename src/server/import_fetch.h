/*
 * Import fetch: `souk import-fetch PARENT`, a process of its own that the market starts to fetch
 * one file from an address that somebody named, and that ends with the market.
 *
 * It dials hosts of the Internet alone, whatever a name stands for and wherever a server sends it
 * on to, unless the market's operator allows others. It has given up root and all files but what
 * name service, certificates and libraries are in, before it speaks to anybody.
 *
 *     standard input    struct import_fetch_request as JSON; secrets are nowhere else
 *     standard output   what went wrong, one sentence
 *     descriptor 3      the empty file that gets the bytes, or the folder that gets the files
 *     descriptor 4      struct import_fetch_progress, written over and over
 *
 * It ends as `souk import-run` does (import_runner.h).
 */
#pragma once

#include "base/json_schema.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { IMPORT_FETCH_FILE_FD = 3, IMPORT_FETCH_PROGRESS_FD = 4, IMPORT_FETCH_MS = 60 * 60000 };

struct import_fetch_request {
    struct text address; /* source/place.h, with its hash */
    uint64_t size_max;
    bool is_private_allowed;
    bool is_folder;                  /* all files below the address */
    struct json_array names, values; /* of credentials: source/remote.h */
};
extern const struct json_schema import_fetch_schema;

struct import_fetch_progress {
    uint64_t done_bytes, total_bytes; /* total 0: not known */
};

/* Returns the process's exit status. */
int import_fetch_main(int argc, char **argv);
