/*
 * Tokens for the functions of one job: whoever runs them holds nothing else of the account's.
 *
 * An account's is a token as any other, with the scope `objects` alone; its label is the job. A
 * lease's is derived from its number as its fetch token is, and ends with it.
 */
#include "server/auth.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/objects.h"
#include "server/query.h"
#include "server/view.h"

#include <string.h>

#define LIFETIME_MS (INT64_C(24) * 3600 * 1000)

struct new_token {
    struct text job;
};
static const struct json_field new_token_fields[] = {
    {"job", JSON_TEXT, offsetof(struct new_token, job), .is_required = true,
     .size_max = ROUTE_OBJECTS_JOB_SIZE - 1},
};
static const struct json_schema new_token_schema =
    JSON_SCHEMA("token", new_token_fields, struct new_token);

struct made_token {
    const char *job, *token;
    uint64_t id; /* 0: it cannot be revoked */
    int64_t expires_ms;
};

static void reply_token(struct http_request *request, const struct made_token *made)
{
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_u64(&answer.writer, "id", made->id);
    json_field_string(&answer.writer, "job", made->job);
    json_field_i64(&answer.writer, "expires_ms", made->expires_ms);
    json_field_string(&answer.writer, "token", made->token);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
}

static void reply_lease_token(struct server *server, struct http_request *request,
                              const struct text job)
{
    const struct caller *caller = route_caller(request);
    char token[KEYS_TOKEN_SIZE];
    if (!text_equal(job, text_of(caller->objects_job))) {
        http_reply_problem(request, 403, "refused",
                           "job: a lease's functions work on its own objects: lease-LEASE-FENCE");
        return;
    }
    keys_objects_token(server->keys, caller->lease, caller->fence, token);
    reply_token(request, &(struct made_token){caller->objects_job, token, 0, 0});
}

static void token_created(struct call *call, struct http_request *request)
{
    struct made_token *made = call->context;
    made->id = call->request.subject;
    reply_token(request, made);
    call_free(call);
}

/* It lives for a day, and no longer than what made it. */
static int64_t expiry_of(const struct call *call)
{
    const int64_t expires_ms = clock_utc_ms(call->server->clock) + LIFETIME_MS;
    return auth_may_last(&call->caller, expires_ms) ? expires_ms : call->caller.expires_ms;
}

void handle_object_token_create(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct new_token body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_token_schema, &body, &error) < 0 ||
        objects_check_name(body.job, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (memchr(body.job.data, '/', body.job.size)) {
        http_reply_problem(request, 400, "invalid", "job: its name, without a '/'");
        return;
    }
    if (call->caller.lease) {
        reply_lease_token(context, request, body.job);
        return;
    }
    char *token = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    call_token(call, "function", token);
    struct made_token *made = arena_alloc(call->arena, sizeof(*made));
    *made =
        (struct made_token){arena_copy_string(call->arena, body.job), token, 0, expiry_of(call)};
    call->context = made;
    call->request.command = (struct command){
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = call->caller.account,
                      .scopes = TOKEN_SCOPE_OBJECTS,
                      .expires_ms = made->expires_ms,
                      .label = text_of(made->job)},
    };
    token_hash(text_of(token), call->request.command.add_token.hash);
    call_start_take(TAKE(call), token_created);
}

void handle_object_token_delete(struct http_request *request, void *context)
{
    uint64_t token = 0;
    const struct store_value *row = NULL;
    struct error error;
    if (route_id(request, "a token's", &token) < 0)
        return;
    if (query_id(context, http_request_arena(request), TABLE_TOKENS, token, "token", &row, &error) <
        0) {
        http_reply_error(request, &error);
        return;
    }
    /* The owner's other tokens are not the borrower's to end. */
    if ((uint64_t)row[TOKENS_ACCOUNT].integer != route_caller(request)->account ||
        row[TOKENS_SCOPES].integer != TOKEN_SCOPE_OBJECTS) {
        http_reply_problem(request, 404, "not_found",
                           "there is no such token of a job's functions");
        return;
    }
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_REVOKE_TOKEN,
        .revoke_token = {.account = call->caller.account, .token = token},
    };
    call_start_take(call, call_reply_nothing);
}
