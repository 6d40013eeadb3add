#include "server/call.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/answers.h"
#include "server/query.h"
#include "server/tables.h"

#include <sodium.h>

enum { KEY_SIZE_MAX = 128, CALL_ARENA_MAX = 16 << 20 };

int64_t call_still_to_come_ms(const struct call *call, int64_t instant_ms)
{
    return instant_ms > clock_utc_ms(call->server->clock) ? instant_ms : 0;
}

struct call *call_new(struct server *server, struct http_request *request)
{
    struct call *call = calloc(1, sizeof(*call));
    ASSERT(call);
    call->server = server;
    call->arena = arena_new(CALL_ARENA_MAX);
    call->http_id = http_request_id(request);
    call->caller = *route_caller(request);
    call->request.loop = server->loop;
    const struct text key = http_request_header(request, "Idempotency-Key");
    if (!route_of(request)->is_repeatable || !key.size || key.size > KEY_SIZE_MAX)
        return call; /* one that is too long was refused with the headers */
    call->has_key = true;
    const struct text method = http_request_method(request);
    const struct text path = http_request_path(request);
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, KEYS_HASH_SIZE);
    crypto_generichash_update(&state, (const uint8_t *)&call->caller.account,
                              sizeof(call->caller.account));
    crypto_generichash_update(&state, (const uint8_t *)method.data, method.size);
    crypto_generichash_update(&state, (const uint8_t *)path.data, path.size);
    crypto_generichash_update(&state, (const uint8_t *)"\n", 1);
    crypto_generichash_update(&state, (const uint8_t *)key.data, key.size);
    crypto_generichash_final(&state, call->key_hash, sizeof(call->key_hash));
    text_hex_encode(call->key_hash, sizeof(call->key_hash), call->key_hex);
    keys_request_hash(server->keys, http_request_body(request), call->request_hash);
    return call;
}

static void undo(struct call *call)
{
    if (call->undo)
        call->undo(call);
    call->undo = NULL;
}

void call_free(struct call *call)
{
    if (!call)
        return;
    undo(call);
    arena_free(call->arena);
    free(call);
}

void call_token(const struct call *call, const char *prefix, char out[KEYS_TOKEN_SIZE])
{
    if (call->has_key)
        keys_token(call->server->keys, prefix, call->key_hash, out);
    else
        token_new(prefix, out);
}

struct http_request *call_http(const struct call *call)
{
    /* Gone when the market is stopping. */
    return call->server->http ? http_server_find(call->server->http, call->http_id) : NULL;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

void call_rest_on_password(struct call *call, uint64_t account, struct text hash)
{
    call->proven_account = account;
    call->proven = arena_copy_text(call->arena, hash);
}

static int refuse_stale(struct call *call, const char *message, struct error *error)
{
    call->is_unauthorized = true;
    return error_set(error, ERROR_REFUSED, "%s", message);
}

static bool is_token_usable(const struct core *core, uint64_t id, int64_t now_ms)
{
    const struct token *token = core_token(core, id);
    return token && !token->is_revoked && (!token->expires_ms || token->expires_ms > now_ms);
}

/* Core thread: what was true when the headers came may not be so any more. */
static int prepare_call(struct engine_request *request, const struct core *core,
                        struct error *error)
{
    struct call *call = (struct call *)request;
    if (call->caller.token && !is_token_usable(core, call->caller.token, request->now_ms))
        return refuse_stale(call, "this token has expired or was revoked a moment ago", error);
    const struct account *proven = core_account(core, call->proven_account);
    if (call->proven_account && (!proven || !text_equal(text_of(proven->password), call->proven)))
        return refuse_stale(call, "the password was changed a moment ago", error);
    return call->prepare ? call->prepare(request, core, error) : 0;
}

static void refuse_call(const struct call *call, struct http_request *request,
                        const struct error *error)
{
    if (call->is_unauthorized)
        http_reply_problem(request, 401, "unauthorized", error->message);
    else
        http_reply_error(request, error);
}

static void call_done(struct engine_request *engine_request, const struct error *error)
{
    struct call *call = (struct call *)engine_request;
    struct http_request *request = call_http(call);
    if (!error)
        call->undo = NULL;
    if (call->has_key)
        map_remove_text(&call->server->calls, text_of(call->key_hex));
    if (!request) { /* the client is gone; the change, if there was one, stands */
        call_free(call);
        return;
    }
    if (error) {
        refuse_call(call, request, error);
        call_free(call);
        return;
    }
    call->answer(call, request);
}

static int put_answer(struct engine_request *engine_request, const struct core *core,
                      struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)error;
    const struct call *call = (const struct call *)engine_request;
    const struct store_value row[ANSWERS_COLUMN_COUNT] = {
        [ANSWERS_KEY] = store_blob(call->key_hash, sizeof(call->key_hash)),
        [ANSWERS_REQUEST] = store_blob(call->request_hash, sizeof(call->request_hash)),
        [ANSWERS_SUBJECT] = store_integer((int64_t)engine_request->subject),
        [ANSWERS_CREATED_MS] = store_integer(engine_request->now_ms),
    };
    store_batch_put(batch, &tables[TABLE_ANSWERS], row, ANSWERS_COLUMN_COUNT);
    return 0;
}

