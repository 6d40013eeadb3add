/*
 * HTTP server, inside: what the files of the server share.
 *
 * A request lives from its first header until libmicrohttpd says it is completed. It is
 * `suspended` while it waits for a reply that comes later. Its reply is kept in `response` and
 * handed over only from inside libmicrohttpd's own call, which is the one place it is always
 * allowed.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/list.h"
#include "base/map.h"
#include "net/http_route_internal.h"
#include "net/http_server.h"
#include "net/mhd_library_internal.h"

#include <stdbool.h>
#include <stdint.h>

struct http_server {
    const struct mhd_library *mhd;
    struct http_server_options options;
    struct MHD_Daemon *daemon;
    struct loop_watch *watch; /* of libmicrohttpd's epoll descriptor */
    struct loop_timer *timeout;
    struct loop_timer *heartbeat;
    struct loop_timer *pace;
    uint16_t port;
    uint64_t next_id;
    bool is_stopping;
    bool has_resumed; /* since libmicrohttpd last ran */
    struct list requests;
    struct list senders; /* struct http_sender, one for each connection */
    struct list streams; /* those with a client */
    struct map waiting;  /* requests without a reply, by id */
};

struct http_pair {
    struct text name;
    struct text value;
    struct http_pair *next;
};

struct http_request {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct list_node node;
    uint64_t id;
    struct arena *arena;
    int64_t started_ns;
    struct address remote;
    struct text method;
    struct text path;
    struct http_match match;
    struct http_pair *query;
    uint32_t query_count;
    struct buffer body;
    uint64_t discarded_bytes; /* of a body that nobody will read */
    void *user;

    struct http_pair *reply_headers;
    struct MHD_Response *response;
    int status; /* of the reply; 0: none yet */
    bool was_handled;
    bool is_suspended;
    bool is_queued;
    struct http_stream *stream;
};

/* Hands the reply to libmicrohttpd with its headers; once per request. Takes `response`, which is
 * NULL when memory was out. */
void http_reply_finish(struct http_request *request, int status, const char *content_type,
                       struct MHD_Response *response);

/* Lets a suspended connection go on, from the loop. */
void http_server_resume(struct http_server *server, struct MHD_Connection *connection);

/* Told of each connection, of each request's headers, pieces of body and end; and by its timer. */
void http_pace_connection(void *context, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what);
void http_pace_begin(const struct http_request *request);
void http_pace_body(const struct http_request *request, size_t size);
void http_pace_end(const struct http_request *request);
void http_pace_check(void *context);

/* The client is gone or the reply is at its end. */
void http_stream_detach(struct http_stream *stream);
void http_server_heartbeat(void *context);
/* Ends all streams of the server. */
void http_server_end_streams(struct http_server *server);
