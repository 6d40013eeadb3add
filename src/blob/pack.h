/*
 * Pack: cuts a file or a stream into chunks with a manifest, and puts parts together again.
 *
 * Nothing here keeps state between calls; any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "blob/blob_store.h"
#include "blob/manifest.h"

#include <stddef.h>
#include <stdint.h>

/* ---- Cutting --------------------------------------------------------------------------------- */

/* Where the bytes come from. Fills up to `size` bytes; *out_size 0 is the end. */
struct pack_source {
    int (*read)(void *context, void *data, size_t size, size_t *out_size, struct error *error);
    void *context;
};

/* Where chunks go. */
struct pack_sink {
    int (*put)(void *context, const struct blob_hash *hash, struct text bytes, struct error *error);
    void *context;
};

struct pack_options {
    const char *media_type; /* NULL: none */
    uint64_t header_bytes;  /* at most MANIFEST_HEADER_BYTES_MAX */
    uint64_t record_bytes;  /* 0: a file without records, and header_bytes is 0 too */
    uint64_t chunk_bytes;   /* 0: BLOB_BYTES_MAX, which is also the most allowed */
    uint64_t bytes_max;     /* of the whole stream; EXHAUSTED beyond. 0: what a manifest holds */
};

/* A source over an open descriptor, read from where it stands. *fd must live as long. */
struct pack_source pack_source_fd(int *fd);
/* A sink into a store. */
struct pack_sink pack_sink_store(struct blob_store *store);

/* Reads to the end, gives each chunk to `sink` (NULL: only hashes are wanted) and describes all in
 * *out_manifest, whose texts and chunks lie in the arena. INVALID: not a whole number of records.
 */
MUST_CHECK int pack_stream(struct arena *arena, const struct pack_options *options,
                           const struct pack_source *source, const struct pack_sink *sink,
                           struct manifest *out_manifest, struct error *error);

/* What pack_stream makes of bytes in memory, by chunks of BLOB_BYTES_MAX: how many there are, each,
 * and the manifest from all their hashes, which the caller may reckon as it likes. */
size_t pack_chunk_count(size_t size_bytes);
struct text pack_chunk(struct text bytes, size_t index);
MUST_CHECK int pack_describe(struct arena *arena, const struct pack_options *options,
                             struct text bytes, const struct blob_hash *hashes,
                             struct manifest *out_manifest, struct error *error);

/* ---- Putting together ------------------------------------------------------------------------ */

/* Where chunks come from. Appends the chunk to `out`, a cleared buffer of BLOB_BYTES_MAX. */
struct pack_origin {
    int (*get)(void *context, const struct blob_hash *hash, struct buffer *out,
               struct error *error);
    void *context;
    bool is_checked; /* `get` compares the bytes with the hash */
    /* As blob_store_copy; NULL: it cannot. */
    int (*copy)(void *context, const struct blob_hash *hash, const struct blob_part *part, int fd,
                struct error *error);
};

struct pack_origin pack_origin_store(struct blob_store *store);

/* Writes part of the file to `fd`, at its position. Each chunk's size and hash are checked
 * (CORRUPT), the hash once; of one that does not fit nothing is written. Syncing and renaming are
 * the caller's. */
MUST_CHECK int pack_write_bytes(const struct manifest *manifest, uint64_t offset_bytes,
                                uint64_t size_bytes, const struct pack_origin *origin, int fd,
                                struct error *error);

/* Writes a header and then the records. `header` is the caller's, often manifest_read_header's with
 * the count rewritten; with data NULL it is the manifest's as it stands. */
MUST_CHECK int pack_write_records(const struct manifest *manifest, uint64_t first_record,
                                  uint64_t record_count, struct text header,
                                  const struct pack_origin *origin, int fd, struct error *error);
