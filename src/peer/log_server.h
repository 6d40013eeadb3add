/*
 * Log server: lets readers of the lease's own account read what its process prints, straight from
 * the keeper (runtime/log_link.h).
 *
 * It listens on a port of its own. Who may read is told by log_server_allow, with a key that is
 * good for a minute, and for a minute after its link ended. It sends what the logbook has and never
 * holds it back: a reader that does not keep up is dropped, and neither the process nor the market
 * waits for one.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/link.h"
#include "net/loop.h"
#include "peer/logbook.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LOG_SERVER_LINKS_MAX = 4,
    LOG_SERVER_VISITORS_MAX = 16, /* links, and connections that are not one yet */
    LOG_SERVER_READERS_MAX = 16,  /* with a key; the oldest makes room */
    LOG_SERVER_QUEUE_BYTES = 256 << 10,
    LOG_SERVER_KEY_MS = 60000,
};

struct log_server;

struct log_server_options {
    struct loop *loop;
    const struct logbook *book; /* outlives it */
    uint64_t lease;
};

MUST_CHECK int log_server_open(const struct log_server_options *options,
                               struct log_server **out_server, struct error *error);
void log_server_free(struct log_server *server); /* NULL is fine */
DEFINE_AUTO(log_server);

uint16_t log_server_port(const struct log_server *server);
void log_server_allow(struct log_server *server, uint64_t id, const uint8_t key[LINK_KEY_SIZE]);
/* The book has more, or is about to let something go. */
void log_server_pump(struct log_server *server);
size_t log_server_link_count(const struct log_server *server); /* that have asked */
