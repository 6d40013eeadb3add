#include "function/runtime_client.h"

#include "function/work.h"
#include "net/http_client.h"

#include <stdio.h>

enum { URL_SIZE = 512, ANSWER_MS = 60000 };

/* What there is of time until the deadline, which is an instant; without one there is enough. */
static int64_t deadline_of(const struct runtime_client_options *options,
                           const struct http_response *call)
{
    const int64_t now_ns = clock_monotonic_ns(options->clock);
    struct error ignored; /* then it names none */
    int64_t deadline_ms;
    if (text_parse_i64(text_of(call->invocation_deadline), &deadline_ms, &ignored) < 0)
        return INT64_MAX / 2;
    return now_ns + (deadline_ms - clock_utc_ms(options->clock)) * 1000000;
}

static int post(struct http_session *session, const char *url, struct text body,
                struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const struct http_header header = {"Content-Type", "application/json"};
    const struct http_call_options options = {.method = "POST",
                                              .url = url,
                                              .headers = &header,
                                              .header_count = 1,
                                              .body = body,
                                              .timeout_ms = ANSWER_MS};
    if (http_session_call(session, &options, &response, error) < 0)
        return -1;
    return response.status / 100 == 2
               ? 0
               : error_set(error, ERROR_UNAVAILABLE, "the runtime API answered with status %d",
                           response.status);
}

static int serve_one(const struct runtime_client_options *options, struct http_session *session,
                     struct error *error)
{
    char url[URL_SIZE];
    struct error refusal;
    struct buffer answer AUTO_BUFFER;
    struct http_response call AUTO_HTTP_RESPONSE;
    buffer_init(&answer, WORK_JSON_MAX);
    http_response_init(&call);
    snprintf(url, sizeof(url), "http://%s/2018-06-01/runtime/invocation/next", options->api);
    const struct http_call_options next = {
        .url = url, .timeout_ms = -1, .response_max = 6 << 20 /* Lambda's own */};
    if (http_session_call(session, &next, &call, error) < 0)
        return -1;
    if (call.status != 200 || !call.invocation_id[0])
        return error_set(error, ERROR_UNAVAILABLE, "the runtime API gave no call but status %d",
                         call.status);
    const struct handler_limits limits = {.deadline_ns = deadline_of(options, &call),
                                          .memory_bytes = options->memory_bytes};
    const bool is_done =
        handler_call(options->handler, buffer_text(&call.body), &limits, &answer, &refusal) == 0;
    if (!is_done) {
        buffer_clear(&answer);
        handler_write_error(&refusal, &answer);
    }
    snprintf(url, sizeof(url), "http://%s/2018-06-01/runtime/invocation/%s/%s", options->api,
             call.invocation_id, is_done ? "response" : "error");
    return post(session, url, buffer_text(&answer), error);
}

int runtime_client_run(const struct runtime_client_options *options, struct error *error)
{
    AUTO(http_session) struct http_session *session = http_session_new();
    for (uint64_t i = 0; options->calls_max == 0 || i < options->calls_max; i++)
        if (serve_one(options, session, error) < 0)
            return error_wrap(error, "the runtime API at %.80s", options->api);
    return 0;
}
