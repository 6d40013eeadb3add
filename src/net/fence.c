#include "net/fence.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum {
    IP_HEADER_SIZE = 20,
    TCP_HEADER_MIN = 20,
    UDP_HEADER_SIZE = 8,
    ICMP_HEADER_SIZE = 8,
    ICMP_ECHO_REPLY_TYPE = 0,
    ICMP_UNREACHABLE_TYPE = 3,
    ICMP_ECHO_TYPE = 8,
    ICMP_EXPIRED_TYPE = 11,
    ICMP_PROHIBITED_CODE = 13,
    QUOTED_SIZE = IP_HEADER_SIZE + 8,
    REFUSAL_TTL = 64,
    SMTP_PORT = 25,
};

/* RFC 6890 and what was registered since, less what is reached like any other address; and the one
 * public address by which a cloud (Azure) speaks to its machines. */
static const struct fence_network special_networks[] = {
    {UINT32_C(0x00000000), 8},  /* this network */
    {UINT32_C(0x0a000000), 8},  /* private */
    {UINT32_C(0x64400000), 10}, /* shared by a provider's customers; Alibaba's metadata */
    {UINT32_C(0x7f000000), 8},  /* loopback */
    {UINT32_C(0xa9fe0000), 16}, /* link local; the clouds' metadata */
    {UINT32_C(0xac100000), 12}, /* private */
    {UINT32_C(0xc0000000), 24}, /* protocol assignments; Oracle's metadata */
    {UINT32_C(0xc0000200), 24}, /* documentation */
    {UINT32_C(0xc0586300), 24}, /* 6to4 relays, deprecated */
    {UINT32_C(0xc0a80000), 16}, /* private */
    {UINT32_C(0xc6120000), 15}, /* benchmarks */
    {UINT32_C(0xc6336400), 24}, /* documentation */
    {UINT32_C(0xcb007100), 24}, /* documentation */
    {UINT32_C(0xe0000000), 4},  /* multicast */
    {UINT32_C(0xf0000000), 4},  /* reserved, broadcast */
    {UINT32_C(0xa83f8110), 32}, /* 168.63.129.16 */
};

struct packet {
    uint8_t protocol;
    uint32_t source, destination;
    uint16_t source_port, destination_port; /* of an ICMP echo its identifier */
    uint8_t icmp_type;
};

const char *fence_verdict_name(enum fence_verdict verdict)
{
    static const char *const names[FENCE_VERDICT_COUNT] = {
        [FENCE_PASSES] = "passes",
        [FENCE_MALFORMED] = "malformed",
        [FENCE_OTHER_KIND] = "other_kind",
        [FENCE_FRAGMENT] = "fragment",
        [FENCE_SPOOFED] = "spoofed",
        [FENCE_INSIDE] = "inside",
        [FENCE_MAIL] = "mail",
    };
    return names[verdict];
}

/* ---- Networks -------------------------------------------------------------------------------- */

void fence_init(struct fence *fence)
{
    fence->count = 0;
    fence->is_shut = true;
}

void fence_open(struct fence *fence)
{
    fence->is_shut = false;
}

void fence_add(struct fence *fence, struct fence_network network)
{
    for (size_t i = 0; i < fence->count; i++)
        if (fence->networks[i].address == network.address &&
            fence->networks[i].bits == network.bits)
            return;
    if (fence->count < FENCE_NETWORKS_MAX)
        fence->networks[fence->count++] = network;
    else
        fence->is_shut = true;
}

static bool network_has(const struct fence_network *network, uint32_t address)
{
    const uint32_t mask = network->bits == 0 ? 0 : ~UINT32_C(0) << (32 - network->bits);
    return ((network->address ^ address) & mask) == 0;
}

bool fence_is_public(uint32_t address)
{
    for (size_t i = 0; i < sizeof(special_networks) / sizeof(*special_networks); i++)
        if (network_has(&special_networks[i], address))
            return false;
    return true;
}

bool fence_has_outside(const struct fence *fence, uint32_t address)
{
    if (fence->is_shut || !fence_is_public(address))
        return false;
    for (size_t i = 0; i < fence->count; i++)
        if (network_has(&fence->networks[i], address))
            return false;
    return true;
}

int fence_network_parse(struct text text, struct fence_network *out, struct error *error)
{
    struct text address, bits;
    char digits[INET_ADDRSTRLEN];
    struct in_addr parsed;
    uint64_t count = 0;
    if (!text_cut(text, '/', &address, &bits))
        bits = TEXT("32");
    if (text_copy(address, digits, sizeof(digits), error) < 0 ||
        inet_pton(AF_INET, digits, &parsed) != 1 || text_parse_u64(bits, &count, error) < 0 ||
        count > 32)
        return error_set(error, ERROR_INVALID, "\"%.*s\" is no IPv4 network such as 130.75.0.0/16",
                         (int)(text.size < 40 ? text.size : 40), text.data);
    *out = (struct fence_network){ntohl(parsed.s_addr), (uint32_t)count};
    return 0;
}

/* ---- Packets --------------------------------------------------------------------------------- */

static uint16_t read_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t read_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static enum fence_verdict read_tcp_or_udp(const uint8_t *at, size_t left, struct packet *out)
{
    const bool is_tcp = out->protocol == IPPROTO_TCP;
    if (left < (is_tcp ? TCP_HEADER_MIN : UDP_HEADER_SIZE))
        return FENCE_MALFORMED;
    const size_t header_size = is_tcp ? (size_t)(at[12] >> 4) * 4 : UDP_HEADER_SIZE;
    if (is_tcp && (header_size < TCP_HEADER_MIN || header_size > left))
        return FENCE_MALFORMED;
    if (!is_tcp && read_be16(at + 4) != left)
        return FENCE_MALFORMED;
    out->source_port = read_be16(at);
    out->destination_port = read_be16(at + 2);
    return FENCE_PASSES;
}

