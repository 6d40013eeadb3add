/* Profiles of runs: shown, shared or not, deleted; and what was foretold of a job. */
#include "server/call.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/profiles.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

/* ---- One job's ------------------------------------------------------------------------------- */

struct name_lookup {
    struct server *server;
    struct arena *arena;
};

static struct text machine_name(void *context, uint64_t machine)
{
    const struct name_lookup *lookup = context;
    return query_name(lookup->server, lookup->arena, TABLE_MACHINES, machine);
}

/* Of a job that has leases, or has just lost them, as it is now, of another as it was kept. */
static int find_profile(struct server *server, struct arena *arena, const struct store_value *row,
                        struct profile *out_profile, struct error *error)
{
    const uint64_t job = (uint64_t)row[JOBS_ID].integer;
    bool is_there = false;
    if (live_is_there(server->live, job)) {
        const struct live_job *live = live_find(server->live, job, LIVE_CURVE);
        if (profile_make(server, arena, job, live, out_profile, &is_there, error) < 0)
            return -1;
    } else if (profiles_find(server, arena, job, out_profile, &is_there, error) < 0) {
        return -1;
    }
    return is_there ? 0
                    : error_set(error, ERROR_NOT_FOUND,
                                "job %" PRIu64
                                " has no profile: it showed nothing yet, or it was deleted",
                                job);
}

static void write_range(struct json_writer *writer, const char *key,
                        const struct prediction_range *range)
{
    json_key(writer, key);
    json_object_begin(writer);
    json_field_i64(writer, "low", range->low);
    json_field_i64(writer, "expected", range->expected);
    json_field_i64(writer, "high", range->high);
    json_object_end(writer);
}

/* How far off: actual over expected, less 1. */
static void write_error(struct json_writer *writer, const char *key, bool is_over, int64_t actual,
                        int64_t expected)
{
    json_key(writer, key);
    if (is_over && expected > 0)
        json_double(writer, (double)actual / (double)expected - 1);
    else
        json_null(writer);
}

static void write_prediction(struct json_writer *writer, const struct prediction_outcome *outcome)
{
    json_key(writer, "prediction");
    if (!outcome) {
        json_null(writer);
        return;
    }
    const struct prediction_told *told = &outcome->told;
    json_object_begin(writer);
    json_field_text(writer, "rule", told->rule);
    json_field_bool(writer, "is_bound", told->is_bound);
    write_range(writer, "time_ms", &told->time_ms);
    write_range(writer, "cost_micro", &told->cost_micro);
    json_field_bool(writer, "is_over", outcome->is_over);
    json_field_i64(writer, "actual_time_ms", outcome->time_ms);
    json_field_i64(writer, "actual_cost_micro", outcome->cost_micro);
    write_error(writer, "time_error", outcome->is_over, outcome->time_ms, told->time_ms.expected);
    write_error(writer, "cost_error", outcome->is_over, outcome->cost_micro,
                told->cost_micro.expected);
    json_object_end(writer);
}

