/*
 * Logs: what the processes of leases print, kept as blobs in parts and indexed by offset.
 *
 * The newest bytes are in memory, so that they can be read at once; a part goes to the blob store
 * when it is large enough, has waited long enough, or its lease ends. A lease keeps at most
 * LOGS_LEASE_MAX bytes; after that one line says so and the rest is dropped.
 *
 * Main thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { LOGS_PART_SIZE = 64 << 10, LOGS_PART_MS = 5000, LOGS_READ_MAX = 256 << 10 };
#define LOGS_LEASE_MAX (UINT64_C(64) << 20)

struct server;
struct logs;

struct logs *logs_new(struct server *server);
void logs_free(struct logs *logs); /* writes what is left; NULL is fine */

/* Returns the offset of the first byte added; *out_size is how many were (0: the limit is reached).
 */
uint64_t logs_append(struct logs *logs, uint64_t lease, struct text bytes, size_t *out_size);
/* Parts that have waited long enough; all of them when `is_end`. */
void logs_flush(struct logs *logs, bool is_end);
/* The lease has ended: its last part is written and it is forgotten at the next flush. */
void logs_end(struct logs *logs, uint64_t lease);

/* Appends at most LOGS_READ_MAX bytes from the offset on; fewer when a part ends there. */
MUST_CHECK int logs_read(struct logs *logs, uint64_t lease, uint64_t offset, struct buffer *out,
                         struct error *error);
