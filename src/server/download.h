/*
 * Download: a file of the blob store sent to a client chunk by chunk.
 *
 * Only the chunk that is being sent is in memory, at most BLOB_BYTES_MAX, however large the file is
 * and however slowly it is read; and only so many downloads are open at once.
 *
 * Belongs to the thread of the HTTP server.
 */
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "blob/blob_store.h"
#include "net/http_server.h"

#include <stdint.h>

/* By the size of a chunk, what all of them hold together is 256 MiB at the most. */
enum { DOWNLOAD_ACCOUNT_MAX = 8, DOWNLOAD_MAX = 64, DOWNLOAD_RETRY_S = 5 };

struct downloads {
    struct list open; /* struct download, owned by their replies */
    size_t count;
};

void downloads_init(struct downloads *downloads);

struct download_options {
    struct blob_store *blobs;  /* outlives the HTTP server */
    struct blob_hash manifest; /* of the file */
    uint64_t size_bytes;       /* what it must be, or CORRUPT */
    uint64_t account;          /* whose download it is */
    /* Whether a chunk is there, and may be sent. */
    int (*check)(void *context, const struct blob_hash *hash, struct error *error);
    void *context;
};

/* Replies with the file, or with 429 or 503 when too many are open. On failure nothing was
 * replied, as when `check` fails of any chunk. What goes wrong later cuts the reply off. */
MUST_CHECK int download_start(struct downloads *downloads, struct http_request *request,
                              const struct download_options *options, struct error *error);
