/*
 * Outbox: what the daemon has to tell the market, kept while the link is away or slow.
 *
 * Messages go out in the order sent. Meter reports and lease states of the last minute are sent
 * once more on a new link, because nobody knows whether the old one carried them; the market takes
 * each only once. When too much waits, log lines go first, then reports, then meters; lease states
 * are never dropped.
 */
#pragma once

#include "base/scope.h"
#include "net/link.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTBOX_WAITING_BYTES_MAX = 4 << 20,
    OUTBOX_ROOM_BYTES = 512 << 10,
    OUTBOX_REPLAY_MS = 60000,
};

struct outbox;

struct outbox *outbox_new(void);
void outbox_free(struct outbox *outbox); /* NULL is fine */
DEFINE_AUTO(outbox);

void outbox_send(struct outbox *outbox, const struct lease_message *message, int64_t now_ns);

/* A link the market has welcomed; borrowed until outbox_detach. */
void outbox_attach(struct outbox *outbox, struct link *link, int64_t now_ns);
void outbox_detach(struct outbox *outbox);
/* Goes on after the link's queue had been full. */
void outbox_flush(struct outbox *outbox, int64_t now_ns);

bool outbox_is_attached(const struct outbox *outbox);
/* False when more bulk (logs) should wait at its source. */
bool outbox_has_room(const struct outbox *outbox);
size_t outbox_waiting_count(const struct outbox *outbox);
