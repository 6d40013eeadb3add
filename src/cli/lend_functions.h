/*
 * Options of `souk lend` about functions: calls of them do the work of leases, and are what is
 * lent.
 */
#pragma once

#include "base/options.h"
#include "function/host.h"
#include "peer/peer.h"

#define LEND_FUNCTIONS_LABEL "function"

struct lend_function_options {
    uint64_t count;
    uint64_t memory_mb;
    int64_t time_ms, keep_warm_ms;
};

/* Rows of an option table whose struct has the field `functions`. */
#define LEND_FUNCTION_OPTIONS(type)                                                                \
    {"functions",                                                                                  \
     OPTION_U64,                                                                                   \
     offsetof(struct type, functions.count),                                                       \
     "COUNT",                                                                                      \
     "0",                                                                                          \
     "Lend so many functions of this machine in place of all else: jobs that train have their "    \
     "batches done by calls, each in a sandbox of its own, and pay for the calls alone. The "      \
     "machine has the label \"" LEND_FUNCTIONS_LABEL "\".",                                        \
     .maximum = HOST_CONCURRENCY_MAX},                                                             \
        {"function_memory",                                                                        \
         OPTION_U64,                                                                               \
         offsetof(struct type, functions.memory_mb),                                               \
         "MB",                                                                                     \
         "512",                                                                                    \
         "Memory of each function; it has MB / 1769 of a core.",                                   \
         .minimum = HOST_MEMORY_MB_MIN,                                                            \
         .maximum = HOST_MEMORY_MB_MAX},                                                           \
        {"function_timeout",                                                                       \
         OPTION_DURATION,                                                                          \
         offsetof(struct type, functions.time_ms),                                                 \
         "TIME",                                                                                   \
         "60s",                                                                                    \
         "What a call may take; a function that does not end by then is killed.",                  \
         .minimum = 100,                                                                           \
         .maximum = HOST_TIME_MS_MAX},                                                             \
    {                                                                                              \
        "function_keep_warm", OPTION_DURATION, offsetof(struct type, functions.keep_warm_ms),      \
            "TIME", "1m", "How long a function without calls is kept, within a lease.",            \
            .minimum = 1, .maximum = 86400000                                                      \
    }

struct lend_options;

/* Fills the part of `peer` that is about functions, and what is lent by them; none: changes
 * nothing. INVALID together with options that functions have no use for. */
MUST_CHECK int lend_functions_parse(const struct lend_options *wanted, struct peer_options *peer,
                                    struct error *error);
