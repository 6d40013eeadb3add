/*
 * HTTP server: a route table over libmicrohttpd, driven by our loop; no threads of its own.
 *
 *     to add a route: one line {"GET", "/v1/jobs/{id}", 0, job_get, FLAGS} in the table.
 *
 * A handler runs on the loop's thread once the whole body is there. It replies before it returns,
 * or keeps http_request_id and replies later: http_server_find gives the request again, or NULL
 * when it is gone. Every request gets exactly one reply; further ones are ignored. Errors that the
 * server finds itself (400, 404, 405, 413, 503) are application/problem+json too; only what is
 * not HTTP at all gets libmicrohttpd's own page.
 */
#pragma once

#include "base/arena.h"
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
#include <sys/types.h>

struct http_server;
struct http_request;
struct http_stream;

typedef void http_handler(struct http_request *request, void *context);

struct http_route {
    const char *method;  /* "GET" answers HEAD too */
    const char *pattern; /* "/v1/jobs/{id}"; a last "{name...}" takes the rest, slashes and all */
    size_t body_max;     /* more is answered by 413; 0: no body */
    http_handler *handler;
    uint32_t flags; /* the owner's, see http_request_route */
};

struct http_server_options {
    struct loop *loop;
    struct address listen;     /* port 0 takes a free one: http_server_port */
    const char *listen_option; /* named when the port is taken; NULL: "--listen" */

    const struct http_route *routes; /* outlives the server; the first match wins */
    size_t route_count;
    void *context; /* for handlers and hooks */

    /* On every reply that does not set them itself, the server's own errors too. */
    const struct http_header *default_headers;
    size_t default_header_count;

    /* Called when a route is found and the headers are there, before the body is read: who may not
     * send one is refused here, by replying. May be NULL. */
    void (*on_headers)(struct http_request *request, void *context);
    /* Replies 413 in words of the owner's, perhaps before on_headers; NULL: a problem. */
    void (*on_too_large)(struct http_request *request, void *context);
    /* After the reply was sent or the client went away (status 0). For logs and counters. */
    void (*on_done)(const struct http_request *request, int status, void *context);

    const char *certificate_pem; /* both: HTTPS; neither: plain HTTP */
    const char *key_pem;

    bool ignores_sigpipe;           /* the program does: files are sent without copying them */
    uint32_t connection_max;        /* 0: 2000 */
    uint32_t connection_per_ip_max; /* 0: no limit */
    uint32_t idle_timeout_s;        /* of a connection that neither sends nor receives; 0: 30 */
    int64_t send_grace_ms;          /* a request then comes at 8 KiB/s or is cut off; 0: 30 s */
    size_t stream_backlog_max;      /* bytes an event stream may lag behind; 0: 256 KiB */
    int64_t stream_heartbeat_ms;    /* 0: 15 s */
};

MUST_CHECK int http_server_open(const struct http_server_options *options,
                                struct http_server **out_server, struct error *error);
/* Answers waiting requests with 503, ends streams, closes all connections. NULL is fine. */
void http_server_free(struct http_server *server);
DEFINE_AUTO(http_server);

uint16_t http_server_port(const struct http_server *server);
uint32_t http_server_connection_count(const struct http_server *server);

/* --- the request --- */

/* All texts are valid as long as the request; absent ones have data NULL. */
struct text http_request_method(const struct http_request *request);
struct text http_request_path(const struct http_request *request); /* as sent, without the query */
/* Decoded value of {name} in the pattern. */
struct text http_request_parameter(const struct http_request *request, const char *name);
/* Appends the path as sent and the decoded query in the order sent; a zero byte, which is in none
 * of them, ends each part: two requests with the same bytes ask for the same. */
