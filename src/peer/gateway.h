/*
 * Gateway: the process between one lease and the Internet.
 *
 * Its keeper starts it as `souk gateway`, with the sandbox's TUN device. Every packet of the job
 * passes the fence (net/fence.h) before anything else looks at it, then goes out by ordinary
 * sockets (net/outside.h); what comes back is the job's if it asked for it. Before the first packet
 * the process gives up everything but sockets (sandbox/confine.h): a job that found a hole in the
 * library would be nobody, without a file, a process or the lease's key.
 *
 * The keeper orders it about over one socket and sees what passed in shared memory. It ends with
 * the keeper.
 */
#pragma once

#include "net/address.h"
#include "net/fence.h"
#include "peer/open_terms.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    GATEWAY_CONTROL_FD = 3, /* SOCK_SEQPACKET: struct gateway_order */
    GATEWAY_TUN_FD = 4,
    GATEWAY_COUNTS_FD = 5, /* a memfd: struct gateway_counts */

    GATEWAY_HOST_MAX = 2,     /* names of the market */
    GATEWAY_SOCKET_MAX = 256, /* connections of a lease at a time */
    GATEWAY_DATA_BYTES = 128 << 20,
};

/* The whole state each time; the reader is the very same program. */
struct gateway_order {
    int64_t bytes_per_s; /* in and out together; 0: nothing passes */
    uint32_t market;     /* an address of the market's; 0: none is known */
    uint32_t seen;       /* where the market sees this machine, as a rule its router; 0: unknown */
    uint32_t closed_count; /* what the owner keeps jobs away from */
    struct fence_network closed[OPEN_CLOSED_MAX];
    /* Looked up once, with the first order. */
    char hosts[GATEWAY_HOST_MAX][ADDRESS_HOST_SIZE];
};

struct gateway_counts {
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t refused; /* packets */
};

/* The program `souk gateway`; returns its exit status. */
int gateway_main(int argc, char **argv);
