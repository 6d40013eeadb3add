/*
 * Stream: one relayed byte stream of a lease: dials the market's link port, names its ticket, and
 * copies bytes between that TCP connection and a socketpair whose other end goes into the sandbox.
 *
 * The sandbox never gets the TCP socket itself: a connected socket can be dialled elsewhere.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/relay.h"
#include "runtime/lease_message.h"

struct stream;

struct stream_options {
    struct loop *loop;
    struct host_port target;
    uint8_t ticket[LEASE_TICKET_SIZE];
    uint64_t seed; /* of the pauses between attempts */
    /* Connected: `fd` is the callee's. Once; the market being away only delays it. */
    void (*on_ready)(struct stream *stream, int fd, void *context);
    /* After on_ready: the stream ended; `reason` is NULL for a good end. Once. stream_free it. */
    void (*on_done)(struct stream *stream, const struct error *reason, void *context);
    void *context;
};

/* No callback comes from inside this call. */
struct stream *stream_start(const struct stream_options *options);
void stream_free(struct stream *stream); /* NULL is fine; also in its callbacks */
DEFINE_AUTO(stream);

struct stream_counts {
    uint64_t bytes_in; /* into the sandbox */
    uint64_t bytes_out;
};
struct stream_counts stream_counts(const struct stream *stream);
