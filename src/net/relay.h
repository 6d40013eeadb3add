/*
 * Relay: joins two stream descriptors and copies bytes both ways until both directions have ended.
 *
 * Blind: it does not look at what it carries. Each direction has one bounded buffer; a slow reader
 * slows its writer. The end of one direction is passed on by a half-close.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"

#include <stddef.h>
#include <stdint.h>

struct relay;

struct relay_counts {
    uint64_t left_to_right_bytes;
    uint64_t right_to_left_bytes;
};

struct relay_options {
    struct loop *loop;
    int left_fd, right_fd;   /* made non-blocking, closed by the relay */
    size_t buffer_bytes;     /* per direction; 0: 256 KiB */
    int64_t idle_timeout_ms; /* ends the relay when no byte moved for so long; 0: never */
    /* Bytes already read from the left, to be passed on first. */
    const void *left_pending;
    size_t left_pending_size; /* <= buffer_bytes */
    const void *right_pending;
    size_t right_pending_size;
    /* Once, when all is copied or one side failed (reason not NULL). Then relay_free it, also in
     * the callback. */
    void (*on_done)(struct relay *relay, const struct error *reason, void *context);
    void *context;
};

/* Takes both descriptors on success only. */
MUST_CHECK int relay_open_take(const struct relay_options *options, struct relay **out_relay,
                               struct error *error);
void relay_free(struct relay *relay); /* closes both ends, no callback; NULL is fine */
DEFINE_AUTO(relay);

struct relay_counts relay_counts(const struct relay *relay);
