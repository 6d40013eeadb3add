/*
 * Folder: removes and measures folders whose contents a foreign process wrote.
 *
 * Links are never followed, and nothing is done by path below the folder itself. Whoever wrote the
 * contents may have made them to be a nuisance: deep, closed, or very many.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { FOLDER_DEPTH_MAX = 64 };

/* Makes `path` with the mode given; a folder that is there is fine. */
MUST_CHECK int folder_make(const char *path, unsigned mode, struct error *error);

/* Removes the folder and all in it, however deep; what is mounted in there is taken off first and
 * kept. One that is not there is fine. */
MUST_CHECK int folder_remove(const char *path, struct error *error);

/*
 * The disk space all files in it take. Fails when that cannot be told: a folder that may not be
 * looked into, one below FOLDER_DEPTH_MAX others, or more than `entries_max` files (EXHAUSTED).
 */
MUST_CHECK int folder_measure(const char *path, uint64_t entries_max, int64_t *out_bytes,
                              struct error *error);
