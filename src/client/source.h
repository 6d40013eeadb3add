/*
 * Source: while a command waits for its job, it sends the job's data to the leases itself.
 *
 * On a thread of its own it listens on a port, tells the market of it, and serves the bundle's
 * chunks to those leases that the market has given a key (runtime/source_key.h), as lenders serve
 * each other. Whatever goes wrong is no error: the market has it all, or will have.
 */
#pragma once

#include "base/scope.h"
#include "client/bundle.h"
#include "client/client.h"

#include <stdbool.h>
#include <stdint.h>

struct source;

/* NULL: there is nothing to serve, or nobody can connect here. The bundle outlives it and is not
 * added to meanwhile. `manifest` is of the job's first input. */
struct source *source_start(const struct client *client, const struct bundle *bundle,
                            const uint8_t manifest[JOB_HASH_SIZE]);
/* Everyone is let go. NULL is fine. */
void source_free(struct source *source);
DEFINE_AUTO(source);

/* Waits until the market has said whether it reaches this machine, so long at most. */
void source_wait(struct source *source, int64_t wait_ms);
uint64_t source_sent_bytes(struct source *source); /* NULL: 0 */
