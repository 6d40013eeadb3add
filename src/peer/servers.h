/*
 * Servers: the addresses of the one market this machine is enlisted at, tried in turn.
 *
 * Several may be named, the best first. The link is dialled where it was welcomed last; when that
 * fails, the next address is asked (GET /v1/server) who it is and where its link port is. A market
 * is its key, not its address: one that moved is followed, one with another key is refused with the
 * reason. While linked elsewhere the first is asked again now and then, to go back to it.
 *
 * What an address answers is bounded in size and time. One thread, the loop's.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/address.h"
#include "net/http_client.h"
#include "peer/identity.h"

#include <stddef.h>
#include <stdint.h>

enum { SERVERS_MAX = 8 };

struct servers;

struct servers_options {
    struct loop *loop;
    struct http_client *client;
    struct identity *identity; /* enlisted; where it was welcomed last is kept there */
    const char *const *urls;   /* the best first; none: where it enlisted */
    size_t url_count;
    int64_t return_ms; /* between two looks at the first while linked elsewhere; 0: 5 minutes */
};

/* INVALID for a URL that is none, or too many. */
MUST_CHECK int servers_open(const struct servers_options *options, struct servers **out_servers,
                            struct error *error);
void servers_free(struct servers *servers); /* NULL is fine */
DEFINE_AUTO(servers);

/* Where to dial now. The callback comes once, perhaps from inside the call: with the address, or
 * with NULL and the reason. Call servers_failed, then this again, when dialling it fails. */
typedef void servers_function(void *context, const struct host_port *target,
                              const struct error *reason);
void servers_locate(struct servers *servers, servers_function *callback, void *context);
/* The address given last did not lead to a welcome. */
void servers_failed(struct servers *servers);
/* It did. `on_better` comes once when the first address can be had again; dial anew then. */
void servers_welcomed(struct servers *servers, void (*on_better)(void *context), void *context);
/* The link is gone. */
void servers_lost(struct servers *servers);

/* For logs. */
const char *servers_url(const struct servers *servers);
