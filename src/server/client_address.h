/*
 * Client address: where a request comes from, as far as limits and grants care: its block.
 *
 * A block is a /24 of IPv4 or a /64 of IPv6: what one home or one customer commonly has. Behind a
 * proxy the connection is the proxy's; X-Forwarded-For then tells the client's address, and of its
 * entries only those that our own proxies wrote are believed: each appends the address it saw, so
 * with n of them the client is the n-th from the right and whatever stands before is hearsay.
 */
#pragma once

#include "base/text.h"
#include "net/address.h"

#include <stdbool.h>
#include <stdint.h>

struct client_address {
    uint64_t block; /* of IPv6: the first 64 bits; of IPv4: 0xf4, zeros and 24 bits; 0: unknown */
    uint64_t
        site; /* of IPv6: the first 48 bits, which a provider gives away as a whole; else block */
    bool is_loopback; /* this machine, without a proxy in between */
    bool is_public;   /* reachable from everywhere: not loopback, link-local, private or unknown */
};

struct client_address client_address_of(const struct address *address);
/* Its block, of IPv6 with only so many bits: from 48 to 64. */
uint64_t client_address_block(const struct client_address *client, int64_t v6_prefix);
/* From the header, or the connection's own address when there is none that can be read; never
 * loopback. `proxy_count` 0: the header is not looked at. */
struct client_address client_address_forwarded(const struct address *connection, struct text header,
                                               uint64_t proxy_count);
