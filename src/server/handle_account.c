/* Accounts: opening one, its statement, its password, and deleting it. */
#include "server/answers.h"
#include "server/auth.h"
#include "server/call_password.h"
#include "server/gate.h"
#include "server/handle_session.h"
#include "server/handlers.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

enum { SECRET_KEY_SIZE_MIN = 32 };

static int account_row(struct server *server, struct arena *arena, uint64_t account,
                       const struct store_value **out_row, struct error *error)
{
    return query_id(server, arena, TABLE_ACCOUNTS, account, "account", out_row, error);
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct new_account {
    struct text name;
    struct text password; /* none: the account is known by its tokens alone */
    struct text invite;
    bool is_session; /* answer with a session's cookie instead of a token */
};
static const struct json_field new_account_fields[] = {
    {"name", JSON_TEXT, offsetof(struct new_account, name), .is_required = true, .size_max = 64},
    {"password", JSON_TEXT, offsetof(struct new_account, password), .size_max = 4096},
    {"invite", JSON_TEXT, offsetof(struct new_account, invite), .size_max = 128},
    {"session", JSON_BOOL, offsetof(struct new_account, is_session)},
};
static const struct json_schema new_account_schema =
    JSON_SCHEMA("account", new_account_fields, struct new_account);

/* What is to come after the account itself, in the call's arena. */
struct opening {
    char token[KEYS_TOKEN_SIZE];
    char password[PASSWORD_HASH_SIZE]; /* "": none */
    bool is_session;
};

static void account_created(struct call *call, struct http_request *request)
{
    const struct opening *opening = call->context;
    const struct store_value *row = NULL;
    struct error error;
    int result = account_row(call->server, call->arena, call->request.subject, &row, &error);
    if (result == 0 && opening->is_session)
        result = session_set_cookie(call->server, request, opening->token, &error);
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
    if (!opening->is_session)
        json_field_string(&answer.writer, "token", opening->token);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 201);
    call_free(call);
}

/* The account, its password and its first token are one change: none is ever seen without the
 * others. */
static bool complete_account(struct engine_request *request)
{
    const struct call *call = (const struct call *)request;
    const struct opening *opening = call->context;
    if (request->command.kind == COMMAND_OPEN_ACCOUNT && opening->password[0]) {
        request->command = (struct command){
            .kind = COMMAND_SET_PASSWORD,
            .set_password = {.account = request->subject, .password = text_of(opening->password)},
        };
        return true;
    }
    if (request->command.kind == COMMAND_ADD_TOKEN)
        return false;
    const int64_t expires_ms = opening->is_session ? request->now_ms + SESSION_COOKIE_MS : 0;
    request->command = (struct command){
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = request->subject,
                      .scopes = TOKEN_SCOPE_ALL,
                      .expires_ms = expires_ms,
                      .label = opening->is_session ? TEXT("page") : TEXT("first token"),
                      .is_session = opening->is_session},
    };
    token_hash(text_of(opening->token), request->command.add_token.hash);
    return true;
}

static void password_hashed(struct call *call, struct http_request *request,
                            const struct password_request *result)
{
    (void)request;
    struct opening *opening = call->context;
    memcpy(opening->password, result->hash, sizeof(opening->password));
    call_start_take(call, account_created);
}

/* A repeat of the request is answered with the account's token, and nobody has signed in: whoever
 * knows the key has the account. */
static bool is_guessable(struct text key)
{
    return key.size && key.size < SECRET_KEY_SIZE_MIN;
}

static int check_new_account(struct server *server, struct http_request *request,
                             const struct new_account *body, struct error *error)
{
    if (body->is_session && !body->password.data)
        return error_set(error, ERROR_INVALID,
                         "password: an account without a token needs one to come back to");
    if (body->is_session && !session_may_begin(server, request))
        return error_set(error, ERROR_REFUSED,
                         "a browser signs up from this server's own pages only");
    return body->password.data ? password_check(body->password, body->name, error) : 0;
}

