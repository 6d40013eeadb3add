/*
 * Logbook: what the process of a lease printed and the market does not have on its disk yet.
 *
 * Bytes are counted from the first the process printed, both its streams together. What was sent
 * stays until the market says that it is kept, and is sent again after logbook_rewind: the market
 * leaves out what it knows. A book that is full has no room until something was kept, and its
 * process waits meanwhile.
 */
#pragma once

#include "base/buffer.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LOGBOOK_BYTES_MAX = 4 << 20, /* no room beyond; what a process leaves at its end still fits */
    LOGBOOK_PIECE_BYTES = 32 << 10,
};
#define LOGBOOK_LEASE_MAX (UINT64_C(64) << 20) /* of one lease; the rest is dropped */

struct logbook {
    struct buffer bytes; /* not kept yet */
    uint64_t start;      /* offset of its first byte */
    uint64_t sent;       /* offset of the next byte to be sent */
    bool is_resuming;    /* the next piece is the first on its link */
    bool has_ended;
    bool is_end_sent;
};

void logbook_init(struct logbook *book);
void logbook_done(struct logbook *book);

void logbook_add(struct logbook *book, struct text bytes);
/* The process is gone and has nothing more to say. */
void logbook_end(struct logbook *book);
bool logbook_has_room(const struct logbook *book);

/* A new link: what is not kept may have been lost on the old one. */
void logbook_rewind(struct logbook *book);
/* The next piece to send, which is then taken to be sent; false: there is none. Its bytes stay
 * until the book changes. */
bool logbook_next(struct logbook *book, struct log_message *out_log);
/* Everything before `offset` is kept. */
void logbook_kept(struct logbook *book, uint64_t offset);
/* Ended, and all of it is kept. */
bool logbook_is_settled(const struct logbook *book);
