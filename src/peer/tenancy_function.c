/*
 * Tenancy, functions: the work of a lease, done by calls of functions.
 *
 * The lease's own process hands out batches (worker/caller.h); the keeper makes the calls, for it
 * alone counts what they cost. A lease has as many functions as fit into it beside that process
 * (peer/function_share.h). On this machine each has a sandbox of its own, which is started by the
 * first call and ends with the lease. To those of a host elsewhere, or of Lambda, the job and its
 * models are carried, and their updates back.
 */
#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/host.h"
#include "function/invoker.h"
#include "peer/carrier.h"
#include "peer/function_share.h"
#include "peer/tenancy_internal.h"
#include "source/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_BYTES_MAX (INT64_C(1) << 31) /* that are carried elsewhere, through memory */

enum {
    STORE_PATH_SIZE = PATH_MAX - 128,
    THROTTLED_MS = 500,       /* until a call is made again that was one too many */
    THROTTLED_MAX_MS = 60000, /* the process tries a call five times: five minutes */
    LOST_MS = 1000,           /* until one is made again that nobody answered; then twice as long */
    LOST_MAX = 5,
    ANSWER_MS = 100, /* until an answer is offered again that the process had no room for */
};

/* Of the store: function/object_store.h. */
static const char *const part_names[TENANCY_STORE_PARTS] = {"jobs", "data", "models", "updates"};
static const char *const part_targets[TENANCY_STORE_PARTS] = {
    "/functions/jobs", "/functions/data", "/functions/models", "/functions/updates"};

struct function_call {
    struct tenancy_functions *functions;
    struct work_request request;
    struct buffer answer; /* while its update is fetched, and until the process has it */
    struct loop_timer *timer;
    uint32_t number;
    bool is_used;
    bool is_withdrawn;    /* for the machine's owner: it is made again, whatever becomes of it */
    bool is_waiting;      /* until the owner leaves something over */
    bool is_answered;     /* `answer` is for the process */
    bool is_ok;           /* that is what it was asked for */
    int lost_count;       /* how often nobody answered */
    int64_t begun_ns;     /* 0: it is not under way */
    int64_t throttled_ns; /* since when it was one too many; 0: it was not */
};

struct tenancy_functions {
    struct tenancy *tenancy;
    struct host *host;       /* NULL: they are elsewhere */
    struct invoker *invoker; /* those */
    struct carrier *carrier; /* to and from them */
    char job[WORK_JOB_SIZE], store[STORE_PATH_SIZE];
    char parts[TENANCY_STORE_PARTS][PATH_MAX];
    struct function_share share;
    uint32_t count;
    int64_t billed_ms; /* of calls that have ended */
    bool is_held;      /* the machine's owner needs it: nothing is called */
    struct function_call calls[];
};

static void on_timer(void *context);

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
    const int64_t disk_bytes = tenancy_disk_bytes(functions->tenancy);
    const size_t data_bytes_max =
        disk_bytes < RECORDS_BYTES_MAX ? (size_t)disk_bytes : (size_t)RECORDS_BYTES_MAX;
    const struct carrier_options carrier = {.loop = host->loop,
                                            .own = functions->store,
                                            .place = wanted->store.data,
                                            .credentials = &credentials,
                                            .job = functions->job,
                                            .data_bytes_max = data_bytes_max};
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
        call->timer = loop_timer_new(tenancy->host->loop, on_timer, call);
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

