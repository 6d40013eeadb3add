/* Accounts: opening one, its statement, and signing a browser in. */
#include "server/answers.h"
#include "server/auth.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

enum { PAGE_CODE_MS = 60000, SESSION_MS = 12 * 3600 * 1000, SECRET_KEY_SIZE_MIN = 32 };

static int account_row(struct server *server, struct arena *arena, uint64_t account,
                       const struct store_value **out_row, struct error *error)
{
    return query_id(server, arena, TABLE_ACCOUNTS, account, "account", out_row, error);
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct new_account {
    struct text name;
};
static const struct json_field new_account_fields[] = {
    {"name", JSON_TEXT, offsetof(struct new_account, name), .is_required = true, .size_max = 64},
};
static const struct json_schema new_account_schema =
    JSON_SCHEMA("account", new_account_fields, struct new_account);

static void account_created(struct call *call, struct http_request *request)
{
    const struct store_value *row = NULL;
    struct error error;
    if (account_row(call->server, call->arena, call->request.subject, &row, &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_key(&answer.writer, "account");
    view_account(&answer.writer, row);
    json_field_string(&answer.writer, "token", call->context);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

/* The account and its first token are one change: neither is ever seen without the other. */
static bool add_first_token(struct engine_request *request)
{
    if (request->command.kind != COMMAND_OPEN_ACCOUNT)
        return false;
    const struct call *call = (const struct call *)request;
    request->command = (struct command){
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = request->subject,
                      .scopes = TOKEN_SCOPE_ALL,
                      .label = TEXT("first token")},
    };
    token_hash(text_of(call->context), request->command.add_token.hash);
    return true;
}

/* A repeat of the request is answered with the account's token, and nobody has signed in: whoever
 * knows the key has the account. */
static bool is_guessable(struct text key)
{
    return key.size && key.size < SECRET_KEY_SIZE_MIN;
}

void handle_account_create(struct http_request *request, void *context)
{
    if (is_guessable(http_request_header(request, "Idempotency-Key"))) {
        http_reply_problem(request, 400, "invalid",
                           "an Idempotency-Key that opens an account gives its token to whoever "
                           "repeats it: make it 32 random characters or more");
        return;
    }
    AUTO(call) struct call *call = call_new(context, request);
    struct new_account body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_account_schema, &body, &error) <
        0) {
        http_reply_error(request, &error);
        return;
    }
    char *token = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    call_token(call, "account", token);
    call->context = token;
    call->request.next = add_first_token;
    call->request.command = (struct command){
        .kind = COMMAND_OPEN_ACCOUNT,
        .open_account = {.name = body.name},
    };
    call_start_take(TAKE(call), account_created);
}

void handle_account_get(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    const struct store_value *row = NULL;
    struct error error;
    if (account_row(server, http_request_arena(request), route_caller(request)->account, &row,
                    &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    view_account(&answer.writer, row);
    answers_send(server->answers, &answer, request);
}

/* ---- Signing in ------------------------------------------------------------------------------ */

static void page_code_created(struct call *call, struct http_request *request)
{
    const char *code = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_string(&answer.writer, "code", code);
    json_field_i64(&answer.writer, "expires_ms", call->request.command.add_code.expires_ms);
    json_field_string(&answer.writer, "url",
                      arena_format(call->arena, "%s/#code=%s", call->server->url, code));
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

void handle_page_code_create(struct http_request *request, void *context)
{
    struct server *server = context;
    if (route_caller(request)->scopes != TOKEN_SCOPE_ALL) {
        http_reply_problem(request, 403, "refused",
                           "a signed-in page has every scope: use a token that has them all");
        return;
    }
    struct call *call = call_new(server, request);
    char *code = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    token_new("page", code);
    call->context = code;
    call->request.command = (struct command){
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_PAGE,
                     .account = call->caller.account,
                     .expires_ms = clock_utc_ms(server->clock) + PAGE_CODE_MS},
    };
    token_hash(text_of(code), call->request.command.add_code.hash);
    call_start_take(call, page_code_created);
}

struct new_session {
    struct text code;
};
static const struct json_field new_session_fields[] = {
    {"code", JSON_TEXT, offsetof(struct new_session, code), .is_required = true, .size_max = 128},
};
static const struct json_schema new_session_schema =
    JSON_SCHEMA("session", new_session_fields, struct new_session);

static void session_created(struct call *call, struct http_request *request)
{
    const char *token = call->context;
    struct error error;
    const struct store_value *row = NULL;
    const char *cookie =
        arena_format(call->arena,
                     AUTH_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; "
                                 "Max-Age=%d%s",
                     token, SESSION_MS / 1000, http_request_is_secure(request) ? "; Secure" : "");
    if (account_row(call->server, call->arena, call->caller.account, &row, &error) < 0 ||
        http_reply_header(request, "Set-Cookie", cookie, &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_key(&answer.writer, "account");
    view_account(&answer.writer, row);
    json_field_i64(&answer.writer, "expires_ms", call->request.command.add_token.expires_ms);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

/* The code is used up and the session begins in one change. */
static bool add_session(struct engine_request *request)
{
    if (request->command.kind != COMMAND_USE_CODE)
        return false;
    struct call *call = (struct call *)request;
    call->caller.account = request->subject;
    request->command = (struct command){
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = request->subject,
                      .scopes = TOKEN_SCOPE_ALL,
                      .expires_ms = request->now_ms + SESSION_MS,
                      .label = TEXT("page")},
    };
    token_hash(text_of(call->context), request->command.add_token.hash);
    return true;
}

/* A code that is used up or unknown is a failed sign-in, whatever the core calls it. */
static void code_decided(struct engine_request *engine_request, const struct error *error)
{
    struct call *call = (struct call *)engine_request;
    struct http_request *request = call_http(call);
    if (!request) {
        call_free(call);
    } else if (error && error->code != ERROR_UNAVAILABLE && error->code != ERROR_EXHAUSTED) {
        http_reply_problem(request, 401, "unauthorized",
                           "this code was used or has expired: `souk account open` prints a new "
                           "address");
        call_free(call);
    } else if (error) {
        http_reply_error(request, error);
        call_free(call);
    } else {
        session_created(call, request);
    }
}

void handle_session_create(struct http_request *request, void *context)
{
    struct server *server = context;
    if (http_request_header(request, "Origin").size && !auth_is_own_page(server, request)) {
        http_reply_problem(request, 403, "refused",
                           "a browser signs in from this server's own pages only");
        return;
    }
    AUTO(call) struct call *call = call_new(server, request);
    struct new_session body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_session_schema, &body, &error) <
        0) {
        http_reply_error(request, &error);
        return;
    }
    char *token = arena_alloc(call->arena, KEYS_TOKEN_SIZE);
    token_new("session", token);
    call->context = token;
    call->request.has_command = true;
    call->request.next = add_session;
    call->request.command = (struct command){
        .kind = COMMAND_USE_CODE,
        .use_code = {.kind = CODE_KIND_PAGE},
    };
    token_hash(body.code, call->request.command.use_code.hash);
    call->request.on_done = code_decided;
    if (engine_submit(server->engine, &call->request, false, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call = NULL; /* the engine's until code_decided */
}

static void session_deleted(struct call *call, struct http_request *request)
{
    struct error error;
    if (http_reply_header(request, "Set-Cookie",
                          AUTH_COOKIE "=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
                          &error) < 0)
        http_reply_error(request, &error);
    else
        http_reply(request, 204, "application/json", TEXT(""));
    call_free(call);
}

void handle_session_delete(struct http_request *request, void *context)
{
    const struct caller *caller = route_caller(request);
    if (!caller->is_session) {
        http_reply_problem(request, 400, "invalid",
                           "there is no session cookie; a token is revoked by DELETE "
                           "/v1/tokens/{id}");
        return;
    }
    struct call *call = call_new(context, request);
    call->request.command = (struct command){
        .kind = COMMAND_REVOKE_TOKEN,
        .revoke_token = {.account = caller->account, .token = caller->token},
    };
    call_start_take(call, session_deleted);
}
