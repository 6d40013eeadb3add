/*
 * Carrier: for functions elsewhere, brings what a lease's process publishes in the lease's own
 * store to theirs, and what they learnt back (function/object_store.h has what lies there).
 *
 * Stores block; a thread of its own waits for them, and the loop never waits for that thread.
 * Callbacks come on the loop's thread, in the order in which they were asked for. Objects go
 * through files, so that none takes memory of its size.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "function/work.h"
#include "net/loop.h"

struct remote_credentials;

struct carrier_options {
    struct loop *loop;
    const char *own;                              /* the lease's store: a folder */
    const char *place;                            /* theirs: as of function/object_store.h */
    const struct remote_credentials *credentials; /* of S3; copied */
    const struct object_market *market;           /* with the lease's token; copied; NULL: none */
    const char *job;                              /* the only one whose objects are carried */
    size_t data_bytes_max;                        /* of a part of its records */
    int64_t end_ms; /* for which it tries to take away what it brought; 0: a minute */
};

struct carrier;

MUST_CHECK int carrier_open(const struct carrier_options *options, struct carrier **out_carrier,
                            struct error *error);
/* Waits for nothing: what still runs frees itself when its store lets go of it. No callback
 * follows. NULL is fine. */
void carrier_free(struct carrier *carrier);
DEFINE_AUTO(carrier);

/* Gives up what it was asked for, whose callbacks do not come any more, and takes away what it
 * brought. The callback comes once that is done, or its time is over; it may free the carrier. */
void carrier_end(struct carrier *carrier, void (*on_ended)(void *context), void *context);

/* `reason` NULL: it is there. */
typedef void carrier_function(void *context, const struct error *reason);

/* The job, its records and the model that the request starts from. */
void carrier_bring(struct carrier *carrier, const struct work_request *request,
                   carrier_function *callback, void *context);
/* Once something was brought: what calls are told of a market's store, "" where it is none. */
const char *carrier_token(const struct carrier *carrier);
/* The update that the request left. */
void carrier_fetch(struct carrier *carrier, const struct work_request *request,
                   carrier_function *callback, void *context);
