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
    const char *price, *catalogue, *url, *name, *token_file, *store;
    bool is_lambda;
};

/* Rows of an option table whose struct has the field `functions`. */
#define LEND_FUNCTION_OPTIONS(type)                                                                \
    {"functions",                                                                                  \
     OPTION_U64,                                                                                   \
     offsetof(struct type, functions.count),                                                       \
     "COUNT",                                                                                      \
     NULL,                                                                                         \
     "Lend so many functions of this machine in place of all else: jobs that train have their "    \
     "batches done by calls, each in a sandbox of its own, and pay for the calls alone. The "      \
     "machine has the label \"" LEND_FUNCTIONS_LABEL "\".",                                        \
     .minimum = 1,                                                                                 \
     .maximum = HOST_CONCURRENCY_MAX},                                                             \
        {"function_memory",                                                                        \
         OPTION_U64,                                                                               \
         offsetof(struct type, functions.memory_mb),                                               \
         "MB",                                                                                     \
         NULL,                                                                                     \
         "Memory of each function, 512 by default; it has MB / 1769 of a core.",                   \
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
        {"function_keep_warm",                                                                     \
         OPTION_DURATION,                                                                          \
         offsetof(struct type, functions.keep_warm_ms),                                            \
         "TIME",                                                                                   \
         "1m",                                                                                     \
         "How long a function of this machine without calls is kept, within a lease.",             \
         .minimum = 1,                                                                             \
         .maximum = 86400000},                                                                     \
        {"function_price", OPTION_TEXT, offsetof(struct type, functions.price), "AMOUNT",          \
         .help = "The least for an hour of a GiB of functions, with its share of a core, in "      \
                 "credits, or as $0.06 in dollars by the market's rate; by default what is "       \
                 "posted, and of --function-lambda what Lambda takes. For enlisting; later: "      \
                 "souk offer change."},                                                            \
        {"function_catalog",                                                                       \
         OPTION_PATH,                                                                              \
         offsetof(struct type, functions.catalogue),                                               \
         "FILE",                                                                                   \
         "{data}/market/cloud-catalogue.csv",                                                      \
         "Catalogue with what Lambda takes (souk cloud catalog); the program's own where there "   \
         "is none, or none of the function's kind in it."},                                        \
        {"function_url", OPTION_TEXT, offsetof(struct type, functions.url), "URL",                 \
         .help = "The functions are those of a \"souk function host\" there, and not this "        \
                 "machine's."},                                                                    \
        {"function_lambda", OPTION_FLAG, offsetof(struct type, functions.is_lambda),               \
         .help = "The functions are AWS Lambda's, by AWS_ACCESS_KEY_ID and its kin; "              \
                 "--function-url is another address of its API."},                                 \
        {"function_name", OPTION_TEXT,  offsetof(struct type, functions.name),                     \
         "NAME",          "souk-train", "What the function is called there."},                     \
        {"function_token_file",                                                                    \
         OPTION_PATH,                                                                              \
         offsetof(struct type, functions.token_file),                                              \
         "FILE",                                                                                   \
         "{state}/function/token",                                                                 \
         "File with the token of --function-url."},                                                \
    {                                                                                              \
        "function_store", OPTION_TEXT, offsetof(struct type, functions.store), "PLACE",            \
            .help = "Where functions elsewhere find models and leave updates: the host's folder, " \
                    "which it prints when it starts, s3://bucket/prefix, or \"market\": its own "  \
                    "store."                                                                       \
    }

struct lend_options;
struct remote_credentials;

/* Fills the part of `peer` that is about functions, and what is lent by them; none: changes
 * nothing. Texts live in the arena, and `credentials` as long as `peer` does. INVALID together with
 * options that functions have no use for, or without what those elsewhere need. */
MUST_CHECK int lend_functions_parse(struct arena *arena, const struct lend_options *wanted,
                                    struct remote_credentials *credentials,
                                    struct peer_options *peer, struct error *error);
/* Gives functions elsewhere their memory and time; so they are there. Blocks. Of Lambda's it tells
 * which architecture they have. */
MUST_CHECK int lend_functions_configure(const struct peer_functions *functions, bool *out_is_arm64,
                                        struct error *error);
