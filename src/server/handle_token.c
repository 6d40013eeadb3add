/* Tokens: making, listing, revoking; sessions are listed here too. */
#include "base/log.h"
#include "server/auth.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/token_use.h"
#include "server/view.h"

struct new_token {
    struct text name;
    struct json_array scopes; /* struct text */
    int64_t expires_ms;       /* 0: never */
};
static const struct json_field new_token_fields[] = {
    {"name", JSON_TEXT, offsetof(struct new_token, name), .is_required = true, .size_max = 63},
    {"scopes", JSON_TEXTS, offsetof(struct new_token, scopes), .is_required = true, .size_max = 8},
    {"expires_ms", JSON_I64, offsetof(struct new_token, expires_ms), .minimum = 0,
     .maximum = INT64_MAX},
};
static const struct json_schema new_token_schema =
    JSON_SCHEMA("token", new_token_fields, struct new_token);

static void token_created(struct call *call, struct http_request *request)
{
    const struct store_value *row = NULL;
    struct error error;
    if (query_id(call->server, call->arena, TABLE_TOKENS, call->request.subject, "token", &row,
                 &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_i64(&answer.writer, "id", row[TOKENS_ID].integer);
    json_field_text(&answer.writer, "name", row[TOKENS_LABEL].bytes);
    json_key(&answer.writer, "scopes");
    view_scopes(&answer.writer, (uint64_t)row[TOKENS_SCOPES].integer);
    json_field_i64(&answer.writer, "expires_ms", row[TOKENS_EXPIRES_MS].integer);
    json_field_string(&answer.writer, "token", call->context);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

void handle_token_create(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct new_token body = {0};
    uint64_t scopes = 0;
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_token_schema, &body, &error) < 0 ||
        view_read_scopes(&body.scopes, &scopes, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    if (text_trim(body.name).size == 0) {
        http_reply_problem(request, 400, "invalid", "name: say what the token is for");
        return;
    }
    if (scopes & ~call->caller.scopes) {
        http_reply_problem(request, 403, "refused",
                           "a token cannot make one with more scopes than its own");
        return;
    }
    if (!auth_may_last(&call->caller, body.expires_ms)) {
        http_reply_problem(request, 403, "refused",
                           "expires_ms: a token that ends cannot make one that outlives it");
        return;
    }
    if (body.expires_ms && body.expires_ms <= clock_utc_ms(call->server->clock)) {
        http_reply_problem(request, 400, "invalid",
                           "expires_ms: is in the past; leave it out for a token that stays");
        return;
    }
    char *token = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    call_token(call, "account", token);
    call->context = token;
    call->request.command = (struct command){
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = call->caller.account,
                      .scopes = scopes,
                      .expires_ms = body.expires_ms,
                      .label = body.name},
    };
    token_hash(text_of(token), call->request.command.add_token.hash);
    call_start_take(TAKE(call), token_created);
}

/* The table is a minute behind; what was used since is in memory. */
static int find_last_used(struct server *server, struct arena *arena, uint64_t token,
                          int64_t *out_used_ms, struct error *error)
{
    *out_used_ms = token_uses_recent_ms(server->token_uses, token);
    if (*out_used_ms)
        return 0;
    const struct store_value *row = NULL;
    if (query_one(server, arena, TABLE_TOKEN_USES, "token", store_integer((int64_t)token), &row,
                  error) < 0)
        return -1;
    *out_used_ms = row ? row[TOKEN_USES_USED_MS].integer : 0;
    return 0;
}

static void list_tokens(struct http_request *request, struct server *server, bool is_session)
{
    struct arena *arena = http_request_arena(request);
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)route_caller(request)->account)},
        {"is_revoked", STORE_EQUAL, store_integer(0)},
        {"is_session", STORE_EQUAL, store_integer(is_session)},
        {"expires_ms", STORE_GREATER, store_integer(clock_utc_ms(server->clock))},
    };
    /* A session always ends by itself; a token that has ended is shown until it is revoked. */
    struct store_query query = {
        .table = &tables[TABLE_TOKENS], .filters = filters, .filter_count = is_session ? 4 : 3};
    struct query_rows rows;
    struct error error;
    if (query_page(request, server, arena, &query, &rows, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    query_page_begin(&answer.writer);
    for (size_t i = 0; i < rows.count; i++) {
        const uint64_t id = (uint64_t)rows.items[i][TOKENS_ID].integer;
        struct view_token token = {.row = rows.items[i],
                                   .is_current = id == route_caller(request)->token};
        if (find_last_used(server, arena, id, &token.last_used_ms, &error) < 0)
            log_event(LOG_WARN, "last_use_not_found", "error=\"%s\"", error.message);
        view_token(&answer.writer, &token);
    }
    query_page_end(&answer.writer, &rows);
    view_answer_send(&answer, request, 200);
}

void handle_token_list(struct http_request *request, void *context)
{
    list_tokens(request, context, false);
}

void handle_session_list(struct http_request *request, void *context)
{
    list_tokens(request, context, true);
}

void handle_token_delete(struct http_request *request, void *context)
{
    uint64_t token = 0;
    if (route_id(request, "a token's", &token) < 0)
        return;
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_REVOKE_TOKEN,
        .revoke_token = {.account = call->caller.account, .token = token},
    };
    call_start_take(call, call_reply_nothing);
}
