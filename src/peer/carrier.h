/*
 * Carrier: for functions elsewhere, brings what a lease's process publishes in the lease's own
 * store to theirs, and what they learnt back (function/object_store.h has what lies there).
 *
 * Stores block; a thread of its own waits for them. Callbacks come on the loop's thread, in the
 * order in which they were asked for, and none after carrier_free, which none of them calls.
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
    const char *place;                            /* theirs: a folder, or "s3://bucket/prefix" */
    const struct remote_credentials *credentials; /* of S3; copied */
    const char *job;                              /* the only one whose objects are carried */
    size_t data_bytes_max;                        /* of a part of its records */
};

struct carrier;

MUST_CHECK int carrier_open(const struct carrier_options *options, struct carrier **out_carrier,
                            struct error *error);
/* Takes away what it brought; waits for that. NULL is fine. */
void carrier_free(struct carrier *carrier);
DEFINE_AUTO(carrier);

/* `reason` NULL: it is there. */
typedef void carrier_function(void *context, const struct error *reason);

/* The job, its records and the model that the request starts from. */
void carrier_bring(struct carrier *carrier, const struct work_request *request,
                   carrier_function *callback, void *context);
/* The update that the request left. */
void carrier_fetch(struct carrier *carrier, const struct work_request *request,
                   carrier_function *callback, void *context);