void http_request_target(const struct http_request *request, struct buffer *out);
/* Decoded value of ?name=. */
struct text http_request_query(const struct http_request *request, const char *name);
struct text http_request_header(const struct http_request *request, const char *name);
/* All lines of that name, in their order, with commas between them; in the request's arena. */
struct text http_request_header_list(const struct http_request *request, const char *name);
struct text http_request_cookie(const struct http_request *request, const char *name);
struct text http_request_body(const struct http_request *request);
const struct address *http_request_remote(const struct http_request *request);
const struct http_route *http_request_route(const struct http_request *request);
struct http_server *http_request_server(const struct http_request *request);
bool http_request_is_secure(const struct http_request *request); /* came by TLS */
int64_t http_request_started_ns(const struct http_request *request);
/* Freed with the request. */
struct arena *http_request_arena(const struct http_request *request);
/* One pointer of the owner's: who is calling, found in on_headers. */
void http_request_set_user(struct http_request *request, void *user);
void *http_request_user(const struct http_request *request);

/* For replies that come later: never reused. */
uint64_t http_request_id(const struct http_request *request);
/* NULL when the request was answered or its client went away. */
struct http_request *http_server_find(struct http_server *server, uint64_t request_id);

/* --- the reply --- */

/* Adds a header to the reply that will follow. Values with control characters are refused. */
MUST_CHECK int http_reply_header(struct http_request *request, const char *name, const char *value,
                                 struct error *error);
/* Copies `body`. */
void http_reply(struct http_request *request, int status, const char *content_type,
                struct text body);
/* Takes the buffer's memory and leaves it empty; an overflowed one becomes a 500 problem. */
void http_reply_take(struct http_request *request, int status, const char *content_type,
                     struct buffer *body);
/* `body` outlives the server: assets that are part of the program. */
void http_reply_static(struct http_request *request, int status, const char *content_type,
                       struct text body);
/* Bytes that several replies share, all on the server's thread. */
struct http_body;
struct http_body *http_body_new(struct text text); /* a copy; never NULL */
void http_body_unref(struct http_body *body);      /* NULL is fine */
size_t http_body_size(const struct http_body *body);
void http_reply_body(struct http_request *request, int status, const char *content_type,
                     struct http_body *body);
/* `size` bytes of the file from `offset`; takes the descriptor. */
void http_reply_file_take(struct http_request *request, int status, const char *content_type,
                          int fd, uint64_t offset, uint64_t size);
/* Bytes that are made while they are sent, as fast as the client takes them. */
struct http_source {
    /* At most `size` bytes, at least one; -1 cuts the reply off. On the loop's thread. */
    ssize_t (*read)(void *context, char *out, size_t size);
    void (*free)(void *context); /* once: all was sent, or nobody wants it any more */
    void *context;
};
/* `size` bytes of the source, whose context is taken. */
void http_reply_source_take(struct http_request *request, int status, const char *content_type,
                            uint64_t size, const struct http_source *source);
void http_reply_problem(struct http_request *request, int status, const char *code,
                        const char *detail);
/* By the one table of base/error.h. */
void http_reply_error(struct http_request *request, const struct error *error);

/* --- server-sent events --- */

/*
 * Replies with an endless text/event-stream. `on_close` comes once, when the client is gone, too
 * slow, or the server ends, but not after http_stream_free; in it the stream is released
 * with http_stream_free. May be NULL only if the owner never looks at the stream again: then the
 * stream releases itself.
 */
MUST_CHECK int http_stream_open(struct http_request *request,
                                void (*on_close)(struct http_stream *stream, void *context),
                                void *context, struct http_stream **out_stream,
                                struct error *error);
/*
 * One event; `id` and `name` may be empty; lines of `data` are split as the format asks. A client
 * that would lag more than the backlog is dropped: EXHAUSTED, and on_close follows from the loop.
 * UNAVAILABLE when it is closed already.
 */
MUST_CHECK int http_stream_send(struct http_stream *stream, struct text id, struct text name,
                                struct text data, struct error *error);
/* Sends what is queued, then ends the reply. No on_close follows. NULL is fine. */
void http_stream_free(struct http_stream *stream);
