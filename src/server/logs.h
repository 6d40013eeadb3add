/*
 * Logs: what the processes of leases print, kept as blobs in parts and indexed by offset.
 *
 * The newest bytes are in memory, so that they can be read at once; a part goes to disk when it is
 * large enough, has waited long enough, or its lease ends, and only then its machine is told that
 * it need not keep it. Pieces come with their offset: one that comes again after a break is left
 * out as far as it is known. A lease keeps at most LOGS_LEASE_MAX bytes; after that one line says
 * so and the rest is dropped.
 *
 * Main thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LOGS_PART_SIZE = 64 << 10,
    LOGS_PART_MS = 5000,
    LOGS_READ_MAX = 256 << 10,
    LOGS_LOOK_MAX = 1 << 20, /* bytes and parts that are looked at in one go */
    LOGS_LOOK_PARTS = 64,
    LOGS_WAITING_MAX = 8 << 20, /* of one lease in memory: more than a daemon sends ahead */
};
#define LOGS_LEASE_MAX (UINT64_C(64) << 20)

struct server;
struct logs;

struct logs *logs_new(struct server *server);
void logs_free(struct logs *logs); /* writes what is left; NULL is fine */

/* Told whenever more of a lease's log is on disk, or is of no use. */
typedef void logs_listener(void *context, uint64_t machine, const struct log_kept_message *kept);
void logs_listen(struct logs *logs, logs_listener *listener, void *context);

struct logs_piece {
    uint64_t lease, fence, machine;
    uint64_t offset;
    bool is_resumed, is_last; /* struct log_message */
    struct text bytes;
};

/* Returns what of the piece was new, and where it begins; empty when nothing was. */
struct text logs_append(struct logs *logs, const struct logs_piece *piece, uint64_t *out_offset);
/* Parts that have waited long enough; all of them when `is_end`. */
void logs_flush(struct logs *logs, bool is_end);
/* The lease has ended: its last part is written and it is forgotten at the next flush. */
void logs_end(struct logs *logs, uint64_t lease);

/* Appends at most LOGS_READ_MAX bytes from the offset on; fewer when a part ends there. */
MUST_CHECK int logs_read(struct logs *logs, uint64_t lease, uint64_t offset, struct buffer *out,
                         struct error *error);
/* The last bytes before an offset, or of all where it ends earlier; fewer than `size_max` when they
 * are in more than LOGS_LOOK_PARTS parts. */
struct logs_span {
    uint64_t before;
    uint64_t size_max; /* at most LOGS_READ_MAX */
};
MUST_CHECK int logs_read_last(struct logs *logs, uint64_t lease, const struct logs_span *span,
                              struct buffer *out, uint64_t *out_offset, struct error *error);
/* The same as logs_read of several parts, up to LOGS_LOOK_MAX bytes and LOGS_LOOK_PARTS parts: a
 * job that prints little has thousands of small ones, and everybody waits while they are read.
 * *out_is_all: nothing comes after. */
MUST_CHECK int logs_look(struct logs *logs, uint64_t lease, uint64_t offset, struct buffer *out,
                         bool *out_is_all, struct error *error);
