/*
 * Invoker: calls a function, wherever it runs: on a host in this process, or by the Invoke API of a
 * host or of Lambda.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum invoke_outcome {
    INVOKE_ANSWERED,
    INVOKE_FAILED,    /* the function did: out of time or memory, or by its own words */
    INVOKE_THROTTLED, /* it was not called: too many are, or nobody is there */
    INVOKE_LOST,      /* no answer came: what became of it is not known */
    INVOKE_OUTCOME_COUNT,
};

/* Texts are valid during the callback. */
struct invoke_result {
    enum invoke_outcome outcome;
    struct text payload;       /* the answer, or {"errorType", "errorMessage"} */
    const char *reason;        /* of LOST and THROTTLED */
    int64_t billed_ms;         /* -1: not told */
    int64_t memory_peak_bytes; /* -1: not told */
    int64_t memory_mb;         /* that it had; 0: not told */
    bool is_cold;
};

typedef void invoke_function(void *context, const struct invoke_result *result);

struct invoker;

struct invoker_ops {
    int (*call)(struct invoker *invoker, struct text request, invoke_function *callback,
                void *context, struct error *error);
    int (*configure)(struct invoker *invoker, uint32_t memory_mb, int64_t time_ms,
                     struct error *error);
    void (*free)(struct invoker *invoker);
};

struct invoker {
    const struct invoker_ops *ops; /* of what begins with this struct */
    bool is_arm64;                 /* by the last configuration; Lambda's alone tell */
};

/* The callback comes once, never from inside this. Fails only where nothing can be called at all.
 */
MUST_CHECK int invoker_call(struct invoker *invoker, struct text request, invoke_function *callback,
                            void *context, struct error *error);
/* From the next call on; while none is under way. Blocks. */
MUST_CHECK int invoker_configure(struct invoker *invoker, uint32_t memory_mb, int64_t time_ms,
                                 struct error *error);
/* No callback follows. NULL is fine. */
void invoker_free(struct invoker *invoker);
DEFINE_AUTO(invoker);

struct host;
/* Borrows the host. */
struct invoker *invoker_of_host(struct host *host);

struct invoker_http_options {
    struct loop *loop;
    const char *url;   /* of the API, without a path; NULL: Lambda's own in the region */
    const char *name;  /* of the function */
    const char *token; /* Bearer; NULL: signed by the credentials */
    const struct remote_credentials *credentials; /* of Lambda; copied; NULL: none */
    const char *pinned_fingerprint;               /* of an HTTPS host; NULL: none */
    uint32_t concurrent_max;
    int64_t time_ms; /* that the function may take; 0: as long as any */
};
MUST_CHECK int invoker_open_http(const struct invoker_http_options *options,
                                 struct invoker **out_invoker, struct error *error);

/* What a REPORT line of a log says, in milliseconds and MB; false: there is none. */
struct invoke_report {
    int64_t billed_ms, memory_mb, memory_peak_mb;
    bool is_cold;
};
bool invoke_report_read(struct text log, struct invoke_report *out_report);
