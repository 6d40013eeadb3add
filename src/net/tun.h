/*
 * TUN: a network device whose packets a program reads and writes, made in the network namespace of
 * another process.
 *
 * No capability is needed where the namespace belongs to a user namespace of this user, as that of
 * a sandbox does: a child enters both, makes the device there and hands its descriptor back. The
 * device lives as long as the descriptor. /dev/net/tun must be there and open to this user.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tun_options {
    pid_t inside;     /* a process in the network namespace; 0: this one's own */
    const char *name; /* of the device */
    uint32_t address; /* IPv4, host byte order */
    int prefix_bits;  /* of the network that is reached through it */
    int mtu;
    bool is_default;  /* everything that has no other route goes there too */
    bool has_offload; /* TCP is handed over in large packets, checksums are left to be completed */
    bool is_lossless; /* what carries the packets repeats what is lost: TCP in the namespace has the
                         control that neither paces nor probes; of a namespace of its own only */
};

/*
 * Non-blocking and close-on-exec; reads and writes are one packet behind a struct virtio_net_hdr
 * (see net/packet.h). Waits for the child, some milliseconds. UNAVAILABLE says what is missing.
 */
MUST_CHECK int tun_open(const struct tun_options *options, int *out_fd, struct error *error);

/* Whether this user may make one. UNAVAILABLE says what is missing. */
MUST_CHECK int tun_check(struct error *error);
