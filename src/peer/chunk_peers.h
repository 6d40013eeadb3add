/*
 * Chunk peers: the other leases of the job, as far as chunks can be had from them.
 *
 * Each is dialled once it is told, in the background, at one address after the other; until its
 * link is up, and after it broke for good, it has nothing. One that sends what is not the chunk, or
 * stalls, is not asked again.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "blob/blob_store.h"
#include "net/address.h"
#include "net/link.h"
#include "net/loop.h"
#include "peer/chunk_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHUNK_PEERS_MAX = 16,
    CHUNK_PEER_ADDRESSES_MAX = 8,
    CHUNK_PEER_STALL_MS = 1000,  /* between two pieces of a chunk */
    CHUNK_PEER_CHUNK_MS = 10000, /* for a chunk */
    CHUNK_PEER_CONNECT_MS = 1500,
    CHUNK_PEER_AWAIT_MS = 250, /* for the link to the borrower, before the market is asked */
};

struct chunk_peers;

struct chunk_peers_listener {
    /* A link came or went, or a peer has or takes more. */
    void (*on_news)(void *context);
    /* A piece of the chunk that was wanted of the peer. Returns false to refuse the rest of it. */
    bool (*on_data)(void *context, size_t peer, struct text bytes, bool is_last);
    /* It will not come from there. */
    void (*on_failed)(void *context, size_t peer, const struct error *reason);
    void *context;
};

struct chunk_peers *chunk_peers_new(struct loop *loop, uint64_t lease);
void chunk_peers_free(struct chunk_peers *peers); /* NULL is fine */
DEFINE_AUTO(chunk_peers);

struct chunk_peer_options {
    uint64_t lease;
    const uint8_t *key; /* LINK_KEY_SIZE bytes, copied */
    const struct host_port *addresses;
    size_t address_count;
    bool is_borrower; /* has it all, most likely: for a moment it counts as about to have it */
};
/* One that is known already is let be. */
void chunk_peers_add(struct chunk_peers *peers, const struct chunk_peer_options *options);
/* All links are closed, and none is dialled any more. */
void chunk_peers_close(struct chunk_peers *peers);

/* One listener at a time; NULL: none. Callbacks never come from inside a call. */
void chunk_peers_listen(struct chunk_peers *peers, const struct chunk_peers_listener *listener);

size_t chunk_peers_count(const struct chunk_peers *peers);
enum chunk_holding chunk_peers_holding(const struct chunk_peers *peers, size_t peer,
                                       const struct blob_hash *hash);
/* Linked, and nothing is under way from it. */
bool chunk_peers_is_free(const struct chunk_peers *peers, size_t peer);
/* Of a peer that is free. */
void chunk_peers_want(struct chunk_peers *peers, size_t peer, const struct blob_hash *hash);
/* What comes from it of the present chunk is not wanted any more; its link ends. */
void chunk_peers_give_up(struct chunk_peers *peers, size_t peer);
/* It sent what is not the chunk: it is not believed again. */
void chunk_peers_ban(struct chunk_peers *peers, size_t peer);
