/*
 * Path: the way between two leases of a job: a direct connection where either end reaches the
 * other, the market's relay where not.
 *
 * Both ends dial the addresses the other has told, and the relay, each connection opened by the
 * line "SOUK-STREAM ticket"; both also take what comes to their own listener under that ticket.
 * Nothing is believed of a connection but that the handshake with the two leases' key went through
 * on it. The end that is the TLS client chooses: it begins the handshake on a direct connection as
 * soon as there is one, on the relay a moment later, and the first that is done is the path.
 *
 * What breaks is dialled again, with growing pauses, until path_free.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/packet_link.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PATH_CANDIDATE_MAX = 8, PATH_LINE_SIZE = 12 + 2 * LEASE_TICKET_SIZE + 1 };

struct path;

struct path_options {
    struct loop *loop;
    bool is_client;
    const char *identity; /* the same at both ends */
    const uint8_t *key;   /* LINK_KEY_SIZE bytes, copied */
    uint8_t ticket[LEASE_TICKET_SIZE];
    struct host_port relay; /* port 0: none */
    uint64_t seed;          /* of the pauses between attempts */
    /* Never from inside a call of this interface. The link is the callee's. */
    void (*on_open)(struct path *path, struct packet_link *link, bool is_direct, void *context);
    void *context;
};

/* Begins with path_dial. */
struct path *path_new(const struct path_options *options);
void path_free(struct path *path); /* what it has not handed over is closed; NULL is fine */
DEFINE_AUTO(path);

/* Where others may reach a port of this machine; returns how many. */
size_t path_addresses(uint16_t port, struct host_port out[PATH_CANDIDATE_MAX]);
/* Where the other end may be reached directly; at most PATH_CANDIDATE_MAX are kept. */
void path_set_candidates(struct path *path, const struct host_port *candidates, size_t count);
/* Looks for a way, also again after the link that was found has ended. */
void path_dial(struct path *path);
/* A connection to our own listener that has named the ticket; its line is read. Takes `fd`. */
void path_accept_take(struct path *path, int fd);

bool path_has_ticket(const struct path *path, const uint8_t ticket[LEASE_TICKET_SIZE]);