/* 1: it was done before; the call's subject and instant are those of that time. */
static int find_answer(struct call *call, struct error *error)
{
    const struct store_value *row = NULL;
    if (query_one(call->server, call->arena, TABLE_ANSWERS, "key",
                  store_blob(call->key_hash, sizeof(call->key_hash)), &row, error) < 0)
        return -1;
    if (!row)
        return 0;
    const struct text hash = {(const char *)call->request_hash, sizeof(call->request_hash)};
    if (!text_equal(row[ANSWERS_REQUEST].bytes, hash))
        return error_set(error, ERROR_CONFLICT,
                         "this Idempotency-Key was used for another request; take a new one");
    call->request.subject = (uint64_t)row[ANSWERS_SUBJECT].integer;
    call->request.now_ms = row[ANSWERS_CREATED_MS].integer;
    return 1;
}

static void submit_take(struct call *call, call_answer *answer)
{
    call->answer = answer;
    call->request.prepare = prepare_call;
    call->request.on_done = call_done;
    answers_forget(call->server->answers); /* what the core says is not noted */
    struct error error;
    if (engine_submit(call->server->engine, &call->request, false, &error) == 0)
        return;
    if (call->has_key)
        map_remove_text(&call->server->calls, text_of(call->key_hex));
    struct http_request *request = call_http(call);
    if (request)
        http_reply_error(request, &error);
    call_free(call);
}

void call_start_take(struct call *call, call_answer *answer)
{
    call->request.has_command = true;
    if (!call->has_key) {
        submit_take(call, answer);
        return;
    }
    struct http_request *request = call_http(call);
    ASSERT(request);
    struct error error;
    int found = find_answer(call, &error);
    if (found == 0 && map_get_text(&call->server->calls, text_of(call->key_hex)))
        found = error_set(&error, ERROR_CONFLICT,
                          "a request with this Idempotency-Key is being worked on; try again");
    if (found < 0) {
        http_reply_error(request, &error);
        call_free(call);
        return;
    }
    if (found > 0) {
        undo(call); /* what was done before stands, with what it needed */
        call->server->counts.replays++;
        answer(call, request);
        return;
    }
    map_put_text(&call->server->calls, text_of(call->key_hex), call);
    call->request.on_decided = put_answer;
    submit_take(call, answer);
}

void call_look_take(struct call *call,
                    int (*look)(struct engine_request *request, const struct core *core,
                                struct store_batch *batch, struct error *error),
                    call_answer *answer)
{
    call->request.has_command = false;
    call->request.next = NULL;
    call->request.on_decided = look;
    call->has_key = false; /* if it had one, that is done with */
    submit_take(call, answer);
}

void call_reply_nothing(struct call *call, struct http_request *request)
{
    http_reply(request, 204, "application/json", TEXT(""));
    call_free(call);
}

struct row_request {
    struct engine_request request;
    void (*put)(void *context, struct store_batch *batch);
    void (*release)(void *context);
    void *context;
};

static int put_rows(struct engine_request *request, const struct core *core,
                    struct store_batch *batch, struct error *error)
{
    (void)core;
    (void)error;
    struct row_request *rows = (struct row_request *)request;
    rows->put(rows->context, batch);
    return 0;
}

static void rows_done(struct engine_request *request, const struct error *error)
{
    struct row_request *rows = (struct row_request *)request;
    if (error)
        log_event(LOG_WARN, "rows_not_written", "error=\"%s\"", error->message);
    rows->release(rows->context);
    free(rows);
}

void server_put_rows(struct server *server, void (*put)(void *context, struct store_batch *batch),
                     void *context, void (*release)(void *context))
{
    struct row_request *rows = calloc(1, sizeof(*rows));
    ASSERT(rows);
    *rows = (struct row_request){
        .request = {.on_decided = put_rows, .on_done = rows_done},
        .put = put,
        .release = release,
        .context = context,
    };
    struct error error;
    if (engine_submit(server->engine, &rows->request, true, &error) < 0)
        rows_done(&rows->request, &error);
}