void tenancy_free_functions(struct tenancy *tenancy)
{
    struct tenancy_functions *functions = TAKE(tenancy->functions);
    struct error error;
    if (!functions)
        return;
    invoker_free(functions->invoker);
    host_free(functions->host);
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

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A process that is held still reads nothing: its socket is not to be filled meanwhile. */
static void deliver(struct function_call *call)
{
    const struct child_message message = {.kind = CHILD_CALLED,
                                          .called = {.number = call->number,
                                                     .is_ok = call->is_ok,
                                                     .json = buffer_text(&call->answer)}};
    if (call->functions->is_held)
        return;
    if (!tenancy_offer_to_child(call->functions->tenancy, &message)) {
        loop_timer_start(call->timer, ANSWER_MS);
        return;
    }
    call->is_answered = false;
    call->is_used = false;
}

static void answer(struct function_call *call, bool is_ok)
{
    call->is_answered = true;
    call->is_ok = is_ok;
    deliver(call);
}

static void answer_failure(struct function_call *call, const char *reason)
{
    struct json_writer writer;
    buffer_clear(&call->answer);
    json_writer_init(&writer, &call->answer);
    json_object_begin(&writer);
    json_field_string(&writer, "errorType", "Call.Failed");
    json_field_string(&writer, "errorMessage", reason);
    json_object_end(&writer);
    answer(call, /* is_ok= */ false);
}

static void on_fetched(void *context, const struct error *reason)
{
    struct function_call *call = context;
    if (reason)
        answer_failure(call, reason->message);
    else
        answer(call, /* is_ok= */ true);
}

static void begin(struct function_call *call);

static void on_timer(void *context)
{
    struct function_call *call = context;
    if (call->is_answered)
        deliver(call);
    else
        begin(call);
}

/* However long it was waited for: a function ends after its time, and is not paid for longer. */
static int64_t counted_ms(const struct tenancy_functions *functions, int64_t passed_ms)
{
    const int64_t most_ms =
        (int64_t)functions->tenancy->host->functions.time_ms + HOST_START_MS_MAX;
    return passed_ms < most_ms ? passed_ms : most_ms;
}

static void wait_for_room(struct function_call *call, const char *reason)
{
    const int64_t now_ns = tenancy_now_ns(call->functions->tenancy);
    char words[200];
    if (call->throttled_ns == 0)
        call->throttled_ns = now_ns;
    if (now_ns - call->throttled_ns < THROTTLED_MAX_MS * INT64_C(1000000)) {
        loop_timer_start(call->timer, THROTTLED_MS);
        return;
    }
    snprintf(words, sizeof(words), "for %d s others took all of the function's calls: %.120s",
             THROTTLED_MAX_MS / 1000, reason);
    answer_failure(call, words);
}

static void take_answer(struct function_call *call, const struct invoke_result *result)
{
    struct tenancy_functions *functions = call->functions;
    if (result->payload.size > CHILD_CALL_MAX) {
        answer_failure(call, "its answer is too long");
        return;
    }
    buffer_clear(&call->answer);
    buffer_append_text(&call->answer, result->payload);
    if (result->outcome == INVOKE_ANSWERED && functions->carrier)
        carrier_fetch(functions->carrier, &call->request, on_fetched, call);
    else
        answer(call, result->outcome == INVOKE_ANSWERED);
}

static void on_invoked(void *context, const struct invoke_result *result)
{
    struct function_call *call = context;
    struct tenancy_functions *functions = call->functions;
    const int64_t passed_ms = (tenancy_now_ns(functions->tenancy) - call->begun_ns) / 1000000;
    functions->billed_ms +=
        counted_ms(functions, result->billed_ms >= 0 ? result->billed_ms : passed_ms);
    call->begun_ns = 0;
    if (result->outcome != INVOKE_THROTTLED)
        call->throttled_ns = 0;
    if (result->outcome == INVOKE_FAILED && call->is_withdrawn)
        begin(call);
    else if (result->outcome == INVOKE_THROTTLED)
        wait_for_room(call, result->reason);
    else if (result->outcome == INVOKE_LOST && ++call->lost_count < LOST_MAX)
        loop_timer_start(call->timer, (int64_t)LOST_MS << (call->lost_count - 1));
    else if (result->payload.size)
        take_answer(call, result);
    else
        answer_failure(call, result->reason);
}

static void on_result(void *context, const struct host_result *result)
{
    const struct invoke_result invoked = {
        .outcome = result->is_failed ? INVOKE_FAILED : INVOKE_ANSWERED,
        .payload = result->payload,
        .reason = "",
        .billed_ms = result->billed_ms,
    };
    on_invoked(context, &invoked);
}

static void invoke(struct function_call *call)
{
    struct tenancy_functions *functions = call->functions;
    const struct text store = functions->tenancy->host->functions.store;
    struct work_request request = call->request;
    struct error error;
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json, CHILD_CALL_MAX);
    if (object_store_is_remote(store)) /* a folder is the host's own */
        request.store = store;
    json_writer_init(&writer, &json);
    json_write(&writer, &work_request_schema, &request);
    call->begun_ns = tenancy_now_ns(functions->tenancy);
    if ((functions->host
             ? host_call(functions->host, buffer_text(&json), on_result, call, &error)
             : invoker_call(functions->invoker, buffer_text(&json), on_invoked, call, &error)) == 0)
        return;
    call->begun_ns = 0;
    answer_failure(call, error.message);
}

