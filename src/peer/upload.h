/*
 * Upload: a file that a lease made, cut into chunks and stored at the market.
 */
#pragma once

#include "peer/fetch.h"

struct upload;

struct upload_result {
    struct blob_hash manifest;
    uint64_t size_bytes;
};

/* Exactly one of the two is set. */
typedef void upload_function(void *context, const struct upload_result *result,
                             const struct error *reason);

struct upload_options {
    struct chunk_access access;
    const char *folder;
    const char *name; /* a path below the folder; links are not followed */
    uint64_t bytes_max;
    bool is_checkpoint; /* later ones take its place */
    upload_function *callback;
    void *context;
};

/* Opens the file at once, so that another put in its place does not matter; reads and uploads it in
 * the background. The callback comes once, never from inside this call. */
MUST_CHECK int upload_start(const struct upload_options *options, struct upload **out_upload,
                            struct error *error);
void upload_free(struct upload *upload); /* NULL is fine; gives up what still runs */
DEFINE_AUTO(upload);
/* What the last try to send failed by, with the chunk and the market; NULL: nothing has. */
const char *upload_trouble(const struct upload *upload);
