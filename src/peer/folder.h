/*
 * Folder: removes and measures folders whose contents a foreign process wrote.
 *
 * Links are never followed, and nothing is done by path below the folder itself.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { FOLDER_DEPTH_MAX = 64 };

/* Makes `path` with the mode given; a folder that is there is fine. */
MUST_CHECK int folder_make(const char *path, unsigned mode, struct error *error);

/* Removes the folder and all in it. One that is not there is fine. */
MUST_CHECK int folder_remove(const char *path, struct error *error);

/* The disk space all files in it take; what cannot be read counts nothing. */
int64_t folder_bytes(const char *path);
