/*
 * Tenancy, functions: the work of a lease, done by calls of functions on this machine.
 *
 * The lease's own process hands out batches (worker/caller.h); the keeper makes the calls, for it
 * alone counts what they cost. A lease has as many functions as fit into it, none larger than the
 * lease, and each has a sandbox of its own, which is started by the first call and ends with the
 * lease.
 */
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/host.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct function_call {
    struct tenancy_functions *functions;
    struct buffer request;
    uint32_t number;
    bool is_used;
    bool is_withdrawn; /* for the machine's owner: it is made again, whatever becomes of it */
    int64_t begun_ns;  /* 0: it waits until the owner leaves something over */
};

struct tenancy_functions {
    struct tenancy *tenancy;
    struct host *host;
    char store[PATH_MAX];
    uint32_t count;
    int64_t billed_ms; /* of calls that have ended */
    bool is_held;      /* the machine's owner needs it: nothing is called */
    struct function_call calls[];
};

static uint32_t count_of(const struct lease_document *document, uint32_t memory_mb)
{
    const int64_t by_memory = (document->ram_bytes >> 20) / memory_mb;
    /* Shares of a core are whole thousandths: one that is a little short counts. */
    const int64_t by_cores = (document->cores_milli + 1) * HOST_MB_PER_CORE / 1000 / memory_mb;
    const int64_t count = by_memory < by_cores ? by_memory : by_cores;
    return count < 1 ? 1 : count < HOST_CONCURRENCY_MAX ? (uint32_t)count : HOST_CONCURRENCY_MAX;
}

static int open_host(struct tenancy_functions *functions, struct error *error)
{
    const struct tenancy *tenancy = functions->tenancy;
    const struct lease_document *document = &tenancy->document;
    const int64_t ram_mb = document->ram_bytes >> 20;
    const uint32_t memory_mb = tenancy->host->functions.memory_mb;
    char name[40];
    snprintf(name, sizeof(name), "lease-%" PRIu64 "-%" PRIu64, document->lease, document->fence);
    if (strlen(name) == sizeof(name) - 1 || folder_make(functions->store, 0755, error) < 0)
        return error_set(error, ERROR_INVALID, "the store of its functions cannot be made");
    const struct host_options options = {
        .loop = tenancy->host->loop,
        .sandboxes = tenancy->host->sandboxes,
        .name = name,
        .store = functions->store,
        .memory_mb = ram_mb < memory_mb ? (uint32_t)ram_mb : memory_mb,
        .time_ms = tenancy->host->functions.time_ms,
        .concurrency = functions->count,
        .cpu_max_milli = document->cores_milli,
        .keep_warm_ms = tenancy->host->functions.keep_warm_ms,
        .log_fd = -1,
    };
    return host_open(&options, &functions->host, error);
}

int tenancy_open_functions(struct tenancy *tenancy, struct error *error)
{
    const uint32_t memory_mb = tenancy->host->functions.memory_mb;
    if (memory_mb == 0 || tenancy->document.role != LEASE_ROLE_WORKER)
        return 0;
    const uint32_t count = count_of(&tenancy->document, memory_mb);
    struct tenancy_functions *functions =
        memory_zeroed(1, sizeof(*functions) + count * sizeof(*functions->calls));
    functions->tenancy = tenancy;
    functions->count = count;
    for (uint32_t i = 0; i < count; i++) {
        functions->calls[i].functions = functions;
        buffer_init(&functions->calls[i].request, CHILD_CALL_MAX);
    }
    tenancy->functions = functions;
    if (snprintf(functions->store, sizeof(functions->store), "%s/functions",
                 tenancy->host->folder) >= (int)sizeof(functions->store))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    return open_host(functions, error);
}

void tenancy_free_functions(struct tenancy *tenancy)
{
    struct tenancy_functions *functions = TAKE(tenancy->functions);
    struct error error;
    if (!functions)
        return;
    host_free(functions->host);
    for (uint32_t i = 0; i < functions->count; i++)
        buffer_done(&functions->calls[i].request);
    if (folder_remove(functions->store, &error) < 0)
        log_event(LOG_WARN, "folder_left", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
    free(functions);
}

uint32_t tenancy_function_count(const struct tenancy *tenancy)
{
    return tenancy->functions ? tenancy->functions->count : 0;
}

const char *tenancy_function_store(const struct tenancy *tenancy)
{
    return tenancy->functions->store;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void answer(struct function_call *call, bool is_ok, struct text json)
{
    const struct child_message message = {
        .kind = CHILD_CALLED, .called = {.number = call->number, .is_ok = is_ok, .json = json}};
    call->is_used = false;
    tenancy_tell_child(call->functions->tenancy, &message);
}

static void begin(struct function_call *call);

static void on_result(void *context, const struct host_result *result)
{
    struct function_call *call = context;
    call->functions->billed_ms += result->billed_ms;
    call->begun_ns = 0;
    if (result->is_failed && call->is_withdrawn)
        begin(call);
    else
        answer(call, !result->is_failed, result->payload);
}

static void begin(struct function_call *call)
{
    struct tenancy_functions *functions = call->functions;
    struct error error;
    call->is_withdrawn = false;
    if (functions->is_held)
        return;
    if (host_call(functions->host, buffer_text(&call->request), on_result, call, &error) == 0) {
        call->begun_ns = tenancy_now_ns(functions->tenancy);
        return;
    }
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json, CHILD_CALL_MAX);
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    json_field_string(&writer, "errorType", "Sandbox.Failed");
    json_field_string(&writer, "errorMessage", error.message);
    json_object_end(&writer);
    answer(call, /* is_ok= */ false, buffer_text(&json));
}

void tenancy_call_function(struct tenancy *tenancy, uint32_t number, struct text request)
{
    struct tenancy_functions *functions = tenancy->functions;
    struct error error;
    for (uint32_t i = 0; i < functions->count; i++) {
        struct function_call *call = &functions->calls[i];
        if (call->is_used)
            continue;
        call->is_used = true;
        call->number = number;
        buffer_clear(&call->request);
        buffer_append_text(&call->request, request);
        begin(call);
        return;
    }
    error_set(&error, ERROR_CORRUPT, "the process makes more calls than it has functions");
    tenancy_fail(tenancy, &error);
}

int64_t tenancy_called_ms(const struct tenancy *tenancy)
{
    const struct tenancy_functions *functions = tenancy->functions;
    const int64_t now_ns = tenancy_now_ns(tenancy);
    int64_t sum_ms = functions->billed_ms;
    for (uint32_t i = 0; i < functions->count; i++)
        if (functions->calls[i].begun_ns > 0)
            sum_ms += (now_ns - functions->calls[i].begun_ns + 999999) / 1000000;
    return (sum_ms + functions->count - 1) / functions->count;
}

void tenancy_yield_functions(struct tenancy *tenancy, enum yield_level level)
{
    struct tenancy_functions *functions = tenancy->functions;
    functions->is_held = level == YIELD_FROZEN;
    if (functions->is_held) {
        for (uint32_t i = 0; i < functions->count; i++)
            functions->calls[i].is_withdrawn = functions->calls[i].begun_ns > 0;
        host_end_instances(functions->host);
        return;
    }
    host_set_share(functions->host, level == YIELD_LOW ? TENANCY_LOW_SHARE_MILLI : 1000,
                   /* is_idle= */ level == YIELD_LOW);
    for (uint32_t i = 0; i < functions->count; i++)
        if (functions->calls[i].is_used && functions->calls[i].begun_ns == 0)
            begin(&functions->calls[i]);
}
