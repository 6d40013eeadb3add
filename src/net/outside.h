/*
 * Outside: the Internet by this machine's ordinary sockets, for IPv4 packets (libslirp).
 *
 * It has no fence of its own: what is put in has passed net/fence.h, and so has to pass what comes
 * out. It serves no names, no addresses and none of the machine's ports, and needs no privilege.
 * ICMP echo works where the machine lets this user open such a socket (net.ipv4.ping_group_range).
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct outside;

/* A packet for the job, from its IPv4 header on; called from outside_poll and outside_put. */
typedef void outside_packet_function(void *context, const uint8_t *packet, size_t size);

/* UNAVAILABLE where the library is not installed. */
MUST_CHECK int outside_open(outside_packet_function *on_packet, void *context,
                            struct outside **out_outside, struct error *error);
void outside_free(struct outside *outside); /* NULL is fine */
DEFINE_AUTO(outside);

/* Whether outside_open would find its library; loads it. */
MUST_CHECK int outside_check(struct error *error);

void outside_put(struct outside *outside, const uint8_t *packet, size_t size);

/* Appends what to wait for, at most `max` descriptors, and lowers *timeout_ms. Each fill is
 * followed by one outside_poll with the same entries. */
size_t outside_fill(struct outside *outside, struct pollfd *out_polls, size_t max, int *timeout_ms);
void outside_poll(struct outside *outside, const struct pollfd *polls, size_t count);
