/*
 * Packet switch: carries the packets of one rank's TUN device to the other ranks of its job, and
 * theirs to it, over one packet link per rank.
 *
 * What passes is in net/packet.h; on top of it the rank itself may only send from its own address,
 * and what comes over a link must be from that link's rank and to this one. Everything else is
 * dropped and counted. A packet to a rank without a link is dropped, as by a router without a
 * route.
 *
 * When the links to all ranks that are being talked to are full, the device is not read and the
 * kernel holds its senders back. When only some are, or one has not moved for a while, packets to
 * those are dropped, so that one slow rank does not hold up the rest.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"
#include "net/packet.h"
#include "net/packet_link.h"

#include <stdint.h>

struct packet_switch;

struct packet_switch_counts {
    uint64_t bytes_in, packets_in; /* to the device; packets with their IP headers */
    uint64_t bytes_out, packets_out;
    uint64_t dropped_out[PACKET_VERDICT_COUNT]; /* of what the device sent, by why */
    uint64_t dropped_in[PACKET_VERDICT_COUNT];  /* of what links brought */
    uint64_t no_link;                           /* to a rank that is not connected */
    uint64_t no_room;                           /* its link was full */
    uint64_t refused;                           /* the device did not take it */
};

struct packet_switch_options {
    struct loop *loop;
    int tun_fd; /* from tun_open */
    uint32_t rank, rank_count;
    /* The link to this rank ended and is gone; `reason` as in packet_link.h. */
    void (*on_detached)(struct packet_switch *packet_switch, uint32_t rank,
                        const struct error *reason, void *context);
    void *context;
};

/* Takes the descriptor on success only. */
MUST_CHECK int packet_switch_open_take(const struct packet_switch_options *options,
                                       struct packet_switch **out_switch, struct error *error);
void packet_switch_free(struct packet_switch *packet_switch); /* its links too; NULL is fine */
DEFINE_AUTO(packet_switch);

/* Takes an open link to that rank; one it had before is closed without a callback. */
void packet_switch_attach_take(struct packet_switch *packet_switch, uint32_t rank,
                               struct packet_link *link);
/* Closes the link to that rank, if there is one, without a callback. */
void packet_switch_detach(struct packet_switch *packet_switch, uint32_t rank);
bool packet_switch_is_attached(const struct packet_switch *packet_switch, uint32_t rank);

const struct packet_switch_counts *packet_switch_counts(const struct packet_switch *packet_switch);
