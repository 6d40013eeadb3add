/*
 * Fetch: brings blobs into the store by their hashes: from other leases of the job where they can
 * be reached and have them, else from the market, over HTTP, with a lease's token.
 *
 * Blobs that are there already cost nothing, and one that another lease is fetching is waited for.
 * Another lease that does not answer, or lies, costs no more than a moment: the market has it all.
 * A connection that breaks costs what was under way: the next goes on after the last byte that
 * came, here or after a restart. A blob is checked against its hash before it counts. A market that
 * does not answer is asked again, ever less often, until it does or the fetch is freed. All blobs
 * are pinned as long as the fetch lives; older ones make room.
 */
#pragma once

#include "base/random.h"
#include "base/scope.h"
#include "blob/blob_store.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "peer/chunk_peers.h"
#include "peer/chunk_server.h"

#include <stddef.h>

/* Where blobs are and how to get at them; the strings outlive every exchange made with them. */
struct chunk_access {
    struct loop *loop;
    struct http_client *client;
    struct blob_store *store;
    const char *server_url;
    const char *fingerprint; /* NULL: not pinned */
    const char *token;
    const bool *is_away;         /* the market is known to be away: it is asked once a second */
    struct chunk_peers *peers;   /* other leases of the job; NULL: none */
    struct chunk_server *server; /* told of what comes; NULL: nobody is */
    uint32_t rank, world;        /* which of how many; world 0: alone */
    struct chunk_counts *counts; /* NULL: not wanted */
};

/* What came, by where it came from. */
struct chunk_counts {
    uint64_t market_bytes; /* as they travelled */
    uint64_t direct_bytes;
    int64_t market_ms; /* of the slowest blob from the market */
};

enum {
    CHUNK_URL_SIZE = 700,
    CHUNK_HEADER_MAX = 5,
    CHUNK_RETRY_MS = 200, /* doubled each time, and half of it by chance */
    CHUNK_RETRY_MS_MAX = 6400,
    CHUNK_AWAY_MS = 1000,
    CHUNK_WRONG_MAX = 3, /* bytes that are not the blob, in a row, before its source is given up */
    CHUNK_ROOM_MAX = 10, /* tries to make room before the cache is called too small */
};

/* ---- What uploads share ---------------------------------------------------------------------- */

/* A call about one blob. The options point into it. */
struct chunk_call {
    char url[CHUNK_URL_SIZE];
    char authorization[CHUNK_URL_SIZE];
    struct http_header headers[CHUNK_HEADER_MAX];
    struct http_call_options options;
};

void chunk_call_init(struct chunk_call *call, const struct chunk_access *access,
                     const struct blob_hash *hash);
void chunk_call_add_header(struct chunk_call *call, const char *name, const char *value);

/* What a reply means: 0 for 2xx, else *error, which names the chunk and the source. UNAVAILABLE:
 * ask again. */
MUST_CHECK int chunk_check_reply(const struct chunk_access *access,
                                 const struct http_response *response, const struct error *reason,
                                 const struct blob_hash *hash, struct error *error);

struct chunk_patience {
    struct random random;
    uint32_t try_count; /* set to 0 when something has come */
};

void chunk_patience_init(struct chunk_patience *patience, const struct blob_hash *hash);
/* How long to wait before the next try. `response` may be NULL. */
int64_t chunk_patience_next_ms(struct chunk_patience *patience, const struct chunk_access *access,
                               const struct http_response *response);

/* Evicts what nobody needs so that another blob fits, in the quota and on the disk. */
MUST_CHECK int chunk_make_room(struct blob_store *store, struct error *error);

/* ---- Fetching -------------------------------------------------------------------------------- */

struct fetch;
/* `reason` is NULL when all are in the store. */
typedef void fetch_function(void *context, const struct error *reason);

/* The callback comes once, never from inside this call. Hashes are copied. */
struct fetch *fetch_start(const struct chunk_access *access, const struct blob_hash *hashes,
                          size_t count, fetch_function *callback, void *context);
/* Without a callback when it still runs. NULL is fine. */
void fetch_free(struct fetch *fetch);
DEFINE_AUTO(fetch);
/* Why it takes so long, with the chunk and the source: what the last try failed by, or how much has
 * come; NULL: nothing is under way. Good until the next call. */
const char *fetch_trouble(struct fetch *fetch);
