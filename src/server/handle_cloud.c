/* The operator's instances at a cloud. */
#include "server/call.h"
#include "server/cloud.h"
#include "server/handlers.h"
#include "server/view.h"

enum { COUNT_MAX = 256 };
#define USD_MICRO_MAX INT64_C(100000000000)
#define JOB_ID_MAX    (INT64_C(1) << 53)

/* -1: there is no cloud, and that was answered. */
static int find_cloud(const struct server *server, struct http_request *request)
{
    struct error error;
    if (server->cloud)
        return 0;
    error_set(&error, ERROR_NOT_FOUND,
              "this market has no cloud: its operator starts it with --cloud FILE");
    http_reply_error(request, &error);
    return -1;
}

static void send_cloud(const struct server *server, struct http_request *request, int status)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    cloud_write(server->cloud, &answer.writer);
    view_answer_send(&answer, request, status);
}

void handle_cloud_get(struct http_request *request, void *context)
{
    const struct server *server = context;
    if (find_cloud(server, request) == 0)
        send_cloud(server, request, 200);
}

void handle_cloud_sweep(struct http_request *request, void *context)
{
    const struct server *server = context;
    if (find_cloud(server, request) < 0)
        return;
    cloud_sweep(server->cloud);
    send_cloud(server, request, 202);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

struct order_body {
    struct json_array types; /* of struct text */
    int64_t count;
    bool is_spot;
    int64_t usd_micro_per_hour_max, usd_micro_max;
    int64_t job;      /* 0: none */
    uint64_t account; /* of the job */
    bool has_key;     /* the call's */
};
static const struct json_field order_fields[] = {
    {"types", JSON_TEXTS, offsetof(struct order_body, types), .is_required = true,
     .size_max = CLOUD_TYPES_MAX, .maximum = 64},
    {"count", JSON_I64, offsetof(struct order_body, count), .minimum = 1, .maximum = COUNT_MAX},
    {"spot", JSON_BOOL, offsetof(struct order_body, is_spot)},
    {"usd_micro_per_hour_max", JSON_I64, offsetof(struct order_body, usd_micro_per_hour_max),
     .minimum = 0, .maximum = USD_MICRO_MAX},
    {"usd_micro_max", JSON_I64, offsetof(struct order_body, usd_micro_max), .minimum = 0,
     .maximum = USD_MICRO_MAX},
    {"job", JSON_I64, offsetof(struct order_body, job), .minimum = 1, .maximum = JOB_ID_MAX},
};
static const struct json_schema order_schema =
    JSON_SCHEMA("order", order_fields, struct order_body);

/* Core thread: whose job it is, if it goes on. */
static int look_at_job(struct engine_request *request, const struct core *core,
                       struct store_batch *batch, struct error *error)
{
    struct order_body *body = ((struct call *)request)->context;
    (void)batch;
    if (!body->job)
        return 0;
    const struct job *job = core_job(core, (uint64_t)body->job);
    if (!job)
        return error_set(error, ERROR_NOT_FOUND, "there is no such job");
    if (job_state_is_final(job->state))
        return error_set(error, ERROR_CONFLICT, "the job has ended");
    body->account = job->request.account;
    return 0;
}

static void order_made(struct call *call, struct http_request *request)
{
    const struct order_body *body = call->context;
    struct cloud *cloud = call->server->cloud;
    struct error error;
    uint64_t order;
    struct cloud_wish wish = {
        .type_count = body->types.count,
        .count = (uint32_t)body->count,
        .is_spot = body->is_spot,
        .usd_micro_per_hour_max = body->usd_micro_per_hour_max,
        .usd_micro_max = body->usd_micro_max,
        .job = (uint64_t)body->job,
        .account = body->account,
        .key = body->has_key ? call->key_hash : NULL,
        .request = body->has_key ? call->request_hash : NULL,
    };
    for (size_t i = 0; i < body->types.count; i++)
        wish.types[i] = ((const struct text *)body->types.items)[i];
    if (cloud_order(cloud, &wish, &order, &error) < 0) {
        http_reply_error(request, &error);
    } else {
        struct view_answer answer;
        view_answer_begin(&answer);
        cloud_write_order(cloud, order, &answer.writer);
        view_answer_send(&answer, request, 201);
    }
    call_free(call);
}

void handle_cloud_order(struct http_request *request, void *context)
{
    struct server *server = context;
    struct error error;
    AUTO(call) struct call *call = call_new(server, request);
    struct order_body *body = arena_alloc(call->arena, sizeof(*body));
    body->count = 1;
    if (json_read(call->arena, http_request_body(request), &order_schema, body, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (find_cloud(server, request) < 0)
        return;
    body->has_key = call->has_key; /* that of a look is forgotten */
    call->context = body;
    call_look_take(TAKE(call), look_at_job, order_made);
}

void handle_cloud_stop(struct http_request *request, void *context)
{
    const struct server *server = context;
    struct error error;
    uint64_t order = 0;
    if (find_cloud(server, request) < 0 || route_id(request, "an order's", &order) < 0)
        return;
    if (cloud_stop_order(server->cloud, order, &error) < 0)
        http_reply_error(request, &error);
    else
        send_cloud(server, request, 202);
}

void handle_cloud_stop_all(struct http_request *request, void *context)
{
    const struct server *server = context;
    struct error error;
    if (find_cloud(server, request) < 0)
        return;
    if (cloud_stop_all(server->cloud, &error) < 0)
        http_reply_error(request, &error);
    else
        send_cloud(server, request, 202);
}
