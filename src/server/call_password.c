#include "server/call_password.h"

#include "base/log.h"

struct hashing {
    struct password_request request; /* first: the worker hands it back */
    struct call *call;               /* in whose arena this lies */
    call_hashed *then;
};

static void refuse_busy(struct http_request *request, const char *detail)
{
    struct error error;
    if (http_reply_header(request, "Retry-After", "5", &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
    http_reply_problem(request, 503, "unavailable", detail);
}

static void hashed(struct password_request *result)
{
    struct hashing *hashing = (struct hashing *)result;
    struct call *call = hashing->call;
    struct http_request *request = call_http(call);
    if (request && !result->is_exhausted) {
        hashing->then(call, request, result);
        return;
    }
    if (request)
        refuse_busy(request, "there is no memory to check passwords now: try again in a moment");
    call_free(call);
}

static void submit_take(struct call *call, struct hashing *hashing, struct text password)
{
    struct http_request *request = call_http(call);
    struct error error;
    if (!password_request_set(&hashing->request, password)) {
        http_reply_problem(request, 400, "invalid", "password: must have 10 to 256 bytes");
    } else if (passwords_submit(call->server->passwords, &hashing->request, &error) < 0) {
        refuse_busy(request, error.message);
    } else {
        return;
    }
    call_free(call);
}

static struct hashing *hashing_new(struct call *call, call_hashed *then)
{
    struct hashing *hashing = arena_alloc(call->arena, sizeof(*hashing));
    *hashing = (struct hashing){.request = {.on_done = hashed}, .call = call, .then = then};
    return hashing;
}

void call_hash_take(struct call *call, struct text password, call_hashed *then)
{
    submit_take(call, hashing_new(call, then), password);
}

void call_check_take(struct call *call, struct text password, struct text stored, call_hashed *then)
{
    struct hashing *hashing = hashing_new(call, then);
    struct error error;
    hashing->request.is_check = true;
    if (text_copy(stored, hashing->request.hash, sizeof(hashing->request.hash), &error) < 0)
        hashing->request.hash[0] = '\0'; /* not one of ours: nothing matches it */
    submit_take(call, hashing, password);
}
