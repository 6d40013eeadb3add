/*
 * HTTP exchange: one request and its response on a libcurl handle, blocking or not.
 */
#pragma once

#include "base/error.h"
#include "net/curl_library_internal.h"
#include "net/http_client.h"

struct http_exchange {
    const struct curl_library *curl;
    CURL *easy; /* borrowed */
    struct curl_slist *headers;
    struct http_response *response;
    int (*on_chunk)(void *context, struct text chunk);
    int (*on_head)(void *context, const struct http_response *head); /* NULL once it was called */
    bool (*may_dial)(void *context, const struct address *address);
    bool (*is_stopped)(void *context);
    bool *is_unreached;
    void *context;
    char undialled[ADDRESS_TEXT_SIZE]; /* an address that was not approved; "": none */
    bool is_cancelled;                 /* no more of the body is wanted */
    struct error reason;               /* why our own side ended it; code NONE: it did not */
    char message[CURL_ERROR_SIZE];
};

/* Fills the handle from the options, all copied by libcurl. `response` was initialised; the
 * exchange and the response stay where they are until http_exchange_done. */
MUST_CHECK int http_exchange_prepare(struct http_exchange *exchange, CURL *easy,
                                     const struct curl_library *curl,
                                     const struct http_call_options *options,
                                     struct http_response *response, struct error *error);
/* After the transfer: fills the rest of the response, or says what went wrong. */
MUST_CHECK int http_exchange_finish(struct http_exchange *exchange, CURLcode result,
                                    struct error *error);
void http_exchange_done(struct http_exchange *exchange);
