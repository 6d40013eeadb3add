/*
 * Packet link: records of packets over a stream descriptor, sealed under keys from a TLS 1.3
 * handshake with a key that both ends hold.
 *
 * The handshake is that of net/link.h; after it the connection carries the records of net/seal.h
 * and nothing else. Packets are gathered: those written between two flushes leave together, up to
 * the size of a record. What waits to be sent is bounded; a full link has no room and says when it
 * has again. A peer that breaks the rules ends the link.
 *
 * Callbacks: on_open once, on_record and on_room any number of times, on_close once; none comes
 * from inside a call of this interface. packet_link_free gives no callback and may be called in any
 * callback of this link.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/link.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACKET_LINK_RECORD_SIZE = 64 << 10,         /* a record is sealed once it holds so much */
    PACKET_LINK_CONTENT_MAX = (128 << 10) + 16, /* of a record, received or sent */
    PACKET_LINK_QUEUE_BYTES = 512 << 10,        /* sealed and not yet taken by the kernel */
};

struct packet_link;

struct packet_link_callbacks {
    void (*on_open)(struct packet_link *link, void *context);
    /* The bytes are the callee's to change during the call. */
    void (*on_record)(struct packet_link *link, uint8_t *bytes, size_t size, void *context);
    /* `reason` is NULL when the peer closed between two records. */
    void (*on_close)(struct packet_link *link, const struct error *reason, void *context);
    /* There is room again after packet_link_room had none, and half the queue is gone. */
    void (*on_room)(struct packet_link *link, void *context);
};

struct packet_link_options {
    struct loop *loop;
    bool is_server;
    const char *identity; /* client */
    const uint8_t *key;   /* client: LINK_KEY_SIZE bytes, copied */
    int (*find_key)(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE]);
    int64_t handshake_timeout_ms; /* 0: 10 s */
    int64_t seal_key_bytes;       /* 0: SEAL_KEY_BYTES */
    struct packet_link_callbacks callbacks;
    void *context; /* for all callbacks, find_key too */
};

/* Takes `fd` on success only: it is made non-blocking and closed with the link. */
MUST_CHECK int packet_link_open_take(const struct packet_link_options *options, int fd,
                                     struct packet_link **out_link, struct error *error);
void packet_link_free(struct packet_link *link); /* unsent packets are lost; NULL is fine */
DEFINE_AUTO(packet_link);

/* For a new owner of an open link. */
void packet_link_set_owner(struct packet_link *link, const struct packet_link_callbacks *callbacks,
                           void *context);
bool packet_link_is_open(const struct packet_link *link);

/* Where to write the next packet with its header, PACKET_ROOM bytes at least. NULL when the queue
 * is full or the link is not open. The room stays the same until packets are added or flushed. */
uint8_t *packet_link_room(struct packet_link *link);
/* `size` bytes were written there. */
void packet_link_add(struct packet_link *link, size_t size);
/* Seals what was added and gives the kernel what it takes. */
void packet_link_flush(struct packet_link *link);

size_t packet_link_queued_bytes(const struct packet_link *link);
