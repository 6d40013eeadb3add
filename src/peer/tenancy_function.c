/*
 * Tenancy, functions: the work of a lease, done by calls of functions.
 *
 * The lease's own process hands out batches (worker/caller.h); the keeper makes the calls, for it
 * alone counts what they cost. A lease has as many functions as fit into it beside that process
 * (peer/function_share.h). On this machine each has a sandbox of its own, which is started by the
 * first call and ends with the lease. To those of a host elsewhere, or of Lambda, the job and its
 * models are carried, and their updates back.
 */
#include "base/log.h"
#include "base/memory.h"
#include "function/host.h"
#include "function/invoker.h"
#include "peer/carrier.h"
#include "peer/function_share.h"
#include "peer/tenancy_function_internal.h"
#include "source/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the store: function/object_store.h. */
static const char *const part_names[TENANCY_STORE_PARTS] = {"jobs", "data", "models", "updates"};
static const char *const part_targets[TENANCY_STORE_PARTS] = {
    "/functions/jobs", "/functions/data", "/functions/models", "/functions/updates"};

static struct function_share share_of(const struct tenancy *tenancy)
{
    const struct function_share_wish wish = {
        .ram_bytes = tenancy->document.ram_bytes,
        .cores_milli = tenancy->document.cores_milli,
        .memory_mb = tenancy->host->functions.memory_mb,
        .is_elsewhere = tenancy->host->functions.name.size > 0,
        .room_bytes = (int64_t)tenancy->host->functions.process_bytes,
    };
    return function_share(&wish);
}

static int open_here(struct tenancy_functions *functions, struct error *error)
{
    const struct tenancy *tenancy = functions->tenancy;
    const struct lease_document *document = &tenancy->document;
    const struct host_options options = {
        .loop = tenancy->host->loop,
        .sandboxes = tenancy->host->sandboxes,
        .name = functions->job,
        .store = functions->store,
        .memory_mb = functions->share.memory_mb,
        .time_ms = tenancy->host->functions.time_ms,
        .concurrency = functions->count,
        .cpu_max_milli = document->cores_milli,
        .keep_warm_ms = tenancy->host->functions.keep_warm_ms,
        .log_fd = -1,
    };
    return host_open(&options, &functions->host, error);
}

/* The store itself is the keeper's: what is mounted of it by name, nobody else can replace. */
static int make_store(struct tenancy_functions *functions, struct error *error)
{
    const char *folder = functions->tenancy->host->folder;
    if (snprintf(functions->store, sizeof(functions->store), "%s/functions", folder) >=
        (int)sizeof(functions->store))
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    if (folder_make(functions->store, 0755, error) < 0)
        return -1;
    for (int i = 0; i < TENANCY_STORE_PARTS; i++) {
        snprintf(functions->parts[i], PATH_MAX, "%s/%s", functions->store, part_names[i]);
        if (folder_make(functions->parts[i], 0755, error) < 0)
            return -1;
    }
    return 0;
}

/* What is fetched there is the lease's process's to delete. Nothing of it runs yet. */
static int make_updates(const struct tenancy_functions *functions, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/updates/%s", functions->store, functions->job);
    if (folder_make(path, 0755, error) < 0)
        return -1;
    return sandbox_give_folder(functions->tenancy->host->sandboxes, path, error);
}

static int read_credentials(const struct keeper_functions *wanted,
                            struct remote_credentials *credentials, struct error *error)
{
    const struct text *keys = wanted->keys;
    if (text_copy(keys[KEEPER_KEY_ACCESS], credentials->access_key, sizeof(credentials->access_key),
                  error) < 0 ||
        text_copy(keys[KEEPER_KEY_SECRET], credentials->secret_key, sizeof(credentials->secret_key),
                  error) < 0 ||
        text_copy(keys[KEEPER_KEY_SESSION], credentials->session_token,
                  sizeof(credentials->session_token), error) < 0 ||
        text_copy(keys[KEEPER_KEY_REGION], credentials->region, sizeof(credentials->region),
                  error) < 0)
        return -1;
    return text_copy(keys[KEEPER_KEY_ENDPOINT], credentials->endpoint_url,
                     sizeof(credentials->endpoint_url), error);
}

