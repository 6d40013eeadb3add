/*
 * Link in: bytes that a link received, and the frames found in them; link_out_internal.h says in
 * which forms they come.
 *
 * Records are opened where they lie and frames are handed out from there. A large frame may have a
 * place of its own: then it is opened into that, and without encryption received into it. Memory
 * grows with the bytes that have come, not with what a header announces.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "net/link.h"
#include "net/link_out_internal.h"
#include "net/link_tls_internal.h"
#include "net/seal.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINK_PLACED_HEAD_SIZE = FRAME_HEADER_SIZE + LINK_HEAD_SIZE };

/* The frame at hand, where it has a place of its own. */
struct link_place {
    uint16_t type;
    uint8_t head[LINK_HEAD_SIZE];
    uint8_t *body; /* NULL: it has none */
    size_t size, done;
};

struct link_in {
    enum link_form form;
    int fd;
    SSL *ssl;
    const struct link_tls_keys *keys; /* to explain failures of TLS */
    struct seal *seal;
    uint32_t payload_max;
    struct buffer received;
    size_t start;          /* of what is not yet handed out */
    size_t open_size;      /* frames of an opened record from there on; 0: none */
    size_t expected_bytes; /* that the peer is about to send */
    size_t waited_bytes;   /* came since waited_ns */
    int64_t waited_ns;
    int wake_size; /* bytes that wake the loop; 0: not set */
    uint64_t received_bytes;
    void *(*find_place)(void *context, uint16_t type, size_t size); /* NULL: no frame has one */
    void *context;                                                  /* of find_place */
    struct link_place place;
};

enum link_in_result {
    LINK_IN_FAILED = -1,
    LINK_IN_WAIT = 0,
    LINK_IN_MORE = 1,   /* a frame, or bytes that may hold one */
    LINK_IN_END = 2,    /* the peer said farewell */
    LINK_IN_PLACED = 3, /* a frame with a place; the payload is its head */
};

void link_in_init(struct link_in *in, SSL *ssl, const struct link_tls_keys *keys,
                  uint32_t payload_max);
void link_in_done(struct link_in *in);
/* The handshake is done. Takes `seal`, which is NULL but for LINK_FORM_SEALED. */
void link_in_start_take(struct link_in *in, enum link_form form, int fd, struct seal *seal);

/* The next frame, valid until the next call of any of these; LINK_IN_WAIT: it needs more bytes. */
MUST_CHECK enum link_in_result link_in_frame(struct link_in *in, struct frame *out_frame,
                                             struct error *error);
/* After LINK_IN_PLACED: what lies in the place. */
struct text link_in_take_body(struct link_in *in);
/* Reads once: LINK_IN_WAIT when nothing is there. */
MUST_CHECK enum link_in_result link_in_read(struct link_in *in, size_t *out_size,
                                            struct error *error);
/* See link_expect. */
void link_in_expect(struct link_in *in, size_t bytes);
/* Before the loop waits: where much is expected it is not woken for each packet. Whether it must
 * look again soon: less may have come than was expected. */
MUST_CHECK bool link_in_wait(struct link_in *in, const struct clock *clock);
/* Bytes that are no whole frame yet. */
size_t link_in_left(const struct link_in *in);
/* Whether bytes are here that no descriptor tells of. */
bool link_in_has_hidden(const struct link_in *in);
