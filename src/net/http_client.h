/*
 * HTTP client: libcurl, blocking for commands and in the loop for daemons.
 *
 * libcurl is loaded at the first request, not before, and its pages are let go of when the loop's
 * client has been quiet for a while. No redirects are followed. Proxies from the
 * environment are used, but never for loopback. SIGPIPE is kept away from the program.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/address.h"
#include "net/http.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_client;
struct http_transfer;
struct http_response;

/* AWS's Signature Version 4: libcurl makes it of the request and puts the result into its head. */
struct http_signing {
    const char *service; /* "s3" */
    const char *region;  /* "us-east-1" */
    const char *access_key;
    const char *secret_key;
};

struct http_call_options {
    const char *method; /* NULL: GET, or POST with a body */
    const char *url;    /* http:// or https:// */
    const struct http_header *headers;
    size_t header_count;
    struct text body;  /* data NULL: none */
    bool is_body_kept; /* it outlives the exchange: it is not copied */

    size_t response_max;        /* larger bodies fail with EXHAUSTED; 0: 8 MiB */
    int64_t timeout_ms;         /* of the whole exchange; 0: 30 s; -1: none */
    int64_t connect_timeout_ms; /* 0: 10 s */
    int64_t idle_timeout_ms;    /* gives up when no byte came for so long; 0: never */
    int64_t bytes_per_s_min;    /* ... or fewer than these on the average of that time; 0: 1 */

    const struct http_signing *signing; /* NULL: not signed */

    /* Asked of each address that the host's name stands for before it is dialled: whatever a name
     * service says, what is not approved is not reached, and the call fails with REFUSED. No proxy
     * is used then. NULL: all are fine. */
    bool (*may_dial)(void *context, const struct address *address);
    /* Asked about once a second while the exchange lasts; true ends it as on_chunk does. */
    bool (*is_stopped)(void *context);
    /* Set where no connection came about, so that nothing was asked; outlives the exchange. May be
     * NULL. */
    bool *is_unreached;

    /* 64 hex digits, SHA-256 of the server's public key (SPKI): this key is trusted and no other,
     * whatever its certificate says. NULL: the system's authorities decide. HTTPS only. */
    const char *pinned_fingerprint;

    /* Called with each piece of a body whose status is 2xx, which then is not gathered. Returning
     * non-zero ends the exchange with ERROR_CONFLICT "stopped". */
    int (*on_chunk)(void *context, struct text chunk);
    /* Before the first on_chunk, with all but the body; may be NULL. Ends the exchange likewise. */
    int (*on_head)(void *context, const struct http_response *head);
    void *context;
};

struct http_response {
    int status;
    char content_type[128];
    char location[4096]; /* as it was sent */
    char redirect[4096]; /* the same as a whole URL, once the exchange has ended; "": none */
    char etag[128];
    char last_modified[64];
    char bucket_region[64]; /* X-Amz-Bucket-Region */
    char content_encoding[32];
    char function_error[64];      /* X-Amz-Function-Error */
    char log_result[6144];        /* X-Amz-Log-Result: base64 of 4 KiB at most */
    char invocation_id[64];       /* Lambda-Runtime-Aws-Request-Id */
    char invocation_deadline[32]; /* Lambda-Runtime-Deadline-Ms */
    int64_t body_bytes;           /* of a Content-Length; -1: not given */
    int64_t range_first;          /* of a Content-Range; -1: not given */
    int64_t range_total;          /* the whole's size by a Content-Range; -1: not given */
    int64_t retry_after_s;        /* -1: not given */
    struct buffer body;
};

void http_response_init(struct http_response *response);
void http_response_done(struct http_response *response);
#define AUTO_HTTP_RESPONSE __attribute__((cleanup(http_response_done)))

/*
 * Any status is a success here; UNAVAILABLE when no reply came, REFUSED when the server's key is
 * not the pinned one or its certificate is not trusted. `response` was initialised. When a body was
 * wholly given to on_chunk, response->body is empty.
 */
MUST_CHECK int http_call(const struct http_call_options *options, struct http_response *response,
                         struct error *error);

/*
 * A connection that stays open between blocking calls (chunk uploads). One thread.
 */
struct http_session;
struct http_session *http_session_new(void);
void http_session_free(struct http_session *session); /* NULL is fine */
DEFINE_AUTO(http_session);
MUST_CHECK int http_session_call(struct http_session *session,
                                 const struct http_call_options *options,
                                 struct http_response *response, struct error *error);

/* --- in the loop --- */

/* At most `concurrent_max` exchanges at a time (0: 4); more wait in the order started, up to
 * `waiting_max` (0: 1000). */
struct http_client_options {
    struct loop *loop;
    uint32_t concurrent_max;
    uint32_t waiting_max;
};

struct http_client *http_client_new(const struct http_client_options *options);
/* Cancels all that runs or waits, without callbacks. NULL is fine. */
void http_client_free(struct http_client *client);
DEFINE_AUTO(http_client);

/* Exactly one of the two is set. `response` is the callee's to read during the call; it may move
 * the body away (leave an initialised buffer). */
typedef void http_client_function(void *context, struct http_response *response,
                                  const struct error *reason);

/* Copies the options, body included. The callback comes once, never from inside this call.
 * on_chunk gets options->context, the callback `context`. `out_transfer` may be NULL. */
MUST_CHECK int http_client_start(struct http_client *client,
                                 const struct http_call_options *options,
                                 http_client_function *callback, void *context,
                                 struct http_transfer **out_transfer, struct error *error);
/* No callback follows. Only before the callback was called: after it the transfer is gone. */
void http_transfer_cancel(struct http_transfer *transfer);
