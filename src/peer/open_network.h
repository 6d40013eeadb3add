/*
 * Open network: the Internet for one lease, as its keeper sees it. A second device in the sandbox,
 * to which everything goes that is not the job network's, and a gateway (peer/gateway.h) at its
 * other end.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"
#include "peer/gateway.h"
#include "peer/keeper_message.h"

#include <stdint.h>
#include <sys/types.h>

struct open_network;

/* The gateway has ended, which it does not by itself; the lease is without the Internet. */
typedef void open_network_gone_function(void *context);

struct open_network_options {
    struct loop *loop;
    uint64_t lease;
    struct gateway_order order;
    open_network_gone_function *on_gone;
    void *context;
};

struct open_network *open_network_new(const struct open_network_options *options);
/* Ends the gateway. NULL is fine. */
void open_network_free(struct open_network *network);
DEFINE_AUTO(open_network);

/* Puts the device into the sandbox of `inside` and starts the gateway; see sandbox.h. */
MUST_CHECK int open_network_set_up(struct open_network *network, pid_t inside, struct error *error);

/* What a lease may send and receive in a second at that level; 0: nothing. */
int64_t open_network_rate(const struct open_terms *terms, enum yield_level level);
void open_network_set_rate(struct open_network *network, int64_t bytes_per_s);
/* Addresses that the job is not to reach: one of the market's, and the one that the market sees
 * this machine at. In host byte order; 0: nothing new is known. */
void open_network_set_market(struct open_network *network, uint32_t address, uint32_t seen);

struct open_network_counts {
    uint64_t bytes_in, bytes_out;
    uint64_t refused; /* packets */
};
struct open_network_counts open_network_counts(const struct open_network *network);

/* Whether leases can have the Internet here; UNAVAILABLE says what is missing. Forks. */
MUST_CHECK int open_network_check(struct error *error);