static void on_brought(void *context, const struct error *reason)
{
    struct function_call *call = context;
    call->is_waiting = !reason && call->functions->is_held;
    if (reason)
        answer_failure(call, reason->message);
    else if (!call->is_waiting && !call->functions->tenancy->is_stop_wanted)
        invoke(call);
}

static void begin(struct function_call *call)
{
    struct tenancy_functions *functions = call->functions;
    call->is_withdrawn = false;
    call->is_waiting = functions->is_held;
    if (call->is_waiting || functions->tenancy->is_stop_wanted) /* nobody waits for it any more */
        return;
    if (functions->carrier)
        carrier_bring(functions->carrier, &call->request, on_brought, call);
    else
        invoke(call);
}

/* Of its own job alone: objects of others are not its to name. */
static int read_request(const struct tenancy_functions *functions, struct text json,
                        struct work_request *out_request, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    if (work_request_read(arena, json, out_request, error) < 0)
        return -1;
    out_request->store = (struct text){0};
    return strcmp(out_request->job, functions->job) == 0
               ? 0
               : error_set(error, ERROR_CORRUPT, "the process calls for another job");
}

void tenancy_call_function(struct tenancy *tenancy, uint32_t number, struct text request)
{
    struct tenancy_functions *functions = tenancy->functions;
    struct error error;
    uint32_t i = 0;
    while (i < functions->count && functions->calls[i].is_used)
        i++;
    struct function_call *call = &functions->calls[i];
    if (i == functions->count)
        error_set(&error, ERROR_CORRUPT, "the process makes more calls than it has functions");
    else if (read_request(functions, request, &call->request, &error) == 0) {
        call->is_used = true;
        call->number = number;
        call->lost_count = 0;
        call->throttled_ns = 0;
        begin(call);
        return;
    }
    tenancy_fail(tenancy, &error);
}

int64_t tenancy_called_ms(const struct tenancy *tenancy)
{
    const struct tenancy_functions *functions = tenancy->functions;
    const int64_t now_ns = tenancy_now_ns(tenancy);
    int64_t sum_ms = functions->billed_ms;
    ASSERT(functions->count > 0);
    for (uint32_t i = 0; i < functions->count; i++)
        if (functions->calls[i].begun_ns > 0)
            sum_ms +=
                counted_ms(functions, (now_ns - functions->calls[i].begun_ns + 999999) / 1000000);
    return (sum_ms + functions->count - 1) / functions->count;
}

void tenancy_yield_functions(struct tenancy *tenancy, enum yield_level level)
{
    struct tenancy_functions *functions = tenancy->functions;
    functions->is_held = level == YIELD_FROZEN;
    if (functions->is_held) {
        for (uint32_t i = 0; i < functions->count; i++)
            functions->calls[i].is_withdrawn = functions->calls[i].begun_ns > 0;
        if (functions->host)
            host_end_instances(functions->host);
        return;
    }
    if (functions->host)
        host_set_share(functions->host, level == YIELD_LOW ? TENANCY_LOW_SHARE_MILLI : 1000,
                       /* is_idle= */ level == YIELD_LOW);
    for (uint32_t i = 0; i < functions->count; i++) {
        struct function_call *call = &functions->calls[i];
        if (call->is_answered)
            deliver(call);
        else if (call->is_waiting)
            begin(call);
    }
}
