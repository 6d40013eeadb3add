/*
 * Bundle: all that a job needs of the borrower's, in memory, cut into chunks with their hashes.
 *
 * Each part (a file of a data set, a folder's archive, an image) is described by a manifest, which
 * is a chunk too. bundle_send brings what the market lacks there, several at a time; the manifests
 * go last: a market that has one has all its chunks. As long as the bundle lives its chunks can be
 * had from it.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/scope.h"
#include "blob/pack.h"
#include "client/client.h"
#include "runtime/job_spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bundle;

struct bundle_part {
    const char *name; /* lives as long as the bundle, as do the bytes */
    struct pack_options packing;
    struct text bytes;
    bool is_others;      /* its bytes are a file's that others may change: they are not served */
    uint64_t sent_bytes; /* bundle_send's */
};

struct bundle_blob {
    struct blob_hash hash;
    struct text bytes;
    size_t part;
    bool is_manifest;
};

struct bundle *bundle_new(void);
void bundle_free(struct bundle *bundle); /* NULL is fine */
DEFINE_AUTO(bundle);

/* Hashes it, and fills in input's manifest and records. */
MUST_CHECK int bundle_add(struct bundle *bundle, const struct bundle_part *part,
                          struct job_input *input, struct error *error);
/* `object` goes with the bundle: what the bytes of its parts lie in. */
void bundle_keep_take(struct bundle *bundle, void *object, void (*free_object)(void *object));

size_t bundle_part_count(const struct bundle *bundle);
const struct bundle_part *bundle_part(const struct bundle *bundle, size_t index);
size_t bundle_blob_count(const struct bundle *bundle);
const struct bundle_blob *bundle_blob(const struct bundle *bundle, size_t index);
/* NULL: it is not of this bundle. */
const struct bundle_blob *bundle_find(const struct bundle *bundle, const struct blob_hash *hash);

/* Sends what the market lacks. */
MUST_CHECK int bundle_send(struct bundle *bundle, struct client *client, struct error *error);
