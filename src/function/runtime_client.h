/*
 * Runtime client: a function as AWS Lambda runs it: takes calls from the Runtime API and answers
 * them, one after the other, until it is ended.
 *
 *     GET  http://API/2018-06-01/runtime/invocation/next       blocks until there is a call
 *     POST http://API/2018-06-01/runtime/invocation/ID/response
 *     POST http://API/2018-06-01/runtime/invocation/ID/error
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "function/handler.h"

#include <stdint.h>

struct runtime_client_options {
    const char *api; /* "127.0.0.1:9001" */
    struct handler *handler;
    const struct clock *clock;
    int64_t memory_bytes; /* 0: not known */
    uint64_t calls_max;   /* 0: without end */
};

/* UNAVAILABLE when the API is gone. */
MUST_CHECK int runtime_client_run(const struct runtime_client_options *options,
                                  struct error *error);
