/*
 * Job network: the private network of one worker's lease: a TUN device in its sandbox, and a path
 * to every other rank of its job.
 *
 * It listens for direct connections on a port of its own; where it may be reached is told to the
 * market, which tells the others. Visitors must name a ticket within seconds and prove the key
 * after it; only so many wait at a time.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/packet_switch.h"
#include "peer/path.h"

#include <stdint.h>
#include <sys/types.h>

enum { JOB_NETWORK_RANKS = 1024, JOB_NETWORK_MTU = 16384 };

struct job_network;

struct job_network_options {
    struct loop *loop;
    uint64_t lease;
    uint32_t rank;          /* below JOB_NETWORK_RANKS */
    struct host_port relay; /* the market's link port */
    bool is_direct;         /* listens for other ranks and dials them; else all goes by the relay */
};

MUST_CHECK int job_network_open(const struct job_network_options *options,
                                struct job_network **out_network, struct error *error);
void job_network_free(struct job_network *network); /* NULL is fine */
DEFINE_AUTO(job_network);

/* For sandbox_options.set_up_network; `context` is the network. */
int job_network_set_up(void *context, pid_t inside, struct error *error);

/* Where it may be reached directly; returns how many, at most PATH_CANDIDATE_MAX. */
size_t job_network_addresses(const struct job_network *network,
                             struct host_port out[PATH_CANDIDATE_MAX]);

struct job_network_peer {
    uint64_t lease;
    uint64_t fence;
    uint32_t rank;
    const uint8_t *key; /* of these two leases; LINK_KEY_SIZE bytes */
    uint8_t ticket[LEASE_TICKET_SIZE];
    const struct host_port *candidates;
    size_t candidate_count;
};

/* Another rank, or what is new of one; a rank's new lease takes the place of its old. */
MUST_CHECK int job_network_add_peer(struct job_network *network,
                                    const struct job_network_peer *peer, struct error *error);

/* Zeroes before the device is there. */
struct packet_switch_counts job_network_counts(const struct job_network *network);
/* Ranks that packets reach now, and of them directly. */
uint32_t job_network_linked_count(const struct job_network *network, uint32_t *out_direct);
