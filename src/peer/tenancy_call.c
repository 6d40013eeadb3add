/*
 * Calls of a tenancy's functions: the process asks for them, they are made, made again or given up,
 * and answered; and what they cost is counted.
 *
 * A call is in one place at a time: its objects are brought, it is under way, its timer runs until
 * it is made again, its update is fetched, its answer is offered to the process, or it waits for
 * the machine's owner. tenancy_end_calls ends all of that.
 */
#include "base/assert.h"
#include "base/json.h"
#include "function/host.h"
#include "function/invoker.h"
#include "function/object_store.h"
#include "peer/carrier.h"
#include "peer/tenancy_function_internal.h"

#include <stdio.h>
#include <string.h>

enum {
    THROTTLED_MS = 500,       /* until a call is made again that was one too many */
    THROTTLED_MAX_MS = 60000, /* the process tries a call five times: five minutes */
    LOST_MS = 1000,           /* until one is made again that nobody answered; then twice as long */
    LOST_MAX = 5,
    ANSWER_MS = 100, /* until an answer is offered again that the process had no room for */
};

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
    loop_timer_stop(call->timer); /* the owner's word may have come before it */
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

void function_call_on_timer(void *context)
{
    struct function_call *call = context;
    if (call->is_answered)
        deliver(call);
    else
        begin(call);
}

/* However long it was waited for: a function ends after its time, and is not paid for longer. Nor
 * is it for more than it was waited for, whatever its host says. */
static int64_t counted_ms(const struct function_call *call, int64_t told_ms)
{
    const struct tenancy *tenancy = call->functions->tenancy;
    const int64_t most_ms = (int64_t)tenancy->host->functions.time_ms + HOST_START_MS_MAX;
    int64_t counted_ms = (tenancy_now_ns(tenancy) - call->begun_ns + 999999) / 1000000;
    if (told_ms >= 0 && told_ms < counted_ms)
        counted_ms = told_ms;
    return counted_ms < most_ms ? counted_ms : most_ms;
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
    snprintf(words, sizeof(words), "for %d s no call was let in: %.120s", THROTTLED_MAX_MS / 1000,
             reason);
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
    functions->billed_ms += counted_ms(call, result->billed_ms);
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
        answer_failure(call, result->reason[0] ? result->reason : "its answer is empty");
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
    if (object_store_is_market(store))
        request.token = text_of(carrier_token(functions->carrier));
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

/* It was stopped, or has ended. */
static bool is_nobody_waiting(const struct function_call *call)
{
    const struct tenancy *tenancy = call->functions->tenancy;
    return tenancy->is_stop_wanted || tenancy->has_exited || tenancy->has_ended;
}

static void on_brought(void *context, const struct error *reason)
{
    struct function_call *call = context;
    call->is_waiting = !reason && call->functions->is_held;
    if (reason)
        answer_failure(call, reason->message);
    else if (!call->is_waiting && !is_nobody_waiting(call))
        invoke(call);
}

static void begin(struct function_call *call)
{
    struct tenancy_functions *functions = call->functions;
    call->is_withdrawn = false;
    call->is_waiting = functions->is_held;
    if (call->is_waiting || is_nobody_waiting(call))
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
    int64_t sum_ms = functions->billed_ms;
    ASSERT(functions->count > 0);
    for (uint32_t i = 0; i < functions->count; i++)
        if (functions->calls[i].begun_ns > 0)
            sum_ms += counted_ms(&functions->calls[i], /* told_ms= */ -1);
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
