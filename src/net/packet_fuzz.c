/* Any bytes: first as what a device gave, then as a record of packets from a peer. */
#include "base/assert.h"
#include "net/packet.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 8 };

static void check_route(const struct packet_route *route)
{
    ASSERT(route->from_rank < RANKS && route->to_rank < RANKS &&
           route->from_rank != route->to_rank);
}

/* What the kernel would be told lies within the packet. */
static void check_kernel_header(const uint8_t *bytes, size_t size)
{
    uint16_t fields[4]; /* header size, segment size, checksum's start and offset */
    memcpy(fields, bytes + 2, sizeof(fields));
    const size_t packet_size = size - PACKET_HEADER_SIZE;
    ASSERT(bytes[0] <= 1 && bytes[1] <= 1);
    ASSERT(fields[0] <= packet_size && fields[2] + fields[3] + 2U <= packet_size + 2U);
    if (bytes[0])
        ASSERT((size_t)fields[2] + fields[3] + 2 <= packet_size);
    if (bytes[1])
        ASSERT(bytes[0] && fields[1] >= PACKET_SEGMENT_MIN && fields[0] < packet_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1); /* exactly as long, for the sanitizer */
    ASSERT(bytes);
    struct packet_route route;
    memcpy(bytes, data, size);
    if (packet_from_tun(bytes, size, RANKS, &route) == PACKET_PASSES) {
        check_route(&route);
        size_t back = 0;
        ASSERT(packet_to_tun(bytes, size, RANKS, &route, &back) == PACKET_PASSES && back == size);
    }
    memcpy(bytes, data, size);
    for (size_t done = 0; done < size;) {
        size_t packet_size = 0;
        const enum packet_verdict verdict =
            packet_to_tun(bytes + done, size - done, RANKS, &route, &packet_size);
        if (verdict == PACKET_MALFORMED)
            break;
        ASSERT(packet_size > PACKET_HEADER_SIZE && packet_size <= size - done);
        if (verdict == PACKET_PASSES) {
            check_route(&route);
            check_kernel_header(bytes + done, packet_size);
        }
        done += packet_size;
    }
    free(bytes);
    return 0;
}
