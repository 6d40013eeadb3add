/*
 * Engine load: the market's state from the store: the newest snapshot, then the events after it.
 */
#pragma once

#include "core/core.h"
#include "server/projection.h"
#include "store/store.h"

/*
 * Sets *out_core to the state at the log's end and the projection to match; builds the query tables
 * again first when the store asks for it. *out_snapshot_sequence is what the snapshot covered; 0:
 * none. CORRUPT names the event that does not follow.
 */
MUST_CHECK int engine_load(const struct store_options *options, struct store *store,
                           struct projection *projection, struct core **out_core,
                           uint64_t *out_snapshot_sequence, struct error *error);

/* Every event from `from_sequence` on, decoded and applied; `each` (may be NULL) sees them after,
 * one by one, on another thread when there are many. */
typedef int engine_replay_function(void *context, const struct core *core,
                                   const struct event *event, struct error *error);
MUST_CHECK int engine_replay(struct store_reader *reader, uint64_t from_sequence, struct core *core,
                             engine_replay_function *each, void *context, struct error *error);
