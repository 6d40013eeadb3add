#include "net/packet.h"

#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <string.h>

_Static_assert(sizeof(struct virtio_net_hdr) == PACKET_HEADER_SIZE, "the headers change places");

#define NETWORK UINT32_C(0x0a4d0000) /* 10.77.0.0 */

enum {
    IP_HEADER_MIN = 20,
    TCP_HEADER_MIN = 20,
    UDP_HEADER_SIZE = 8,
    TCP_CHECKSUM_AT = 16,
    UDP_CHECKSUM_AT = 6,
    FLAG_NEEDS_CHECKSUM = 1,
};

/* What both headers say, each in its way. */
struct offload {
    uint16_t segment_size;
    bool needs_checksum;
};

struct ip {
    struct packet_route route;
    uint8_t protocol;
    bool is_fragment;
    size_t header_size;
    size_t transport_size; /* of the TCP or UDP header; 0 when there is none whole */
};

const char *packet_verdict_name(enum packet_verdict verdict)
{
    static const char *const names[PACKET_VERDICT_COUNT] = {
        [PACKET_PASSES] = "passes",   [PACKET_MALFORMED] = "malformed",
        [PACKET_FOREIGN] = "foreign", [PACKET_OTHER_KIND] = "other_kind",
        [PACKET_SPOOFED] = "spoofed", [PACKET_BAD_OFFLOAD] = "bad_offload",
    };
    return names[verdict];
}

uint32_t packet_address(uint32_t rank)
{
    return NETWORK + 1 + rank;
}

static uint16_t read_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t read_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint16_t read_le16(const uint8_t *at)
{
    return (uint16_t)(at[1] << 8 | at[0]);
}

static bool rank_of(uint32_t address, uint32_t rank_count, uint32_t *out_rank)
{
    const uint32_t rank = address - NETWORK - 1; /* wraps for what lies below */
    *out_rank = rank;
    return rank < rank_count;
}

static size_t transport_size(uint8_t protocol, const uint8_t *at, size_t left)
{
    if (protocol == IPPROTO_UDP)
        return left >= UDP_HEADER_SIZE ? UDP_HEADER_SIZE : 0;
    if (protocol != IPPROTO_TCP || left < TCP_HEADER_MIN)
        return 0;
    const size_t size = (size_t)(at[12] >> 4) * 4;
    return size >= TCP_HEADER_MIN && size <= left ? size : 0;
}

static enum packet_verdict read_ip(const uint8_t *packet, size_t size, uint32_t rank_count,
                                   struct ip *out)
{
    if (size < 1)
        return PACKET_MALFORMED;
    if (packet[0] >> 4 != 4)
        return PACKET_OTHER_KIND;
    if (size < IP_HEADER_MIN || size > PACKET_SIZE_MAX)
        return PACKET_MALFORMED;
    out->header_size = (size_t)(packet[0] & 0xf) * 4;
    if (out->header_size < IP_HEADER_MIN || out->header_size > size ||
        read_be16(packet + 2) != size)
        return PACKET_MALFORMED;
    out->protocol = packet[9];
    if (out->protocol != IPPROTO_TCP && out->protocol != IPPROTO_UDP &&
        out->protocol != IPPROTO_ICMP)
        return PACKET_OTHER_KIND;
    if (!rank_of(read_be32(packet + 12), rank_count, &out->route.from_rank))
        return PACKET_SPOOFED;
    if (!rank_of(read_be32(packet + 16), rank_count, &out->route.to_rank) ||
        out->route.to_rank == out->route.from_rank)
        return PACKET_FOREIGN;
    out->is_fragment = (read_be16(packet + 6) & 0x3fff) != 0; /* more to come, or not the first */
    out->transport_size =
        out->is_fragment
            ? 0
            : transport_size(out->protocol, packet + out->header_size, size - out->header_size);
    return PACKET_PASSES;
}

