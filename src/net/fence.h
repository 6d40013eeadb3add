/*
 * Fence: which packets of a job with the Internet go out, and which come in.
 *
 * Out goes IPv4 with TCP, UDP or an ICMP echo request from the job's own address to an address that
 * is public: none of RFC 6890's private, local and special ranges, no cloud's own, none of the
 * networks that were added (this machine's, the owner's list, the market). TCP to port 25 never
 * goes out: mail would be taken for the owner's. In come answers from such addresses, and the
 * gateway's own ICMP errors; whether anybody asked is for net/flow_table.h. Fragments and IP
 * options are refused both ways: neither is needed, and both have been used to get past filters.
 *
 * Addresses and ports are in host byte order. A fence belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FENCE_JOB_ADDRESS     UINT32_C(0x0a4e000f) /* 10.78.0.15 */
#define FENCE_GATEWAY_ADDRESS UINT32_C(0x0a4e0002) /* 10.78.0.2 */

enum {
    FENCE_NETWORKS_MAX = 1024,
    FENCE_PACKET_MAX = 1500, /* the device's MTU */
    FENCE_REFUSAL_SIZE = 56, /* an ICMP error around the first 28 bytes of a packet */
};

struct fence_network {
    uint32_t address;
    uint32_t bits; /* of its prefix, 0 to 32 */
};

struct fence {
    struct fence_network networks[FENCE_NETWORKS_MAX];
    size_t count;
    bool is_shut; /* nothing passes: more networks than there is room for, or nobody knows them */
};

/* Shut until it is opened. */
void fence_init(struct fence *fence);
void fence_open(struct fence *fence);
/* One too many shuts it. */
void fence_add(struct fence *fence, struct fence_network network);

/* Whether a job may be allowed to reach the address on any machine. */
bool fence_is_public(uint32_t address);
/* Whether this fence lets it be reached. */
bool fence_has_outside(const struct fence *fence, uint32_t address);

/* "130.75.0.0/16", or an address alone. */
MUST_CHECK int fence_network_parse(struct text text, struct fence_network *out,
                                   struct error *error);

enum fence_verdict {
    FENCE_PASSES,
    FENCE_MALFORMED,  /* cut off, sizes that do not agree, options */
    FENCE_OTHER_KIND, /* not IPv4, or neither TCP, UDP nor an ICMP message that is carried */
    FENCE_FRAGMENT,
    FENCE_SPOOFED, /* from an address that is not the sender's */
    FENCE_INSIDE,  /* to or from an address within the fence */
    FENCE_MAIL,    /* to a mail server, as one of its kind */
    FENCE_VERDICT_COUNT,
};
const char *fence_verdict_name(enum fence_verdict verdict);

/* Who speaks to whom; seen from the job. An ICMP echo has its identifier as both ports. */
struct fence_flow {
    uint8_t protocol;
    uint32_t remote;
    uint16_t job_port, remote_port;
};

/* `packet` begins with the IPv4 header. *out_flow is set when it passes. */
enum fence_verdict fence_check_out(const struct fence *fence, const uint8_t *packet, size_t size,
                                   struct fence_flow *out_flow);
/* *out_is_error: one of the gateway's own, which belongs to no flow. */
enum fence_verdict fence_check_in(const struct fence *fence, const uint8_t *packet, size_t size,
                                  struct fence_flow *out_flow, bool *out_is_error);

/*
 * What the job is told of a packet that went no further: ICMP, administratively prohibited, so that
 * connecting fails at once. Returns its size, or 0 when nobody is to be told: the packet is no
 * whole TCP or UDP packet of the job's.
 */
size_t fence_write_refusal(const uint8_t *packet, size_t size, uint8_t out[FENCE_REFUSAL_SIZE]);
