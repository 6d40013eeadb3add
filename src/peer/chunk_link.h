/*
 * Chunk link: what the keepers of two leases of a job say to each other about chunks, over a TLS
 * link under a key that the market gave to these two.
 *
 *     type      from      payload
 *     HAS       server    hashes of chunks it can send; 32 bytes each
 *     TAKES     server    hashes of chunks it is fetching from the market
 *     WANT      client    one hash; no other before its answer is over
 *     DATA      server    u8 is_last, then bytes of the chunk, plain
 *     DENIED    server    nothing: it cannot send that now
 *
 * The client's identity is "chunks:SERVER:CLIENT", the two leases; the borrower, which only serves,
 * is 0 (runtime/source_key.h). Nothing that comes is believed:
 * a chunk is checked against its hash.
 */
#pragma once

#include "blob/blob_store.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum chunk_link_type {
    CHUNK_LINK_HAS = 1,
    CHUNK_LINK_TAKES = 2,
    CHUNK_LINK_WANT = 3,
    CHUNK_LINK_DATA = 4,
    CHUNK_LINK_DENIED = 5,
};

enum {
    CHUNK_LINK_IDENTITY_SIZE = 64,
    CHUNK_LINK_DATA_BYTES = 32 << 10,
    CHUNK_LINK_HASHES_MAX = 1024, /* of one frame */
    CHUNK_LINK_PAYLOAD_MAX = CHUNK_LINK_DATA_BYTES + 1,
};
_Static_assert((int)CHUNK_LINK_HASHES_MAX *BLOB_HASH_SIZE <= (int)CHUNK_LINK_PAYLOAD_MAX,
               "a list is a frame");

static inline void chunk_link_identity(uint64_t server_lease, uint64_t client_lease,
                                       char out[CHUNK_LINK_IDENTITY_SIZE])
{
    snprintf(out, CHUNK_LINK_IDENTITY_SIZE, "chunks:%" PRIu64 ":%" PRIu64, server_lease,
             client_lease);
}
