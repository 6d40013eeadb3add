/*
 * Standing: what the market learns of this machine while it is linked: what it is, found anew when
 * something changes; that it lives, and how far away it is; how fast it can send.
 *
 * What changes slowly is looked at once a minute by a fingerprint (probe_package.h), and probed
 * again only when that moved. The market asks for a measurement; no more than some MiB an hour are
 * sent for it, however often it asks.
 */
#pragma once

#include "base/scope.h"
#include "net/link.h"
#include "net/loop.h"
#include "peer/probe.h"
#include "runtime/lease_message.h"

#include <stdint.h>

struct standing;

struct standing_options {
    struct loop *loop;
    struct probe_options probe;        /* what it points to is borrowed */
    const struct machine_probe *found; /* at the start; copied */
    struct probe_lent lent;
    int64_t look_ms; /* between two looks for changes; 0: a minute */
};

struct standing *standing_new(const struct standing_options *options);
void standing_free(struct standing *standing); /* NULL is fine */
DEFINE_AUTO(standing);

/* The market has welcomed the machine on this link, borrowed until standing_unlinked. */
void standing_linked(struct standing *standing, struct link *link);
void standing_unlinked(struct standing *standing);
void standing_drained(struct standing *standing); /* the link's queue has room again */

void standing_ping(struct standing *standing, const struct ping_message *ping);
void standing_measure(struct standing *standing, const struct measure_message *measure);

/* Fills in power and temperature; read from the sensors every few seconds. */
void standing_heartbeat(struct standing *standing, struct heartbeat_message *heartbeat);
