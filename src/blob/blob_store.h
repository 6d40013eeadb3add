/*
 * Blob store: a folder of blobs named by the BLAKE2b-256 of their bytes.
 *
 *     FOLDER/ab/cdef...   the blob whose hash is abcdef... (64 hex digits in all)
 *     FOLDER/ab/cdef....zst  the same as a zstd frame, when it was put as one
 *     FOLDER/temp/        being written; emptied when the store is opened
 *     FOLDER/partial/     what has come of blobs that are being fetched (blob_partial.h)
 *     FOLDER/pins/, evict  of a shared store: what must stay (blob_pins.h)
 *     FOLDER/lock         held by the one process that has the store open, or by all that share it
 *     FOLDER/changes      of a shared store: how often any process added or deleted a blob
 *
 * A blob appears whole or not at all: it is written aside, synced, renamed, and its folder synced
 * before the call returns. The sizes and last uses of all blobs are kept in memory; the scan at
 * opening fills them in.
 *
 * A shared store is open in several processes at once, each with an index of its own: what the
 * index says of a blob is checked against its file, and all files are counted anew before room is
 * given away if another process has changed something. What the others are writing at the time is
 * not counted, so that the quota may be passed by a blob for each of them. What a process needs it
 * pins (blob_pins.h); no process evicts that.
 *
 * Threads: every function may be called from any thread. A blob_writer belongs to one thread at a
 * time. File contents are read and written outside the store's lock; rename and its folder's sync
 * are inside.
 */
#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "blob/blob_coding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLOB_HASH_SIZE = 32,
    BLOB_HASH_TEXT_SIZE = 65,      /* hex with the zero byte */
    BLOB_BYTES_MAX = 4 << 20,      /* of one blob: a chunk or a manifest */
    BLOB_TOUCH_PERIOD_MS = 600000, /* last uses are written to disk no more often than this */
};

struct blob_hash {
    uint8_t bytes[BLOB_HASH_SIZE];
};

void blob_hash_of(const void *data, size_t size, struct blob_hash *out_hash);
bool blob_hash_equal(const struct blob_hash *left, const struct blob_hash *right);
/* INVALID unless the text is 64 lower-case hex digits. */
MUST_CHECK int blob_hash_parse(struct text text, struct blob_hash *out_hash, struct error *error);
/* Returns `out`. */
const char *blob_hash_format(const struct blob_hash *hash, char out[BLOB_HASH_TEXT_SIZE]);

struct blob_store_options {
    const char *folder;        /* created when only its last part is missing */
    uint64_t bytes_max;        /* quota over all blobs; 0: none */
    bool is_shared;            /* with other processes, which say so too. It is a cache: what is put
                                  is there at once, but a power cut may tear it */
    const struct clock *clock; /* NULL: the machine's */
};

/* With a chunk that a lease stores for a checkpoint: it goes with that when later ones come. */
#define BLOB_CHECKPOINT_HEADER "Souk-Checkpoint"

struct blob_store;

/* CONFLICT: another process has it open. Shared, it waits for one that is opening it right now. */
MUST_CHECK int blob_store_open(const struct blob_store_options *options,
                               struct blob_store **out_store, struct error *error);
void blob_store_free(struct blob_store *store); /* NULL is fine */
DEFINE_AUTO(blob_store);

/* What the blobs hold together, with those being written. */
uint64_t blob_store_bytes(struct blob_store *store);
size_t blob_store_count(struct blob_store *store);

bool blob_store_has(struct blob_store *store, const struct blob_hash *hash);
/* The same, and a use of it: it goes after those that nobody asked for, in all processes. */
bool blob_store_use(struct blob_store *store, const struct blob_hash *hash);
/* Of its file. NOT_FOUND when it is not there. Neither this nor has counts as a use. */
MUST_CHECK int blob_store_size(struct blob_store *store, const struct blob_hash *hash,
                               uint64_t *out_bytes, struct error *error);