static int open_elsewhere(struct tenancy_functions *functions, struct error *error)
{
    const struct tenancy_host *host = functions->tenancy->host;
    const struct keeper_functions *wanted = &host->functions;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    if (make_updates(functions, error) < 0 || read_credentials(wanted, &credentials, error) < 0)
        return -1;
    const struct object_market market = {.server = host->server_url,
                                         .fingerprint =
                                             host->fingerprint[0] ? host->fingerprint : NULL,
                                         .token = functions->tenancy->token};
    const struct carrier_options carrier = {.loop = host->loop,
                                            .own = functions->store,
                                            .place = wanted->store.data,
                                            .credentials = &credentials,
                                            .market = &market,
                                            .job = functions->job,
                                            .data_bytes_max =
                                                (size_t)tenancy_disk_bytes(functions->tenancy)};
    const struct invoker_http_options invoker = {
        .loop = host->loop,
        .url = wanted->url.size ? wanted->url.data : NULL,
        .name = wanted->name.data,
        .token = wanted->token.size ? wanted->token.data : NULL,
        .credentials = &credentials,
        .concurrent_max = functions->count,
        .time_ms = wanted->time_ms,
    };
    if (carrier_open(&carrier, &functions->carrier, error) < 0)
        return -1;
    return invoker_open_http(&invoker, &functions->invoker, error);
}

int tenancy_open_functions(struct tenancy *tenancy, struct error *error)
{
    if (tenancy->host->functions.memory_mb == 0 || tenancy->document.role != LEASE_ROLE_WORKER)
        return 0;
    const struct function_share share = share_of(tenancy);
    const uint32_t count = share.count;
    struct tenancy_functions *functions =
        memory_zeroed(1, sizeof(*functions) + count * sizeof(*functions->calls));
    functions->tenancy = tenancy;
    functions->share = share;
    functions->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct function_call *call = &functions->calls[i];
        call->functions = functions;
        call->timer = loop_timer_new(tenancy->host->loop, function_call_on_timer, call);
        buffer_init(&call->answer, CHILD_CALL_MAX);
    }
    tenancy->functions = functions;
    snprintf(functions->job, sizeof(functions->job), "lease-%" PRIu64 "-%" PRIu64,
             tenancy->document.lease, tenancy->document.fence);
    if (make_store(functions, error) < 0)
        return -1;
    return tenancy->host->functions.name.size ? open_elsewhere(functions, error)
                                              : open_here(functions, error);
}

void tenancy_end_calls(struct tenancy *tenancy)
{
    struct tenancy_functions *functions = tenancy->functions;
    if (!functions)
        return;
    invoker_free(TAKE(functions->invoker));
    host_free(TAKE(functions->host));
    for (uint32_t i = 0; i < functions->count; i++)
        loop_timer_stop(functions->calls[i].timer);
}

bool tenancy_clear_functions(struct tenancy *tenancy, void (*on_cleared)(void *context))
{
    struct tenancy_functions *functions = tenancy->functions;
    if (!functions || !functions->carrier)
        return false;
    carrier_end(functions->carrier, on_cleared, tenancy);
    return true;
}

void tenancy_free_functions(struct tenancy *tenancy)
{
    struct error error;
    tenancy_end_calls(tenancy);
    struct tenancy_functions *functions = TAKE(tenancy->functions);
    if (!functions)
        return;
    carrier_free(functions->carrier);
    for (uint32_t i = 0; i < functions->count; i++) {
        loop_timer_free(functions->calls[i].timer);
        buffer_done(&functions->calls[i].answer);
    }
    if (folder_remove(functions->store, &error) < 0)
        log_event(LOG_WARN, "folder_left", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
    free(functions);
}

uint32_t tenancy_function_count(const struct tenancy *tenancy)
{
    return tenancy->functions ? tenancy->functions->count : 0;
}

const struct function_share *tenancy_function_share(const struct tenancy *tenancy)
{
    return tenancy->functions ? &tenancy->functions->share : NULL;
}

const char *tenancy_function_store(const struct tenancy *tenancy)
{
    return tenancy->functions ? tenancy->functions->store : NULL;
}

void tenancy_function_mounts(const struct tenancy *tenancy,
                             struct sandbox_mount out[TENANCY_STORE_PARTS])
{
    for (int i = 0; i < TENANCY_STORE_PARTS; i++)
        out[i] = (struct sandbox_mount){tenancy->functions->parts[i], part_targets[i],
                                        .is_writable = true};
}
