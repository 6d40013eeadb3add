/*
 * Call: a request to the API that changes something, from its body to its answer.
 *
 * The handler makes a call, fills in the command (texts from the call's arena: the HTTP request may
 * be gone when the command is decided) and starts it with the function that writes the answer. That
 * function runs on the main thread once the change is on disk, and shows call->request.subject.
 *
 * With an Idempotency-Key the key and the subject are committed together with the change. A repeat
 * of the same request runs the same function on the same subject and instant; secrets in the answer
 * are derived from the request (call_token), so they come out the same too and are stored nowhere.
 */
#pragma once

#include "server/routes.h"
#include "server/server_internal.h"

struct call;
typedef void call_answer(struct call *call, struct http_request *request);

/* Right before the command is decided, on the core thread: as engine_request's `prepare`, which is
 * the call's own. */
typedef int call_prepare(struct engine_request *request, const struct core *core,
                         struct error *error);

struct call {
    struct engine_request request; /* first: the engine hands it back */
    struct server *server;
    struct arena *arena;
    uint64_t http_id;
    struct caller caller; /* a copy */
    call_answer *answer;
    void *context;         /* the handler's, in the arena */
    call_prepare *prepare; /* the handler's; may be NULL */
    /* The handler's, unless what it asked for is done, and done now; may be NULL. */
    void (*undo)(struct call *call);
    void *undo_context;

    uint64_t proven_account; /* whose password was checked for this call; 0: nobody's */
    struct text proven;      /* the hash that it was checked with; "": there was none */
    bool is_unauthorized;    /* refused because the token or the password is none any more */

    bool has_key;
    char key_hex[2 * KEYS_HASH_SIZE + 1];
    uint8_t key_hash[KEYS_HASH_SIZE];
    uint8_t request_hash[KEYS_HASH_SIZE];
};

/* Never NULL. */
struct call *call_new(struct server *server, struct http_request *request);
/* For a handler that refuses before it starts the call. */
void call_free(struct call *call);
DEFINE_AUTO(call);

/* The HTTP request, or NULL when its client is gone. */
struct http_request *call_http(const struct call *call);

/* A fresh token or code for the answer; the same again for a repeat. */
void call_token(const struct call *call, const char *prefix, char out[KEYS_TOKEN_SIZE]);

/* The call stands only if this is still the account's password when it is decided. */
void call_rest_on_password(struct call *call, uint64_t account, struct text hash);

/*
 * Takes the call. Answers at once when it is a repeat, is refused, or the market is busy; else
 * `answer` is called after the commit, if the client is still there. Time passes between the
 * headers that carry a token and the decision, a body may be slow: it is refused by 401 when the
 * token has been revoked or has expired in between.
 */
void call_start_take(struct call *call, call_answer *answer);

/* The core knows the time of its last event only: 0 for an instant that has passed since. */
int64_t call_still_to_come_ms(const struct call *call, int64_t instant_ms);

/* The answer of what leaves nothing to show: 204. */
call_answer call_reply_nothing;

/* Runs `look` on the core thread with the state, then `answer` on the main thread. */
void call_look_take(struct call *call,
                    int (*look)(struct engine_request *request, const struct core *core,
                                struct store_batch *batch, struct error *error),
                    call_answer *answer);

/* Rows of the server's own tables: `put` runs on the core thread, and frees nothing. The memory of
 * `context` is released after the commit, which is waited for by nobody; failures are logged. */
void server_put_rows(struct server *server, void (*put)(void *context, struct store_batch *batch),
                     void *context, void (*release)(void *context));