void handle_job_profile(struct http_request *request, void *context)
{
    struct server *server = context;
    struct arena *arena = http_request_arena(request);
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return;
    const struct prediction_outcome *outcome = NULL;
    struct name_lookup lookup = {server, arena};
    struct profile profile;
    struct error error;
    if (find_profile(server, arena, row, &profile, &error) < 0 ||
        profiles_prediction(server, arena, profile.job, &profile, &outcome, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    profile_write(&answer.writer, &profile, machine_name, &lookup);
    write_prediction(&answer.writer, outcome);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}

/* ---- What was foretold ----------------------------------------------------------------------- */

struct foretelling {
    struct profile profile; /* of which the job, its account and its task count */
    struct prediction_told told;
    int64_t now_ms;
};

static int put_prediction(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)error;
    const struct foretelling *foretelling = ((struct call *)request)->context;
    profiles_put_prediction(batch, &foretelling->profile, &foretelling->told, foretelling->now_ms);
    return 0;
}

static int check_range(const char *name, const struct prediction_range *range, struct error *error)
{
    if (range->low >= 0 && range->low <= range->expected && range->expected <= range->high)
        return 0;
    return error_set(error, ERROR_INVALID, "%s: low, expected and high must rise from 0", name);
}

static int read_foretelling(struct call *call, struct http_request *request,
                            const struct store_value *row, struct foretelling *out,
                            struct error *error)
{
    bool is_there = false;
    if (json_read(call->arena, http_request_body(request), &prediction_schema, &out->told, error) <
            0 ||
        check_range("time_ms", &out->told.time_ms, error) < 0 ||
        check_range("cost_micro", &out->told.cost_micro, error) < 0)
        return -1;
    if (job_state_is_final((enum job_state)row[JOBS_STATE].integer))
        return error_set(error, ERROR_CONFLICT,
                         "the job has ended: nothing of it can be foretold any more");
    if (profile_make(call->server, call->arena, (uint64_t)row[JOBS_ID].integer, NULL, &out->profile,
                     &is_there, error) < 0)
        return -1;
    return is_there ? 0 : error_set(error, ERROR_NOT_FOUND, "the job cannot be read any more");
}

void handle_prediction_put(struct http_request *request, void *context)
{
    const struct store_value *row = handle_job_find(context, request);
    if (!row)
        return;
    AUTO(call) struct call *call = call_new(context, request);
    struct foretelling *foretelling = arena_alloc(call->arena, sizeof(*foretelling));
    struct error error;
    *foretelling = (struct foretelling){.now_ms = clock_utc_ms(call->server->clock)};
    if (read_foretelling(call, request, row, foretelling, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->context = foretelling;
    call_look_take(TAKE(call), put_prediction, call_reply_nothing);
}

/* ---- All of an account ----------------------------------------------------------------------- */

struct sharing {
    bool is_shared;
};
static const struct json_field sharing_fields[] = {
    {"shared", JSON_BOOL, offsetof(struct sharing, is_shared), .is_required = true},
};
static const struct json_schema sharing_schema =
    JSON_SCHEMA("profiles", sharing_fields, struct sharing);

static void send_sharing(struct server *server, struct http_request *request, bool is_shared)
{
    const int64_t keep_ms = server->options.profile_keep_ms;
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    json_object_begin(writer);
    json_field_bool(writer, "shared", is_shared);
    json_field_bool(writer, "market_shares", server->options.has_shared_profiles);
    json_field_i64(writer, "keep_ms",
                   keep_ms > 0 ? keep_ms : PROFILES_KEEP_DAYS * INT64_C(86400000));
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
}

void handle_profiles_get(struct http_request *request, void *context)
{
    bool is_shared = false;
    struct error error;
    if (profiles_is_shared(context, http_request_arena(request), route_caller(request)->account,
                           &is_shared, &error) < 0)
        http_reply_error(request, &error);
    else
        send_sharing(context, request, is_shared);
}

static int put_sharing(struct engine_request *request, const struct core *core,
                       struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)error;
    const struct call *call = (struct call *)request;
    const struct sharing *sharing = call->context;
    profiles_put_shared(batch, call->caller.account, sharing->is_shared);
    return 0;
}

static void sharing_put(struct call *call, struct http_request *request)
{
    const struct sharing *sharing = call->context;
    send_sharing(call->server, request, sharing->is_shared);
    call_free(call);
}

void handle_profiles_put(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct sharing *sharing = arena_alloc(call->arena, sizeof(*sharing));
    struct error error;
    call->context = sharing;
    if (json_read(call->arena, http_request_body(request), &sharing_schema, sharing, &error) < 0)
        http_reply_error(request, &error);
    else
        call_look_take(TAKE(call), put_sharing, sharing_put);
}

static int delete_profiles(struct engine_request *request, const struct core *core,
                           struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)error;
    profiles_delete(batch, ((struct call *)request)->context);
    return 0;
}

static int look_at_nothing(struct engine_request *request, const struct core *core,
                           struct store_batch *batch, struct error *error)
{
    (void)request;
    (void)core;
    (void)batch;
    (void)error;
    return 0;
}

/* All that was on its way to the tables is there. */
static void delete_what_is_there(struct call *call, struct http_request *request)
{
    struct profiles_doomed *doomed = arena_alloc(call->arena, sizeof(*doomed));
    struct error error;
    call->context = doomed;
    if (profiles_of_account(call->server, call->arena, call->caller.account, doomed, &error) == 0) {
        call_look_take(call, delete_profiles, call_reply_nothing);
        return;
    }
    http_reply_error(request, &error);
    call_free(call);
}

void handle_profiles_delete(struct http_request *request, void *context)
{
    struct call *call = call_new(context, request);
    live_forget_ended(call->server->live, call->caller.account); /* or they would come again */
    call_look_take(call, look_at_nothing, delete_what_is_there);
}
