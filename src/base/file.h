/*
 * File: whole files in and out, so that a reader never sees half of one.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stddef.h>
#include <sys/types.h>

/* Appends the whole file to the buffer. NOT_FOUND, REFUSED ..., EXHAUSTED past the buffer's
 * maximum. */
MUST_CHECK int file_read(const char *path, struct buffer *buffer, struct error *error);
/* What is left of one that is open; `path` is for people. */
MUST_CHECK int file_read_fd(int fd, const char *path, struct buffer *buffer, struct error *error);

/*
 * Writes the parts one after the other beside `path`, syncs, and renames over it, syncing the
 * folder too. On failure an older file stays as it was and nothing else is left behind.
 */
MUST_CHECK int file_replace(const char *path, const struct text *parts, size_t part_count,
                            mode_t mode, struct error *error);

/* All that is left of one to the other, both opened by the caller. Where the file system can, the
 * bytes are shared. */
MUST_CHECK int file_copy(int from, int to, struct error *error);

/* Makes the folder and those above it; one that is there is fine. */
MUST_CHECK int file_make_folders(const char *path, mode_t mode, struct error *error);