void handle_account_create(struct http_request *request, void *context)
{
    struct server *server = context;
    if (is_guessable(http_request_header(request, "Idempotency-Key"))) {
        http_reply_problem(request, 400, "invalid",
                           "an Idempotency-Key that opens an account gives its token to whoever "
                           "repeats it: make it 32 random characters or more");
        return;
    }
    AUTO(call) struct call *call = call_new(server, request);
    struct new_account body = {0};
    struct error error;
    if (json_read(call->arena, http_request_body(request), &new_account_schema, &body, &error) <
            0 ||
        check_new_account(server, request, &body, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct opening *opening = arena_alloc(call->arena, sizeof(*opening));
    *opening = (struct opening){.is_session = body.is_session};
    call_token(call, body.is_session ? "session" : "account", opening->token);
    call->context = opening;
    call->request.next = complete_account;
    call->request.command = (struct command){
        .kind = COMMAND_OPEN_ACCOUNT,
        .open_account = {.name = body.name,
                         .address_block = gate_address_block(server, request),
                         .has_invite = body.invite.size > 0},
    };
    token_hash(body.invite, call->request.command.open_account.invite_hash);
    if (body.password.data)
        call_hash_take(TAKE(call), body.password, password_hashed);
    else
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

/* ---- Password -------------------------------------------------------------------------------- */

struct new_password {
    struct text password;
    struct text old_password; /* of an account that has one */
};
static const struct json_field new_password_fields[] = {
    {"password", JSON_TEXT, offsetof(struct new_password, password), .is_required = true,
     .size_max = 4096},
    {"old_password", JSON_TEXT, offsetof(struct new_password, old_password), .size_max = 4096},
};
static const struct json_schema new_password_schema =
    JSON_SCHEMA("password", new_password_fields, struct new_password);

static void password_set(struct call *call, struct http_request *request)
{
    http_reply(request, 204, "application/json", TEXT(""));
    call_free(call);
}

static void new_password_hashed(struct call *call, struct http_request *request,
                                const struct password_request *result)
{
    (void)request;
    call->request.command = (struct command){
        .kind = COMMAND_SET_PASSWORD,
        .set_password = {.account = call->caller.account,
                         .password = text_of(result->hash),
                         .token = call->caller.token},
    };
    call_start_take(call, password_set);
}

static void old_password_checked(struct call *call, struct http_request *request,
                                 const struct password_request *result)
{
    const struct new_password *body = call->context;
    if (result->is_match) {
        call_hash_take(call, body->password, new_password_hashed);
        return;
    }
    http_reply_problem(request, 403, "refused", "old_password: is wrong");
    call_free(call);
}

static int read_new_password(struct call *call, struct http_request *request,
                             struct new_password *body, const struct store_value **out_row,
                             struct error *error)
{
    if (json_read(call->arena, http_request_body(request), &new_password_schema, body, error) < 0 ||
        account_row(call->server, call->arena, call->caller.account, out_row, error) < 0)
        return -1;
    const struct store_value *row = *out_row;
    if (row[ACCOUNTS_PASSWORD].bytes.size && !body->old_password.data)
        return error_set(error, ERROR_INVALID,
                         "old_password: missing; the account has a password that it replaces");
    /* Whoever knows the password signs in with every scope, at any time. */
    if (!row[ACCOUNTS_PASSWORD].bytes.size &&
        (call->caller.scopes != TOKEN_SCOPE_ALL || !auth_may_last(&call->caller, 0)))
        return error_set(error, ERROR_REFUSED,
                         "the first password gives every scope for good: use a token that has them "
                         "all and does not end");
    return password_check(body->password, row[ACCOUNTS_NAME].bytes, error);
}

void handle_password_put(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct new_password *body = arena_alloc(call->arena, sizeof(*body));
    *body = (struct new_password){0};
    const struct store_value *row = NULL;
    struct error error;
    if (read_new_password(call, request, body, &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call->context = body;
    call_rest_on_password(call, call->caller.account, row[ACCOUNTS_PASSWORD].bytes);
    if (!row[ACCOUNTS_PASSWORD].bytes.size)
        call_hash_take(TAKE(call), body->password, new_password_hashed);
    else if (gate_pass_name(context, request, row[ACCOUNTS_NAME].bytes))
        call_check_take(TAKE(call), body->old_password, row[ACCOUNTS_PASSWORD].bytes,
                        old_password_checked);
}

/* ---- Deleting -------------------------------------------------------------------------------- */

struct account_end {
    struct text name; /* written out: nobody deletes an account by accident */
    struct text password;
};
static const struct json_field account_end_fields[] = {
    {"name", JSON_TEXT, offsetof(struct account_end, name), .is_required = true, .size_max = 64},
    {"password", JSON_TEXT, offsetof(struct account_end, password), .size_max = 4096},
};
static const struct json_schema account_end_schema =
    JSON_SCHEMA("account", account_end_fields, struct account_end);

static void account_deleted(struct call *call, struct http_request *request)
{
    http_reply(request, 204, "application/json", TEXT(""));
    call_free(call);
}

static void delete_take(struct call *call)
{
    call->request.command = (struct command){
        .kind = COMMAND_DELETE_ACCOUNT,
        .delete_account = {.account = call->caller.account},
    };
    call_start_take(call, account_deleted);
}

static void end_checked(struct call *call, struct http_request *request,
                        const struct password_request *result)
{
    if (result->is_match) {
        delete_take(call);
        return;
    }
    http_reply_problem(request, 403, "refused", "password: is wrong");
    call_free(call);
}

void handle_account_delete(struct http_request *request, void *context)
{
    AUTO(call) struct call *call = call_new(context, request);
    struct account_end body = {0};
    const struct store_value *row = NULL;
    struct error error;
    int result =
        json_read(call->arena, http_request_body(request), &account_end_schema, &body, &error);
    if (result == 0)
        result = account_row(context, call->arena, call->caller.account, &row, &error);
    if (result == 0 && (!row || !text_equal(body.name, row[ACCOUNTS_NAME].bytes)))
        result = error_set(&error, ERROR_INVALID, "name: is not this account's");
    if (result == 0 && row[ACCOUNTS_PASSWORD].bytes.size && !body.password.data)
        result = error_set(&error, ERROR_INVALID, "password: missing; the account has one");
    if (result < 0 || !row) {
        http_reply_error(request, &error);
        return;
    }
    call_rest_on_password(call, call->caller.account, row[ACCOUNTS_PASSWORD].bytes);
    if (!row[ACCOUNTS_PASSWORD].bytes.size)
        delete_take(TAKE(call));
    else if (gate_pass_name(context, request, body.name))
        call_check_take(TAKE(call), body.password, row[ACCOUNTS_PASSWORD].bytes, end_checked);
}
