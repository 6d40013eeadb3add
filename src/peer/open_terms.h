/*
 * Open terms: what the owner says of leases with the Internet: who resolves their names, what they
 * are kept away from besides what is found, and how fast they may be.
 */
#pragma once

#include "base/error.h"
#include "net/fence.h"

#include <stddef.h>
#include <stdint.h>

enum {
    OPEN_RESOLVERS_MAX = 3, /* as many as the C library asks */
    OPEN_CLOSED_MAX = 32,
    OPEN_RESOLV_CONF_SIZE = 128,
};

#define OPEN_KBIT_MAX INT64_C(100000000)

struct open_terms {
    uint32_t resolvers[OPEN_RESOLVERS_MAX]; /* public, in host byte order */
    uint32_t resolver_count;
    struct fence_network closed[OPEN_CLOSED_MAX];
    uint32_t closed_count;
    int64_t kbit_per_s; /* of each lease, in and out together */
};

/* Quad9 and Cloudflare, 100 Mbit/s. */
void open_terms_init(struct open_terms *terms);
/* In the place of those; INVALID when one is not public: a job could not reach it. */
MUST_CHECK int open_terms_set_resolvers(struct open_terms *terms, const char *const *addresses,
                                        size_t count, struct error *error);
MUST_CHECK int open_terms_set_closed(struct open_terms *terms, const char *const *networks,
                                     size_t count, struct error *error);

/* What /etc/resolv.conf says in the sandbox. */
void open_terms_write_resolv_conf(const struct open_terms *terms, char out[OPEN_RESOLV_CONF_SIZE]);
