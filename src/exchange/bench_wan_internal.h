/*
 * Inside of the wide-area bench: what its processes say to each other over a socketpair, one
 * message at a time.
 *
 *     host -> bench: READY in its namespace, LISTENING (the server), DONE with figures; FAILED
 *     bench -> host: GO, REPORT (the server)
 */
#pragma once

#include "exchange/bench_wan.h"
#include "net/address.h"
#include "net/link.h"

/* The lead's host; those of the other ranges follow, and then the workers. The lead is dialled by
 * other servers at the next port. */
enum { WAN_SERVER = 0, WAN_PORT = 7600, WAN_LEASE_RANGE = 100 };

enum wan_word { WAN_READY, WAN_LISTENING, WAN_GO, WAN_REPORT, WAN_DONE, WAN_FAILED };

struct wan_worker_figures {
    double alone_steps_per_s;
    double steps_per_s, steps_per_s_settled;
    double link_cpu_share;
    double waiting_share;
    double commit_ms;
    enum codec codec;
};

struct wan_server_figures {
    uint64_t commits, steps;
    uint64_t counted_bytes; /* of pushes, in the first range */
    double cpu_s;
};

struct wan_message {
    enum wan_word word;
    union {
        struct wan_worker_figures worker;
        struct wan_server_figures server;
        struct error error;
    };
};

MUST_CHECK int wan_say(int fd, const struct wan_message *message, struct error *error);
/* The next message, which must be `expected`; what a FAILED says is the error. */
MUST_CHECK int wan_hear(int fd, enum wan_word expected, struct wan_message *out_message,
                        struct error *error);

void wan_key(uint64_t lease, uint8_t out_key[LINK_KEY_SIZE]);
/* Where a host listens. */
void wan_target(uint32_t host, uint16_t port, struct host_port *out);
MUST_CHECK int wan_listen(uint32_t host, uint16_t port, int *out_fd, struct error *error);

/* The lives of the processes, from READY to DONE. */
MUST_CHECK int wan_server_live(const struct bench_wan_options *options, int fd,
                               struct error *error);
MUST_CHECK int wan_range_live(const struct bench_wan_options *options, uint32_t server, int fd,
                              struct error *error);
MUST_CHECK int wan_worker_live(const struct bench_wan_options *options, uint32_t rank, int fd,
                               struct error *error);
