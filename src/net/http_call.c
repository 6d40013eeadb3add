#include "base/assert.h"
#include "net/http_client.h"
#include "net/http_exchange_internal.h"

#include <stdlib.h>

struct http_session {
    const struct curl_library *curl; /* NULL before the first call */
    CURL *easy;
};

struct http_session *http_session_new(void)
{
    struct http_session *session = calloc(1, sizeof(*session));
    ASSERT(session);
    return session;
}

void http_session_free(struct http_session *session)
{
    if (!session)
        return;
    if (session->easy) {
        struct sigpipe_guard guard;
        sigpipe_guard_begin(&guard);
        session->curl->curl_easy_cleanup(session->easy);
        sigpipe_guard_end(&guard);
    }
    free(session);
}

static int open_handle(struct http_session *session, struct error *error)
{
    if (session->easy)
        return 0;
    if (curl_library_load(&session->curl, error) < 0)
        return -1;
    session->easy = session->curl->curl_easy_init();
    if (!session->easy)
        return error_set(error, ERROR_EXHAUSTED, "no memory for an HTTP request");
    return 0;
}

int http_session_call(struct http_session *session, const struct http_call_options *options,
                      struct http_response *response, struct error *error)
{
    if (open_handle(session, error) < 0)
        return -1;
    struct http_exchange exchange;
    int result =
        http_exchange_prepare(&exchange, session->easy, session->curl, options, response, error);
    if (result == 0) {
        struct sigpipe_guard guard;
        sigpipe_guard_begin(&guard);
        const CURLcode code = session->curl->curl_easy_perform(session->easy);
        sigpipe_guard_end(&guard);
        result = http_exchange_finish(&exchange, code, error);
    }
    http_exchange_done(&exchange);
    return result;
}

int http_call(const struct http_call_options *options, struct http_response *response,
              struct error *error)
{
    AUTO(http_session) struct http_session *session = http_session_new();
    return http_session_call(session, options, response, error);
}
