/*
 * Parallel: one thing done many times over by a few threads.
 *
 * For work of a command that waits for the market or for a core. The threads live as long as the
 * call does; the one that calls is the first of them.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum { PARALLEL_WORKERS_MAX = 8 };

/* `worker` tells which thread it is, from 0: for what each has one of. Returns -1 with an error. */
typedef int parallel_function(void *context, size_t worker, size_t index, struct error *error);

/* Once for each index below `count`, in no order, `worker_count` at a time at most. After a failure
 * nothing new is begun, and the first one is told. */
MUST_CHECK int parallel_each(size_t worker_count, size_t count, parallel_function *function,
                             void *context, struct error *error);
