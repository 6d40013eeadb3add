/*
 * Range server: holds one range of a model, but the first (server.h is the lead, which has that):
 * takes its slices of what workers push, does with them what the lead says, and answers workers
 * with its range.
 *
 * It lives on the owner's loop and is used from that loop's thread only. It begins with what the
 * lead sends it, and so again with each new lead. A slice that has come whole stays until the lead
 * parts from its worker, also when the worker's link is lost: what the lead has every range do,
 * every range does. One worker has one slice under way, and at most one more that is not yet parted
 * from.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "exchange/robust.h"
#include "exchange/server.h"
#include "net/link.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range_server_options {
    struct loop *loop;
    uint64_t lease, fence; /* its own; the fence is its term */
    uint8_t key[LINK_KEY_SIZE];
    uint32_t server, servers; /* which of how many; from 1 */
    size_t parameter_count;   /* of the whole model */
    struct robust_options robust;
    int64_t silent_ms; /* drops a worker; 0: 6 s */
    /* As of server.h. */
    exchange_find_peer *find_peer;
    void (*on_drop)(void *context, uint64_t lease, const struct error *reason);
    /* The lead has ended training, and is gone. In it or after it the owner frees the server. */
    void (*on_end)(void *context, const char *reason);
    void *context;
};

struct range_server_status {
    bool has_lead;         /* and its range */
    int64_t lost_since_ns; /* monotonic; 0 while it has them */
    uint32_t member_count;
    uint64_t received_bytes, sent_bytes; /* of vectors, since the lead's link stands */
};

struct range_server;

MUST_CHECK int range_server_open(const struct range_server_options *options,
                                 struct range_server **out_server, struct error *error);
void range_server_free(struct range_server *server); /* NULL is fine; no callbacks */
DEFINE_AUTO(range_server);

/* A stream on which a worker will speak. Takes `fd` on success only. */
MUST_CHECK int range_server_attach_take(struct range_server *server, int fd, struct error *error);
/* A stream to the lead of this term, in place of the one before. The same. */
MUST_CHECK int range_server_attach_lead_take(struct range_server *server, int fd, uint64_t term,
                                             struct error *error);

struct range_server_status range_server_status(const struct range_server *server);