static bool offload_fits(const struct offload *offload, const struct ip *ip, size_t size)
{
    if (offload->needs_checksum && ip->transport_size == 0)
        return false;
    if (offload->segment_size == 0)
        return true;
    return offload->needs_checksum && ip->protocol == IPPROTO_TCP &&
           offload->segment_size >= PACKET_SEGMENT_MIN &&
           ip->header_size + ip->transport_size < size;
}

static uint16_t checksum_at(const struct ip *ip)
{
    return ip->protocol == IPPROTO_TCP ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT;
}

/* Our own kernel's word, and still only what is understood. */
static bool read_kernel_offload(const struct virtio_net_hdr *header, const struct ip *ip,
                                struct offload *out)
{
    out->needs_checksum = header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
    out->segment_size = 0;
    if (out->needs_checksum &&
        (header->csum_start != ip->header_size || header->csum_offset != checksum_at(ip)))
        return false;
    if (header->gso_type == VIRTIO_NET_HDR_GSO_NONE)
        return true;
    out->segment_size = header->gso_size;
    return header->gso_type == VIRTIO_NET_HDR_GSO_TCPV4 && header->gso_size > 0;
}

enum packet_verdict packet_from_tun(uint8_t *bytes, size_t size, uint32_t rank_count,
                                    struct packet_route *out_route)
{
    if (size < PACKET_HEADER_SIZE)
        return PACKET_MALFORMED;
    struct virtio_net_hdr kernel;
    memcpy(&kernel, bytes, sizeof(kernel));
    const size_t packet_size = size - PACKET_HEADER_SIZE;
    struct ip ip;
    const enum packet_verdict verdict =
        read_ip(bytes + PACKET_HEADER_SIZE, packet_size, rank_count, &ip);
    if (verdict != PACKET_PASSES)
        return verdict;
    struct offload offload;
    if (!read_kernel_offload(&kernel, &ip, &offload) || !offload_fits(&offload, &ip, packet_size))
        return PACKET_BAD_OFFLOAD;
    const uint8_t header[PACKET_HEADER_SIZE] = {
        (uint8_t)packet_size,
        (uint8_t)(packet_size >> 8),
        (uint8_t)offload.segment_size,
        (uint8_t)(offload.segment_size >> 8),
        offload.needs_checksum ? FLAG_NEEDS_CHECKSUM : 0,
    };
    memcpy(bytes, header, sizeof(header));
    *out_route = ip.route;
    return PACKET_PASSES;
}

enum packet_verdict packet_to_tun(uint8_t *bytes, size_t size, uint32_t rank_count,
                                  struct packet_route *out_route, size_t *out_size)
{
    static const uint8_t zeroes[5];
    if (size < PACKET_HEADER_SIZE)
        return PACKET_MALFORMED;
    const size_t packet_size = read_le16(bytes);
    if (packet_size > size - PACKET_HEADER_SIZE || bytes[4] > FLAG_NEEDS_CHECKSUM ||
        memcmp(bytes + 5, zeroes, sizeof(zeroes)) != 0)
        return PACKET_MALFORMED;
    struct ip ip;
    const enum packet_verdict verdict =
        read_ip(bytes + PACKET_HEADER_SIZE, packet_size, rank_count, &ip);
    if (verdict == PACKET_MALFORMED)
        return verdict;
    *out_size = PACKET_HEADER_SIZE + packet_size;
    if (verdict != PACKET_PASSES)
        return verdict;
    const struct offload offload = {.segment_size = read_le16(bytes + 2),
                                    .needs_checksum = bytes[4] & FLAG_NEEDS_CHECKSUM};
    if (!offload_fits(&offload, &ip, packet_size))
        return PACKET_BAD_OFFLOAD;
    struct virtio_net_hdr kernel = {0};
    if (offload.needs_checksum) {
        kernel.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        kernel.csum_start = (uint16_t)ip.header_size;
        kernel.csum_offset = checksum_at(&ip);
    }
    if (offload.segment_size > 0) {
        kernel.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
        kernel.gso_size = offload.segment_size;
        kernel.hdr_len = (uint16_t)(ip.header_size + ip.transport_size);
    }
    memcpy(bytes, &kernel, sizeof(kernel));
    *out_route = ip.route;
    return PACKET_PASSES;
}
