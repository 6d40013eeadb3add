/*
 * Blob partial: what has come of a blob so far, so that a cut costs only what was under way.
 *
 *     FOLDER/partial/HASH   128 bytes of header: "souk" and the coding as one digit, then the
 *                           source's tag, padded with zeros; then the bytes as they travelled
 *
 * Whoever has it open holds a lock on the file, which ends with its process: of all that want a
 * blob, in this process and others, one fetches it. The bytes are not synced: they are checked by
 * the hash when they are whole. What nobody went on with for a day is taken away when the store is
 * opened.
 */
#pragma once

#include "blob/blob_store.h"

enum { BLOB_TAG_SIZE = 120, BLOB_PARTIAL_KEEP_MS = 86400000 };

struct blob_partial;

/* CONFLICT: it is open already, here or in another process. */
MUST_CHECK int blob_partial_open(struct blob_store *store, const struct blob_hash *hash,
                                 struct blob_partial **out_partial, struct error *error);
/* Keeps the bytes for whoever goes on. NULL is fine. */
void blob_partial_free(struct blob_partial *partial);
DEFINE_AUTO(blob_partial);

uint64_t blob_partial_bytes(const struct blob_partial *partial);
/* What the source calls these bytes (an ETag); "" when there are none. */
const char *blob_partial_tag(const struct blob_partial *partial);
/* From the first byte again. A tag that is too long is left out. */
MUST_CHECK int blob_partial_restart(struct blob_partial *partial, enum blob_coding coding,
                                    const char *tag, struct error *error);
/* INVALID: more than a blob holds. EXHAUSTED: the disk is full. */
MUST_CHECK int blob_partial_append(struct blob_partial *partial, struct text bytes,
                                   struct error *error);
/* Makes the blob appear. INVALID: the bytes are not it. Nothing is left of the partial then, nor
 * after success; after another failure it is there still. */
MUST_CHECK int blob_partial_finish(struct blob_partial *partial, struct error *error);

/* A descriptor that becomes readable when a partial of any process is finished or let go of, for
 * those that wait. The end of a process does not show. */
MUST_CHECK int blob_partial_watch(struct blob_store *store, int *out_fd, struct error *error);
