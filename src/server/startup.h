/*
 * Startup: which addresses may be served how, what the market calls itself, and its first changes.
 */
#pragma once

#include "net/address.h"
#include "server/server_internal.h"

struct startup_address {
    struct address listen;
    struct host_port link_listen;
    bool is_tls;
    bool is_wildcard; /* every address of this machine */
};

/* Looks at the options only, before anything is made. INVALID for a wrong address, and for plain
 * HTTP on an address that is not loopback, unless a proxy in front ends TLS. */
MUST_CHECK int startup_check_address(const struct server_options *options,
                                     struct startup_address *out_address, struct error *error);

/* Fills url, local_url and link_address once the ports are known. */
void startup_name_addresses(struct server *server, const struct startup_address *address);

/* Before the core thread runs: settings that differ and the operator's token are queued. */
MUST_CHECK int startup_prepare(struct server *server, struct error *error);

/* After the queued changes are on disk: says so in the log and on ready_fd. */
void startup_announce(struct server *server);
