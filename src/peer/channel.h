/*
 * Channel: whole messages between the lender's daemon and the keeper of a lease, two processes of
 * one user, over a local socket of packets (AF_UNIX, SOCK_SEQPACKET).
 *
 *     offset  size  field
 *          0     2  type, little-endian; its meaning belongs to the two ends
 *          2     -  payload, at most LEASE_MESSAGE_SIZE_MAX
 *
 * Callbacks never come from inside a call. After on_close the channel is dead and waits for
 * channel_free, which may be called in any callback.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct channel;

struct channel_callbacks {
    /* `payload` is valid during the call. */
    void (*on_message)(struct channel *channel, uint16_t type, struct text payload, void *context);
    /* The other end is gone, or said something that is no packet of ours. */
    void (*on_close)(struct channel *channel, void *context);
    /* All that waited has been sent. May be NULL. */
    void (*on_drained)(struct channel *channel, void *context);
};

struct channel_options {
    struct loop *loop;
    size_t queue_max_bytes; /* waiting beyond what the kernel takes */
    struct channel_callbacks callbacks;
    void *context;
};

/* Takes `fd` on success only. */
MUST_CHECK int channel_open_take(const struct channel_options *options, int fd,
                                 struct channel **out_channel, struct error *error);
void channel_free(struct channel *channel); /* what waits is dropped; NULL is fine */
DEFINE_AUTO(channel);

/* EXHAUSTED, taking nothing, when too much waits (on_drained follows); UNAVAILABLE when the other
 * end is gone (on_close follows). */
MUST_CHECK int channel_send(struct channel *channel, uint16_t type, struct text payload,
                            struct error *error);
/* Stops and resumes on_message, so that a slow receiver slows its sender. */
void channel_set_paused(struct channel *channel, bool is_paused);

/* Delays the hang-up from channel_free to the end of this process. */
void channel_hold_open(const struct channel *channel);

/* Whether there is anybody at the other end, who may have said things that are yet to be read. */
bool channel_has_peer(const struct channel *channel);

/* Two connected sockets, CLOEXEC. */
MUST_CHECK int channel_pair(int out_fds[2], struct error *error);

/* A socket named FOLDER/channel. The path may be of any length. */
MUST_CHECK int channel_listen(const char *folder, int *out_fd, struct error *error);
/* UNAVAILABLE when nobody listens there, REFUSED when it is another user. *out_pid: who listens. */
MUST_CHECK int channel_connect(const char *folder, int *out_fd, pid_t *out_pid,
                               struct error *error);
/* UNAVAILABLE when nobody waits any more, REFUSED for another user's process. */
MUST_CHECK int channel_accept(int listen_fd, int *out_fd, struct error *error);
