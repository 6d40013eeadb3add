/*
 * Link out: the frames of a link that wait to be sent, and the form in which they leave.
 *
 * In TLS frames are a stream of bytes. In records (net/seal.h) a record holds whole frames: small
 * ones are gathered in one, a large one is sealed straight from where the caller has it, and leaves
 * while it is in the cache. A record whose content is one zero byte, which no frame is, is the
 * farewell.
 *
 * Records are sealed in the order in which they leave: in the queue none that is sealed stands
 * behind one that is not.
 */
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "net/link_tls_internal.h"
#include "net/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LINK_GATHER_SIZE = 16384, /* small frames are gathered up to this */
    LINK_FAREWELL_SIZE = 1,   /* of the farewell's content */
};

enum link_form {
    LINK_FORM_TLS,
    LINK_FORM_SEALED, /* records */
    LINK_FORM_PLAIN,  /* records that are not sealed and have no tag; for the bench */
};

struct link_chunk;

struct link_out {
    enum link_form form;
    bool is_started; /* before, frames only wait */
    bool is_bulk;    /* keeps memory for the next frames */
    int fd;
    SSL *ssl;
    const struct link_tls_keys *keys; /* to explain failures of TLS */
    struct seal *seal;
    struct link_chunk *sending; /* taken from the queue; NULL: none */
    struct list queue;          /* of struct link_chunk */
    struct list spare;          /* of struct link_chunk; the same memory serves again */
    size_t spare_count;
    size_t budget;           /* bytes that may leave before the loop turns again */
    size_t queued_bytes;     /* of frames */
    uint64_t sent_bytes;     /* of frames */
    bool is_farewell_queued; /* in records */
    bool is_broken;          /* sealing or sending failed: nothing leaves any more */
    struct error broken;
};

void link_out_init(struct link_out *out, SSL *ssl, const struct link_tls_keys *keys);
void link_out_done(struct link_out *out);
/* The handshake is done. Takes `seal`, which is NULL but for LINK_FORM_SEALED. */
void link_out_start_take(struct link_out *out, enum link_form form, int fd, struct seal *seal);

/* Queues one frame of `payload_size` bytes in all; in records a large one is sent at once, with all
 * that waits before it, while the budget lasts. */
MUST_CHECK int link_out_add(struct link_out *out, uint16_t type, const struct text *parts,
                            size_t part_count, size_t payload_size, struct error *error);
/* Sends about `budget` bytes at most, as much as the kernel takes. */
MUST_CHECK int link_out_send(struct link_out *out, struct error *error);
bool link_out_is_empty(const struct link_out *out);
/* With an empty queue: tells the peer that nothing was cut off. Returns 1 when it is told, 0 when
 * it waits to write. */
MUST_CHECK int link_out_farewell(struct link_out *out, struct error *error);
