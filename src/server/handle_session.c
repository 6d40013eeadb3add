/*
 * Sessions: signing in by a page code or by name and password, listing and ending them.
 *
 * A session is a token with every scope that ends by itself. A browser gets it as a cookie that
 * scripts cannot read and other sites cannot send; a program that signs in asks for the token.
 */
#include "server/handle_session.h"

#include "server/auth.h"
#include "server/call_password.h"
#include "server/gate.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#define LOGIN_MS (INT64_C(30) * 24 * 3600 * 1000)

enum { PAGE_CODE_MS = 60000 };

bool session_may_begin(const struct server *server, struct http_request *request)
{
    return !http_request_header(request, "Origin").size || auth_is_own_page(server, request);
}

static int put_cookie(const struct server *server, struct http_request *request, const char *token,
                      int max_age_s, struct error *error)
{
    const char *cookie = arena_format(http_request_arena(request),
                                      "%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%d%s",
                                      auth_cookie_name(server, request), token, max_age_s,
                                      auth_is_secure(server, request) ? "; Secure" : "");
    return http_reply_header(request, "Set-Cookie", cookie, error);
}

int session_set_cookie(const struct server *server, struct http_request *request, const char *token,
                       struct error *error)
{
    return put_cookie(server, request, token, SESSION_COOKIE_MS / 1000, error);
}

