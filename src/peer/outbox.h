/*
 * Outbox: what a daemon has to tell the market, or a keeper its daemon, kept while the way there is
 * gone or slow.
 *
 * Messages go out in the order sent. Meter reports, lease states and artifacts of the last minute
 * before the way was lost are sent once more on a new one, because nobody knows whether the old one
 * carried them; the market takes each only once. What processes print is not kept here while the
 * way is gone: the lease's logbook has it until the market has. When too much waits, reports go
 * first. Meters are owed for: they go only when there are a hundred thousand of them. Lease states
 * and artifacts are never dropped.
 */
#pragma once

#include "base/scope.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTBOX_WAITING_BYTES_MAX = 4 << 20,
    OUTBOX_METER_BYTES_MAX = 16 << 20, /* with meters */
    OUTBOX_SENT_BYTES_MAX = 16 << 20,  /* kept to be sent again */
    OUTBOX_ROOM_BYTES = 512 << 10,
    OUTBOX_REPLAY_MS = 60000,
};

struct outbox;

struct outbox *outbox_new(void);
void outbox_free(struct outbox *outbox); /* NULL is fine */
DEFINE_AUTO(outbox);

void outbox_send(struct outbox *outbox, const struct lease_message *message, int64_t now_ns);
/* A message that is encoded already. */
void outbox_send_encoded(struct outbox *outbox, uint16_t type, struct text payload, int64_t now_ns);

/* What carries messages away. It takes all of one or fails, and then says when it has room again
 * (outbox_flush) or that it is gone (outbox_detach). */
struct outbox_carrier {
    int (*send)(void *context, uint16_t type, struct text payload, struct error *error);
    void *context;
};

void outbox_attach(struct outbox *outbox, const struct outbox_carrier *carrier, int64_t now_ns);
/* The same carrier as before outbox_detach, which lost nothing: nothing is sent again. */
void outbox_reattach(struct outbox *outbox, const struct outbox_carrier *carrier, int64_t now_ns);
void outbox_detach(struct outbox *outbox);
/* Goes on after the carrier had been full. */
void outbox_flush(struct outbox *outbox, int64_t now_ns);

bool outbox_is_attached(const struct outbox *outbox);
/* False when more bulk (logs) should wait at its source. */
bool outbox_has_room(const struct outbox *outbox);
/* True when so much waits that what can be asked for again had better not be sent. */
bool outbox_is_full(const struct outbox *outbox);
size_t outbox_waiting_count(const struct outbox *outbox);