static enum fence_verdict read_icmp(const uint8_t *at, size_t left, struct packet *out)
{
    if (left < ICMP_HEADER_SIZE)
        return FENCE_MALFORMED;
    out->icmp_type = at[0];
    out->source_port = out->destination_port = read_be16(at + 4);
    return FENCE_PASSES;
}

static enum fence_verdict read_packet(const uint8_t *bytes, size_t size, struct packet *out)
{
    if (size < 1)
        return FENCE_MALFORMED;
    if (bytes[0] >> 4 != 4)
        return FENCE_OTHER_KIND;
    if (size < IP_HEADER_SIZE || size > FENCE_PACKET_MAX ||
        (size_t)(bytes[0] & 0xf) * 4 != IP_HEADER_SIZE || read_be16(bytes + 2) != size)
        return FENCE_MALFORMED;
    *out = (struct packet){.protocol = bytes[9],
                           .source = read_be32(bytes + 12),
                           .destination = read_be32(bytes + 16)};
    if (read_be16(bytes + 6) & 0x3fff) /* more to come, or not the first */
        return FENCE_FRAGMENT;
    if (out->protocol == IPPROTO_TCP || out->protocol == IPPROTO_UDP)
        return read_tcp_or_udp(bytes + IP_HEADER_SIZE, size - IP_HEADER_SIZE, out);
    if (out->protocol == IPPROTO_ICMP)
        return read_icmp(bytes + IP_HEADER_SIZE, size - IP_HEADER_SIZE, out);
    return FENCE_OTHER_KIND;
}

enum fence_verdict fence_check_out(const struct fence *fence, const uint8_t *packet, size_t size,
                                   struct fence_flow *out_flow)
{
    struct packet found;
    const enum fence_verdict verdict = read_packet(packet, size, &found);
    if (verdict != FENCE_PASSES)
        return verdict;
    if (found.source != FENCE_JOB_ADDRESS)
        return FENCE_SPOOFED;
    if (found.protocol == IPPROTO_ICMP && found.icmp_type != ICMP_ECHO_TYPE)
        return FENCE_OTHER_KIND;
    if (!fence_has_outside(fence, found.destination))
        return FENCE_INSIDE;
    if (found.protocol == IPPROTO_TCP && found.destination_port == SMTP_PORT)
        return FENCE_MAIL;
    *out_flow = (struct fence_flow){.protocol = found.protocol,
                                    .remote = found.destination,
                                    .job_port = found.source_port,
                                    .remote_port = found.destination_port};
    return FENCE_PASSES;
}

enum fence_verdict fence_check_in(const struct fence *fence, const uint8_t *packet, size_t size,
                                  struct fence_flow *out_flow, bool *out_is_error)
{
    struct packet found;
    const enum fence_verdict verdict = read_packet(packet, size, &found);
    if (verdict != FENCE_PASSES)
        return verdict;
    if (found.destination != FENCE_JOB_ADDRESS)
        return FENCE_SPOOFED;
    *out_is_error =
        found.protocol == IPPROTO_ICMP && found.source == FENCE_GATEWAY_ADDRESS &&
        (found.icmp_type == ICMP_UNREACHABLE_TYPE || found.icmp_type == ICMP_EXPIRED_TYPE);
    if (*out_is_error)
        return FENCE_PASSES;
    if (found.protocol == IPPROTO_ICMP && found.icmp_type != ICMP_ECHO_REPLY_TYPE)
        return FENCE_OTHER_KIND;
    if (!fence_has_outside(fence, found.source))
        return FENCE_INSIDE;
    *out_flow = (struct fence_flow){.protocol = found.protocol,
                                    .remote = found.source,
                                    .job_port = found.destination_port,
                                    .remote_port = found.source_port};
    return FENCE_PASSES;
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void write_be16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void write_be32(uint8_t *at, uint32_t value)
{
    write_be16(at, (uint16_t)(value >> 16));
    write_be16(at + 2, (uint16_t)value);
}

/* Of an even number of bytes. */
static uint16_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i += 2)
        sum += read_be16(bytes + i);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

size_t fence_write_refusal(const uint8_t *packet, size_t size, uint8_t out[FENCE_REFUSAL_SIZE])
{
    struct packet found;
    if (read_packet(packet, size, &found) != FENCE_PASSES || found.source != FENCE_JOB_ADDRESS ||
        found.protocol == IPPROTO_ICMP)
        return 0;
    memset(out, 0, FENCE_REFUSAL_SIZE);
    out[0] = 0x45;
    write_be16(out + 2, FENCE_REFUSAL_SIZE);
    out[8] = REFUSAL_TTL;
    out[9] = IPPROTO_ICMP;
    write_be32(out + 12, FENCE_GATEWAY_ADDRESS);
    write_be32(out + 16, FENCE_JOB_ADDRESS);
    write_be16(out + 10, checksum(out, IP_HEADER_SIZE));
    uint8_t *icmp = out + IP_HEADER_SIZE;
    icmp[0] = ICMP_UNREACHABLE_TYPE;
    icmp[1] = ICMP_PROHIBITED_CODE;
    memcpy(icmp + ICMP_HEADER_SIZE, packet, QUOTED_SIZE);
    write_be16(icmp + 2, checksum(icmp, ICMP_HEADER_SIZE + QUOTED_SIZE));
    return FENCE_REFUSAL_SIZE;
}