/* ---- Page codes ------------------------------------------------------------------------------ */

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
    if (!auth_may_last(route_caller(request), 0)) {
        http_reply_problem(request, 403, "refused",
                           "a signed-in page may outlive this token: use one that does not end");
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

/* ---- Signing in ------------------------------------------------------------------------------ */

struct new_session {
    struct text code;
    struct text name;
    struct text password;
    bool is_cookie;
};
static const struct json_field new_session_fields[] = {
    {"code", JSON_TEXT, offsetof(struct new_session, code), .size_max = 128},
    {"name", JSON_TEXT, offsetof(struct new_session, name), .size_max = 64},
    {"password", JSON_TEXT, offsetof(struct new_session, password), .size_max = 4096},
    {"cookie", JSON_BOOL, offsetof(struct new_session, is_cookie)},
};
static const struct json_schema new_session_schema =
    JSON_SCHEMA("session", new_session_fields, struct new_session);

/* A sign-in on its way, in the call's arena. */
struct sign_in {
    char token[KEYS_TOKEN_SIZE];
    struct text name;
    uint64_t account; /* of the name; 0: nobody's */
    bool is_cookie;
};

static void session_created(struct call *call, struct http_request *request)
{
    const struct sign_in *sign_in = call->context;
    struct error error;
    const struct store_value *row = NULL;
    int result = query_id(call->server, call->arena, TABLE_ACCOUNTS, call->caller.account,
                          "account", &row, &error);
    if (result == 0 && sign_in->is_cookie)
        result = session_set_cookie(call->server, request, sign_in->token, &error);
    if (result < 0) {
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
    if (!sign_in->is_cookie)
        json_field_string(&answer.writer, "token", sign_in->token);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

static struct command session_command(const struct sign_in *sign_in, uint64_t account,
                                      int64_t now_ms)
{
    struct command command = {
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = account,
                      .scopes = TOKEN_SCOPE_ALL,
                      .expires_ms = now_ms + (sign_in->is_cookie ? SESSION_COOKIE_MS : LOGIN_MS),
                      .label = sign_in->is_cookie ? TEXT("page") : TEXT("login"),
                      .is_session = true},
    };
    token_hash(text_of(sign_in->token), command.add_token.hash);
    return command;
}

/* The code is used up and the session begins in one change. */
static bool add_session(struct engine_request *request)
{
    if (request->command.kind != COMMAND_USE_CODE)
        return false;
    struct call *call = (struct call *)request;
    call->caller.account = request->subject;
    request->command = session_command(call->context, request->subject, request->now_ms);
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
        gate_forgive(call->server, request);
        session_created(call, request);
    }
}

static void use_code_take(struct call *call, struct http_request *request, struct text code)
{
    call->request.has_command = true;
    call->request.next = add_session;
    call->request.command = (struct command){
        .kind = COMMAND_USE_CODE,
        .use_code = {.kind = CODE_KIND_PAGE},
    };
    token_hash(code, call->request.command.use_code.hash);
    call->request.on_done = code_decided;
    struct error error;
    if (engine_submit(call->server->engine, &call->request, false, &error) == 0)
        return; /* the engine's until code_decided */
    http_reply_error(request, &error);
    call_free(call);
}

static void password_checked(struct call *call, struct http_request *request,
                             const struct password_request *result)
{
    const struct sign_in *sign_in = call->context;
    if (!result->is_match) {
        http_reply_problem(request, 401, "unauthorized", "the name or the password is wrong");
        call_free(call);
        return;
    }
    gate_forgive_name(call->server, request, sign_in->name);
    call->caller.account = sign_in->account;
    call->request.command =
        session_command(sign_in, sign_in->account, clock_utc_ms(call->server->clock));
    call_start_take(call, session_created);
}

/* An unknown name, and an account without a password, are checked like any other. */
static void check_password_take(struct call *call, struct http_request *request,
                                struct text password)
{
    struct sign_in *sign_in = call->context;
    const struct store_value *row = NULL;
    struct error error;
    if (!gate_pass_name(call->server, request, sign_in->name)) {
        call_free(call);
        return;
    }
    if (query_one(call->server, call->arena, TABLE_ACCOUNTS, "name", store_text(sign_in->name),
                  &row, &error) < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    const struct text stored = row ? row[ACCOUNTS_PASSWORD].bytes : TEXT("");
    sign_in->account = row ? (uint64_t)row[ACCOUNTS_ID].integer : 0;
    call_rest_on_password(call, sign_in->account, stored);
    call_check_take(call, password, stored, password_checked);
}

void handle_session_create(struct http_request *request, void *context)
{
    struct server *server = context;
    if (!session_may_begin(server, request)) {
        http_reply_problem(request, 403, "refused",
                           "a browser signs in from this server's own pages only");
        return;
    }
    AUTO(call) struct call *call = call_new(server, request);
    struct new_session body = {.is_cookie = true};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_session_schema, &body, &error) <
        0) {
        http_reply_error(request, &error);
        return;
    }
    const bool has_password = body.name.data && body.password.data;
    if (has_password == (body.code.data != NULL)) {
        http_reply_problem(request, 400, "invalid",
                           "signing in takes a \"code\", or a \"name\" and a \"password\"");
        return;
    }
    struct sign_in *sign_in = arena_alloc(call->arena, sizeof(*sign_in));
    *sign_in = (struct sign_in){.name = body.name, .is_cookie = body.is_cookie};
    token_new("session", sign_in->token);
    call->context = sign_in;
    if (has_password)
        check_password_take(TAKE(call), request, body.password);
    else
        use_code_take(TAKE(call), request, body.code);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void session_deleted(struct call *call, struct http_request *request)
{
    struct error error;
    if (call->request.subject == call->caller.token &&
        put_cookie(call->server, request, "", 0, &error) < 0)
        http_reply_error(request, &error);
    else
        http_reply(request, 204, "application/json", TEXT(""));
    call_free(call);
}

static void end_session(struct http_request *request, struct server *server, uint64_t token)
{
    struct call *call = call_new(server, request);
    call->request.command = (struct command){
        .kind = COMMAND_REVOKE_TOKEN,
        .revoke_token = {.account = call->caller.account, .token = token},
    };
    call_start_take(call, session_deleted);
}

void handle_session_delete(struct http_request *request, void *context)
{
    const struct caller *caller = route_caller(request);
    if (!caller->is_session) {
        http_reply_problem(request, 400, "invalid",
                           "this is no session; a token is revoked by DELETE /v1/tokens/{id}");
        return;
    }
    end_session(request, context, caller->token);
}

void handle_session_end(struct http_request *request, void *context)
{
    uint64_t id = 0;
    const struct store_value *row = NULL;
    struct error error;
    int result = text_parse_u64(http_request_parameter(request, "id"), &id, &error);
    if (result == 0)
        result = query_id(context, http_request_arena(request), TABLE_TOKENS, id, "session", &row,
                          &error);
    if (result < 0 || !row || !row[TOKENS_IS_SESSION].integer ||
        (uint64_t)row[TOKENS_ACCOUNT].integer != route_caller(request)->account) {
        http_reply_problem(request, 404, "not_found", "this account has no such session");
        return;
    }
    end_session(request, context, id);
}