/* Stores the bytes. `expected` (NULL: any) is what they must hash to, else INVALID. Already there:
 * a use, and no write. EXHAUSTED: the quota or the disk is full. CONFLICT: the blob that was there
 * was deleted meanwhile, put it again. On failure nothing is kept. */
MUST_CHECK int blob_store_put(struct blob_store *store, const struct blob_hash *expected,
                              struct text bytes, struct blob_hash *out_hash, struct error *error);

/* The same for a zstd frame (blob_coding.h) whose plain bytes hash to `expected`. It is kept as it
 * is, for readers that want frames; a shared store, which nobody sends from, keeps plain bytes. */
MUST_CHECK int blob_store_put_frame(struct blob_store *store, const struct blob_hash *expected,
                                    struct text frame, struct error *error);

/* Appends the plain bytes to `out` after checking its hash. A blob that does not match is CORRUPT
 * and is deleted, so that a good copy can be put in its place. */
MUST_CHECK int blob_store_read(struct blob_store *store, const struct blob_hash *hash,
                               struct buffer *out, struct error *error);

struct blob_part {
    uint64_t blob_bytes; /* what the whole blob must have */
    uint64_t first, size_bytes;
};

/* Writes a part of the blob to `fd`, at its position, without reading it again: 1. Only of one that
 * this process has hashed, when it put it or read it, and that is stored plain: else 0, and nothing
 * is written. */
MUST_CHECK int blob_store_copy(struct blob_store *store, const struct blob_hash *hash,
                               const struct blob_part *part, int fd, struct error *error);

struct blob_file {
    int fd; /* the caller's to close */
    uint64_t size_bytes;
    enum blob_coding coding;
};

/* A descriptor open for reading, unverified, good even if the blob is deleted meanwhile. */
MUST_CHECK int blob_store_open_blob(struct blob_store *store, const struct blob_hash *hash,
                                    struct blob_file *out_file, struct error *error);

/* NOT_FOUND when it is not there. */
MUST_CHECK int blob_store_delete(struct blob_store *store, const struct blob_hash *hash,
                                 struct error *error);

/* Whether this blob must stay. Called with the store locked: it may not call the store. */
typedef bool blob_keep_callback(const struct blob_hash *hash, void *context);

struct blob_evict {
    uint64_t bytes_wanted; /* make room for this much under the quota, least recently used first */
    uint64_t bytes_free_min; /* and until the disk has this much free, or nothing is left to go */
    int64_t
        used_before_ms; /* and drop everything last used before this instant (UTC); 0: nothing */
    blob_keep_callback *keep; /* NULL: nothing is kept */
    void *context;
};

/* EXHAUSTED when the room could not be made; what could go has gone then, and *out_freed_bytes
 * (NULL: not wanted) says how much in any case. */
MUST_CHECK int blob_store_evict(struct blob_store *store, const struct blob_evict *evict,
                                uint64_t *out_freed_bytes, struct error *error);

/* ---- Writing as the bytes arrive ------------------------------------------------------------- */

struct blob_writer;

/* As blob_store_put, piece by piece. The store outlives the writer. */
MUST_CHECK int blob_writer_open(struct blob_store *store, const struct blob_hash *expected,
                                struct blob_writer **out_writer, struct error *error);
/* Also gives up on a blob that was not finished. NULL is fine. */
void blob_writer_free(struct blob_writer *writer);
DEFINE_AUTO(blob_writer);
/* EXHAUSTED past BLOB_BYTES_MAX, the quota or the disk. After a failure only free is left. */
MUST_CHECK int blob_writer_append(struct blob_writer *writer, const void *data, size_t size,
                                  struct error *error);
/* Once; checks the hash and makes the blob appear. */
MUST_CHECK int blob_writer_finish(struct blob_writer *writer, struct blob_hash *out_hash,
                                  struct error *error);
