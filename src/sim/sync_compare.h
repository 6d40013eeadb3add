/*
 * Sync compare: many runs, as many at a time as there are threads. Each run belongs to one thread
 * from its beginning to its end, so that results do not depend on how many there are.
 */
#pragma once

#include "sim/sync_run.h"

struct sync_compare_options {
    struct sync_engine_options engine;
    const struct sync_run_options *runs;
    size_t run_count;
    uint32_t thread_count; /* at least 1 */
    /* By any of the threads, one at a time; NULL is fine. */
    void (*on_run)(void *context, size_t index, const struct sync_run_result *result);
    void *context;
};

/* Fills results[run_count]; on failure nothing is left to free. */
MUST_CHECK int sync_compare(const struct sync_compare_options *options,
                            struct sync_run_result *results, struct error *error);
