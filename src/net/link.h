/*
 * Link: frames over a stream descriptor (TCP or a Unix socketpair), encrypted by TLS 1.3 with a
 * key that both ends hold, without certificates.
 *
 * The client names the key by an identity, the server looks it up. One suite,
 * TLS_AES_128_GCM_SHA256, and one group, X25519 (forward secrecy), are spoken; a peer without the
 * key is refused by both ends. After the handshake frames travel in TLS records, or, where both
 * ends ask for it (is_bulk), in records of our own that cost less: sealed by the same cipher under
 * keys of that handshake (net/seal.h), with as much proved about each byte, its order and the end.
 *
 * Order of callbacks: on_open once, on_frame, on_placed and on_drained any number of times,
 * on_close once.
 * After on_close the link is dead and waits for link_free. link_free gives no callback and may be
 * called in any callback of this link.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINK_KEY_SIZE = 32, LINK_IDENTITY_SIZE_MAX = 128, LINK_HEAD_SIZE = 8 };

struct link;

struct link_callbacks {
    /* The handshake is done; `identity` is the client's, on both ends. */
    void (*on_open)(struct link *link, struct text identity, void *context);
    /* `payload` is valid during the call. */
    void (*on_frame)(struct link *link, uint16_t type, struct text payload, void *context);
    /* `reason` is NULL when the peer, or link_finish, ended it in good order between two frames. */
    void (*on_close)(struct link *link, const struct error *reason, void *context);
    /* The send queue fell to queue_low_bytes after it had been above. May be NULL. */
    void (*on_drained)(struct link *link, void *context);
    /*
     * Bulk links, for large frames; both may be NULL. Where the payload of a frame of this type is
     * to be written from its LINK_HEAD_SIZE bytes on, `size` bytes; NULL: anywhere. The frame then
     * comes by on_placed instead of on_frame. Until it does nothing is proved of the type, the size
     * or what is written; a link that ends before leaves any bytes there. Calls no link function.
     */
    void *(*find_place)(struct link *link, uint16_t type, size_t size, void *context);
    void (*on_placed)(struct link *link, uint16_t type, struct text head, struct text body,
                      void *context);
};

struct link_options {
    struct loop *loop;
    bool is_server;
    /* Client: who we are. */
    const char *identity;
    const uint8_t *key; /* LINK_KEY_SIZE bytes, copied */
    /* Server: fills the key and returns 0, or returns -1 for an identity that is unknown. */
    int (*find_key)(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE]);

    uint32_t payload_max;         /* of frames received and sent; 0: 1 MiB */
    size_t queue_max_bytes;       /* waiting to be sent; 0: payload_max + 1 MiB */
    size_t queue_low_bytes;       /* for on_drained; 0: a quarter of queue_max_bytes */
    int64_t handshake_timeout_ms; /* 0: 10 s */

    bool is_bulk;              /* for much data: larger records, where the peer wants them too */
    int64_t seal_key_bytes;    /* of those, under one key; 0: SEAL_KEY_BYTES */
    uint64_t seal_key_records; /* the same; 0: 2^24. Both must be the peer's */
    /* Nothing is encrypted or checked after the handshake: what `souk bench exchange` measures
     * encryption against, and for nothing else. Both ends must ask for it. */
    bool is_bench_plain;

    struct link_callbacks callbacks; /* copied */
    void *context;                   /* for all callbacks, find_key too */
};

/* Takes `fd` on success only: it is made non-blocking and closed with the link. */
MUST_CHECK int link_open_take(const struct link_options *options, int fd, struct link **out_link,
                              struct error *error);
/* Drops the connection at once, unsent frames too. NULL is fine. */
void link_free(struct link *link);
DEFINE_AUTO(link);

/*
 * Queues one frame whose payload is the parts in order; they are copied. Before on_open it waits
 * for the handshake. EXHAUSTED, queueing nothing, when the queue is full (wait for on_drained);
 * INVALID over payload_max; UNAVAILABLE when the link is closed or finishing.
 */
MUST_CHECK int link_send(struct link *link, uint16_t type, const struct text *parts,
                         size_t part_count, struct error *error);
/* The same for one part. */
MUST_CHECK int link_send_text(struct link *link, uint16_t type, struct text payload,
                              struct error *error);

/* Sends what is queued, then closes: on_close(NULL) follows. */
void link_finish(struct link *link);

/* Stops and resumes on_frame, so that a slow receiver slows its sender. */
void link_set_paused(struct link *link, bool is_paused);

/* About so many bytes of payload are on their way: frames of them may be handed out together, a
 * millisecond or two later, which spares the loop to wake for each packet. */
void link_expect(struct link *link, size_t bytes);

bool link_is_open(const struct link *link); /* between on_open and on_close */
size_t link_queued_bytes(const struct link *link);
/* Payload and headers, before encryption. */
uint64_t link_received_bytes(const struct link *link);
uint64_t link_sent_bytes(const struct link *link);
void link_set_context(struct link *link, void *context);
