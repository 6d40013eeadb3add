#include "function/invoker.h"

#include "base/memory.h"
#include "function/host.h"

#include <stdlib.h>

int invoker_call(struct invoker *invoker, struct text request, invoke_function *callback,
                 void *context, struct error *error)
{
    return invoker->ops->call(invoker, request, callback, context, error);
}

int invoker_configure(struct invoker *invoker, uint32_t memory_mb, int64_t time_ms,
                      struct error *error)
{
    return invoker->ops->configure(invoker, memory_mb, time_ms, error);
}

void invoker_free(struct invoker *invoker)
{
    if (invoker)
        invoker->ops->free(invoker);
}

/* ---- A host in this process ------------------------------------------------------------------ */

struct host_invoker {
    struct invoker invoker;
    struct host *host;
};

struct host_wait {
    invoke_function *callback;
    void *context;
};

static void on_result(void *context, const struct host_result *result)
{
    struct host_wait *wait = context;
    const struct host_wait told = *wait;
    free(wait);
    const struct invoke_result invoked = {
        .outcome = result->is_failed ? INVOKE_FAILED : INVOKE_ANSWERED,
        .payload = result->payload,
        .reason = "",
        .billed_ms = result->billed_ms,
        .memory_peak_bytes = result->memory_peak_bytes,
        .memory_mb = result->memory_mb,
        .is_cold = result->is_cold,
    };
    told.callback(told.context, &invoked);
}

/* What the host has no room for is the caller's to know at once: it is no callback. */
static int host_invoke(struct invoker *invoker, struct text request, invoke_function *callback,
                       void *context, struct error *error)
{
    struct host_invoker *here = (struct host_invoker *)invoker;
    struct host_wait *wait = memory_zeroed(1, sizeof(*wait));
    *wait = (struct host_wait){callback, context};
    if (host_call(here->host, request, on_result, wait, error) < 0) {
        free(wait);
        return -1;
    }
    return 0;
}

static int host_set(struct invoker *invoker, uint32_t memory_mb, int64_t time_ms,
                    struct error *error)
{
    return host_configure(((struct host_invoker *)invoker)->host, memory_mb, time_ms, error);
}

static void host_invoker_free(struct invoker *invoker)
{
    free(invoker);
}

static const struct invoker_ops host_invoker_ops = {host_invoke, host_set, host_invoker_free};

struct invoker *invoker_of_host(struct host *host)
{
    struct host_invoker *here = memory_zeroed(1, sizeof(*here));
    here->invoker.ops = &host_invoker_ops;
    here->host = host;
    return &here->invoker;
}
