/*
 * Packet: what may pass between the ranks of a job's private network, and how it lies in a record.
 *
 * The network is 10.77.0.0/16; rank r is 10.77.0.1 + r. Only IPv4 with TCP, UDP or ICMP from one
 * rank to another is carried: no broadcast, no multicast, nobody outside.
 *
 * In a record (net/seal.h) each packet follows a header of 10 bytes, the size of the kernel's
 * struct virtio_net_hdr, which stands in the same place when the packet is read from or written to
 * a TUN device. So the headers are exchanged where they lie and the packet is not copied.
 *
 *     offset  size  field
 *          0     2  size of the packet, little-endian
 *          2     2  segment size: a TCP packet larger than the network's MTU stands for segments
 *                   with so many bytes of payload each; 0: one packet
 *          4     1  1: the checksum of the TCP or UDP header is to be completed; 0: it is complete
 *          5     5  reserved, 0
 *         10     -  the packet, from its IPv4 header on
 *
 * The kernel's header is never taken from the peer: it is made anew from the packet itself.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACKET_HEADER_SIZE = 10,
    PACKET_SIZE_MAX = 65535,
    PACKET_ROOM = PACKET_HEADER_SIZE + PACKET_SIZE_MAX, /* of one packet with its header */
    PACKET_RANK_MAX = 4096,                             /* ranks of one network */
    PACKET_PREFIX_BITS = 16,                            /* of the network's addresses */
    PACKET_SEGMENT_MIN = 48,                            /* the least that TCP uses */
};

/* Why a packet goes no further; PACKET_PASSES: it does. */
enum packet_verdict {
    PACKET_PASSES,
    PACKET_MALFORMED,   /* cut off, sizes that do not agree */
    PACKET_OTHER_KIND,  /* not IPv4, or neither TCP, UDP nor ICMP */
    PACKET_FOREIGN,     /* to an address that is no other rank's */
    PACKET_SPOOFED,     /* from an address that is not the sender's */
    PACKET_BAD_OFFLOAD, /* segments or a checksum that the packet has no place for */
    PACKET_VERDICT_COUNT,
};
const char *packet_verdict_name(enum packet_verdict verdict);

/* In host byte order. */
uint32_t packet_address(uint32_t rank);

struct packet_route {
    uint32_t from_rank;
    uint32_t to_rank;
};

/*
 * `bytes` is what was read from a TUN device with IFF_VNET_HDR. On PACKET_PASSES the kernel's
 * header has become ours and *out_route says from whom to whom: ranks below `rank_count`, not the
 * same. Whether the sender is who it says is for the caller to compare.
 */
enum packet_verdict packet_from_tun(uint8_t *bytes, size_t size, uint32_t rank_count,
                                    struct packet_route *out_route);

/*
 * The packet at the start of `bytes`, which came from a peer; *out_size is its size with the header
 * and is set unless the verdict is PACKET_MALFORMED, after which nothing in the record can be
 * found. On PACKET_PASSES our header has become the kernel's, ready to be written.
 */
enum packet_verdict packet_to_tun(uint8_t *bytes, size_t size, uint32_t rank_count,
                                  struct packet_route *out_route, size_t *out_size);
