/*
 * Manifest: how a file is cut into chunks, and where its records lie.
 *
 * The encoded form is canonical JSON (this order of keys, no spaces), so that equal manifests have
 * equal hashes; a manifest is kept as a blob under that hash:
 *
 *     {"media_type":"application/x-idx","size":47040016,"header_bytes":16,"record_bytes":784,
 *      "record_count":60000,"header":"00000803...","chunks":[{"hash":"64 hex","size":4194304},...]}
 *
 * A file with records is: header_bytes, then record_count records of record_bytes, and nothing
 * else. A file without has 0 in all three. The header itself travels in the manifest (hex), so that
 * whoever needs only some of the records need not fetch the first chunk for it.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "blob/blob_store.h"

#include <stdint.h>

enum {
    MANIFEST_CHUNK_MAX = 65536, /* decoding; what is encoded must also fit BLOB_BYTES_MAX */
    MANIFEST_HEADER_BYTES_MAX = 1024,
    MANIFEST_MEDIA_TYPE_SIZE = 64,
};

struct manifest_chunk {
    struct blob_hash hash;
    uint64_t size_bytes; /* 1 to BLOB_BYTES_MAX */
};

struct manifest {
    char media_type[MANIFEST_MEDIA_TYPE_SIZE]; /* printable ASCII; may be empty */
    uint64_t size_bytes;
    uint64_t header_bytes;
    uint64_t record_bytes;
    uint64_t record_count;
    struct text header;       /* header_bytes of it, as hex */
    struct json_array chunks; /* of struct manifest_chunk, in the file's order */
};

static inline const struct manifest_chunk *manifest_chunk(const struct manifest *manifest,
                                                          size_t index)
{
    return (const struct manifest_chunk *)manifest->chunks.items + index;
}

/* INVALID, saying what, unless sizes add up, limits hold and the layout fits. */
MUST_CHECK int manifest_check(const struct manifest *manifest, struct error *error);

/* Appends the canonical form. EXHAUSTED when it is longer than BLOB_BYTES_MAX (a file of more than
 * about 178 GiB) or than `out` takes. The manifest must pass manifest_check. */
MUST_CHECK int manifest_encode(const struct manifest *manifest, struct buffer *out,
                               struct error *error);
/* INVALID for anything manifest_encode would not have written. Texts and chunks go to the arena. */
MUST_CHECK int manifest_decode(struct arena *arena, struct text json, struct manifest *out_manifest,
                               struct error *error);

/* Stores the encoded manifest; the hash names it. */
MUST_CHECK int manifest_put(struct blob_store *store, const struct manifest *manifest,
                            struct blob_hash *out_hash, struct error *error);
MUST_CHECK int manifest_get(struct arena *arena, struct blob_store *store,
                            const struct blob_hash *hash, struct manifest *out_manifest,
                            struct error *error);

/* Part of a file, and the chunks it takes. */
struct manifest_range {
    uint64_t offset_bytes; /* in the file */
    uint64_t size_bytes;
    size_t first_chunk_index;
    size_t chunk_count;  /* 0 for an empty range */
    uint64_t skip_bytes; /* of the first chunk, before the range begins */
};

/* INVALID when the range is not inside the file, or the file has no records. */
MUST_CHECK int manifest_map_bytes(const struct manifest *manifest, uint64_t offset_bytes,
                                  uint64_t size_bytes, struct manifest_range *out_range,
                                  struct error *error);
MUST_CHECK int manifest_map_records(const struct manifest *manifest, uint64_t first_record,
                                    uint64_t record_count, struct manifest_range *out_range,
                                    struct error *error);

/* The header's bytes; `out` has room for MANIFEST_HEADER_BYTES_MAX, header_bytes are set. */
MUST_CHECK int manifest_read_header(const struct manifest *manifest, uint8_t *out,
                                    struct error *error);
