/*
 * Chunk server: sends chunks of a job's data to the leases of the job that ask for them: what a
 * lease's machine has, or what the borrower has itself.
 *
 * It listens on a port of its own. Who may ask is told by chunk_server_allow, with a key; what may
 * be asked for by chunk_server_offer, and nothing else of the store. All it sends together is
 * bounded by a rate, for the machine's owner has only so much of an uplink, and it sends nothing
 * while the owner needs the machine.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "blob/blob_store.h"
#include "net/link.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHUNK_SERVER_LINKS_MAX = 16,
    CHUNK_SERVER_BYTES_PER_S = 16 << 20,
    CHUNK_SERVER_OFFERS_MAX = 1 << 14, /* 64 GiB; the rest is the market's to send */
    CHUNK_SERVER_CLIENTS_MAX = 4096,
};

struct chunk_server;

struct chunk_server_options {
    struct loop *loop;
    struct blob_store *store; /* outlives it; NULL: `find` has it all */
    uint64_t lease;
    int64_t bytes_per_s; /* 0: CHUNK_SERVER_BYTES_PER_S */
    /* A borrower's: where the bytes of what is offered lie, instead of a store; they outlive it. */
    bool (*find)(void *context, const struct blob_hash *hash, struct text *out_bytes);
    void *context;
    /* And the secret that every lease's key derives from (runtime/source_key.h), copied. NULL: only
     * those allowed may ask. */
    const uint8_t *secret;
};

MUST_CHECK int chunk_server_open(const struct chunk_server_options *options,
                                 struct chunk_server **out_server, struct error *error);
void chunk_server_free(struct chunk_server *server); /* NULL is fine */
DEFINE_AUTO(chunk_server);

uint16_t chunk_server_port(const struct chunk_server *server);
/* A lease that may ask from now on, with its new key if it was told before. Of more than
 * CHUNK_SERVER_CLIENTS_MAX the others are served by the market. */
void chunk_server_allow(struct chunk_server *server, uint64_t client_lease,
                        const uint8_t key[LINK_KEY_SIZE]);
/* Told to all that are linked: the chunk is in the store, or (`is_held` false) on its way. */
void chunk_server_offer(struct chunk_server *server, const struct blob_hash *hash, bool is_held);
/* The owner needs the machine: nothing is sent until told otherwise. */
void chunk_server_set_paused(struct chunk_server *server, bool is_paused);
uint64_t chunk_server_sent_bytes(const struct chunk_server *server);
