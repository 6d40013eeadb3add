/*
 * Handler: the function itself: one call is one request of function/work.h and its answer.
 *
 * It keeps nothing that a call depends on: the job, the kernels and connections stay open from call
 * to call only because opening them takes time. A call ends before its deadline and says how many
 * batches it did; what is not done is another call's.
 */
#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdint.h>

struct remote_credentials;

struct handler_options {
    const struct clock *clock;                    /* outlives it */
    const char *store;                            /* of requests that name none; NULL: none */
    const struct remote_credentials *credentials; /* of S3; copied; NULL: none */
    /* Of requests that name its store, with a token of theirs; a request chooses no other. NULL:
     * none; both copied, the latter NULL: not pinned. */
    const char *market_server, *market_fingerprint;
};

struct handler;

struct handler *handler_new(const struct handler_options *options);
void handler_free(struct handler *handler); /* NULL is fine */
DEFINE_AUTO(handler);

struct handler_limits {
    int64_t deadline_ns;  /* of the clock: answered by then */
    int64_t memory_bytes; /* of the process; 0: not known */
};

/* Appends the answer. INVALID for a request that is none; EXHAUSTED when its memory is too little
 * for one batch; what the store says otherwise. A failed call has put nothing, unless UNAVAILABLE:
 * then that is not known. */
MUST_CHECK int handler_call(struct handler *handler, struct text request,
                            const struct handler_limits *limits, struct buffer *answer,
                            struct error *error);

/* {"errorType":"INVALID","errorMessage":"..."}, as Lambda's runtimes tell of it. */
void handler_write_error(const struct error *error, struct buffer *out);
