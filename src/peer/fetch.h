/*
 * Fetch: brings blobs into the store by their hashes, over HTTP, with a lease's token.
 *
 * Blobs that are there already cost nothing. A blob is checked against its hash before it counts. A
 * market that does not answer is asked again a few times; one that is away, until it is back.
 */
#pragma once

#include "base/scope.h"
#include "blob/blob_store.h"
#include "net/http_client.h"
#include "net/loop.h"

#include <stddef.h>

/* Where blobs are and how to get at them; the strings outlive every exchange made with them. */
struct chunk_access {
    struct loop *loop;
    struct http_client *client;
    struct blob_store *store;
    const char *server_url;
    const char *fingerprint; /* NULL: not pinned */
    const char *token;
    const bool *is_away; /* the market is known to be away: tries do not count */
};

enum { CHUNK_URL_SIZE = 700, CHUNK_TRIES_MAX = 5, CHUNK_RETRY_MS = 200, CHUNK_AWAY_MS = 1000 };

/* The URL of one blob and the options of a call to it; `headers` has room for two. */
void chunk_call_init(const struct chunk_access *access, const struct blob_hash *hash,
                     char url[CHUNK_URL_SIZE], char authorization[CHUNK_URL_SIZE],
                     struct http_header headers[2], struct http_call_options *out_options);
/* What a reply means: 0 for 2xx, else *error with the code the status stands for. */
MUST_CHECK int chunk_check_reply(const struct http_response *response, const struct error *reason,
                                 const struct blob_hash *hash, struct error *error);
/* How long to wait before a call that failed so is made again; -1: it is not. Counts the tries. */
int64_t chunk_retry_ms(const struct chunk_access *access, const struct error *reason,
                       uint32_t *try_count);

struct fetch;
/* `reason` is NULL when all are in the store. */
typedef void fetch_function(void *context, const struct error *reason);

/* The callback comes once, never from inside this call. Hashes are copied. */
struct fetch *fetch_start(const struct chunk_access *access, const struct blob_hash *hashes,
                          size_t count, fetch_function *callback, void *context);
/* Without a callback when it still runs. NULL is fine. */
void fetch_free(struct fetch *fetch);
DEFINE_AUTO(fetch);
