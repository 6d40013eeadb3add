/*
 * Mount index: which files a file mount of a job has, and how they are shared among the ranks.
 *
 * A mount travels as one file of a manifest with records of one byte:
 *
 *     header   16 bytes: "soukmnt1", u64 size of the index
 *     records  the index, then the bytes of all files, one after the other
 *
 * so whoever has the manifest knows where the index lies, and fetches of the rest only the records
 * of its own files. The index:
 *
 *     u8 version (1), u8 is_single (0 or 1), u32 count, count x (text path, u64 size_bytes,
 *     u8 is_program (0 or 1)), u32 cut count, cut count x u64
 *
 * Paths are relative, of plain names with slashes between, in rising order; a single file has one
 * without a slash. The cuts are of a single file that is shared by its lines: where in it parts
 * begin, the first at 0, rising; none otherwise. All integers are little-endian (wire/wire.h).
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOUNT_HEADER_SIZE = 16,
    MOUNT_FILES_MAX = 30000,
    MOUNT_FOLDERS_MAX = 30000,
    MOUNT_PATH_SIZE_MAX = 1024,
    MOUNT_DEPTH_MAX = 32,
    MOUNT_CUTS_MAX = 8192,
    MOUNT_INDEX_SIZE_MAX = 4 << 20,
};

struct mount_file {
    struct text path;
    uint64_t size_bytes;
    bool is_program; /* may be executed */
};

struct mount_index {
    bool is_single; /* of a file, not of a folder */
    struct mount_file *files;
    uint32_t file_count;
    uint64_t *cuts;
    uint32_t cut_count;
};

/* A relative path that leads nowhere else: no name is empty, "." or "..", none has a control
 * character. */
bool mount_path_is_fine(struct text path);

void mount_header_write(uint64_t index_size, uint8_t out[MOUNT_HEADER_SIZE]);
/* CORRUPT for what is none. */
MUST_CHECK int mount_header_read(const uint8_t *header, size_t size, uint64_t *out_index_size,
                                 struct error *error);

/* EXHAUSTED when it is longer than MOUNT_INDEX_SIZE_MAX, or has more than MOUNT_FOLDERS_MAX. */
MUST_CHECK int mount_index_encode(const struct mount_index *index, struct buffer *bytes,
                                  struct error *error);
/* CORRUPT unless all that is said above holds. Paths point into `bytes`. */
MUST_CHECK int mount_index_decode(struct arena *arena, struct text bytes,
                                  struct mount_index *out_index, struct error *error);

/* Of all files together. */
uint64_t mount_index_bytes(const struct mount_index *index);

/* How many ranks can share it: its files, or of a single one the stretches of lines. */
uint64_t mount_index_part_count(const struct mount_index *index);

/* A rank's part. */
struct mount_part {
    uint32_t first_file, file_count;
    uint64_t offset_bytes; /* behind the index */
    uint64_t size_bytes;
};

/* All files; with a world above 1 files [r*N/n, (r+1)*N/n), or that part of a single file's lines;
 * ranks from `world` on share the parts of the first. */
struct mount_part mount_index_part(const struct mount_index *index, uint64_t rank, uint64_t world);

/* The folders that the part's files lie in, those above them included. */
uint32_t mount_index_folders(const struct mount_index *index, const struct mount_part *part);
