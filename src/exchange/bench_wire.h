/*
 * Bench wire: a slow, long network between hosts on one machine, for kernels without netem.
 *
 * Each host is a TUN device in a network namespace of its own; the wire is a thread that carries
 * packets between them. A packet waits in its sender's queue for its turn on the sender's line, is
 * on the way for a fixed time, and waits for its turn on the receiver's line. A line has one speed
 * each way; one that is WIRE_QUEUE_NS behind loses what comes next, as a router with a full buffer
 * does. So everything the hosts' TCP knows of the network is what it would know of a real one.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stdint.h>

enum { BENCH_WIRE_HOSTS_MAX = 64, BENCH_WIRE_MTU = 1500, BENCH_WIRE_PREFIX_BITS = 24 };
#define WIRE_QUEUE_NS INT64_C(100000000)

struct bench_wire_host {
    int tun_fd;         /* of a device with bench_wire_address and MTU BENCH_WIRE_MTU; borrowed */
    double bytes_per_s; /* of its line, each way; 0: no limit */
};

struct bench_wire_options {
    const struct bench_wire_host *hosts; /* copied */
    uint32_t host_count;
    int64_t one_way_ns;
};

struct bench_wire_counts {
    uint64_t carried_bytes; /* of IP packets that arrived */
    uint64_t carried_packets, lost_packets;
};

struct bench_wire;

/* Of the host's device, IPv4 in host byte order. */
uint32_t bench_wire_address(uint32_t host);

MUST_CHECK int bench_wire_open(const struct bench_wire_options *options,
                               struct bench_wire **out_wire, struct error *error);
/* Stops carrying and tells what was carried. */
void bench_wire_stop(struct bench_wire *wire, struct bench_wire_counts *out_counts);
void bench_wire_free(struct bench_wire *wire); /* stops it, too; NULL is fine */
DEFINE_AUTO(bench_wire);
