/*
 * Packet relay: copies packets between two descriptors that keep packets apart (TUN devices,
 * SOCK_SEQPACKET sockets), and can make the way between them long, narrow and lossy: what tests use
 * in place of the kernel's netem, and benches as the plainest relay there is.
 *
 * Each direction has its own path. Time is the loop's clock, to the millisecond; losses come from
 * the seed, so that a run can be repeated.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"

#include <stddef.h>
#include <stdint.h>

struct packet_path {
    int64_t delay_ms;
    int64_t rate_kbit;  /* thousands of bits a second; 0: unlimited */
    uint32_t loss_ppm;  /* packets lost of a million, each by chance */
    size_t queue_bytes; /* waiting for the rate; what comes above is dropped; 0: 1 MiB */
};

struct packet_relay_options {
    struct loop *loop;
    int fds[2];                  /* non-blocking; they stay the caller's */
    struct packet_path paths[2]; /* from fds[0] to fds[1], and back */
    uint64_t seed;
};

struct packet_relay_counts {
    uint64_t packets, bytes; /* that came through */
    uint64_t lost;           /* by chance */
    uint64_t dropped;        /* the queue was full, or the other side took no more */
};

struct packet_relay;

MUST_CHECK int packet_relay_open(const struct packet_relay_options *options,
                                 struct packet_relay **out_relay, struct error *error);
void packet_relay_free(struct packet_relay *relay); /* what is on its way is lost; NULL is fine */
DEFINE_AUTO(packet_relay);

/* From now on; what is on its way keeps its time. `direction` 0: from fds[0] to fds[1]. */
void packet_relay_set_path(struct packet_relay *relay, int direction,
                           const struct packet_path *path);
struct packet_relay_counts packet_relay_counts(const struct packet_relay *relay, int direction);
