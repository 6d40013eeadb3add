#include "base/assert.h"
#include "base/library.h"
#include "net/http_server_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECTION_MAX_DEFAULT = 2000,
    IDLE_TIMEOUT_S_DEFAULT = 30,
    HEARTBEAT_MS_DEFAULT = 15000,
    BACKLOG_MAX_DEFAULT = 256 * 1024,
    QUERY_COUNT_MAX = 64,
    /* A refused body is read and forgotten up to here, so that the client gets to read the reply.
     */
    DISCARD_MAX = 16 * 1024 * 1024,
};

/* --- the body --- */

static uint64_t declared_length(const struct http_request *request)
{
    const struct text length = http_request_header(request, "Content-Length");
    uint64_t value = 0;
    struct error error;
    if (!length.data || text_parse_u64(length, &value, &error) < 0)
        return 0;
    return value;
}

static void reply_too_large(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    char detail[96];
    if (options->on_too_large) {
        options->on_too_large(request, options->context);
        return;
    }
    const size_t body_max = request->match.route ? request->match.route->body_max : 0;
    snprintf(detail, sizeof(detail), "the body may have at most %zu bytes", body_max);
    http_reply_problem(request, 413, "too_large", detail);
}

static enum MHD_Result take_body(struct http_request *request, const char *data, size_t size)
{
    if (request->status == 0 && size > request->match.route->body_max - request->body.size)
        reply_too_large(request);
    if (request->status == 0) {
        buffer_append(&request->body, data, size);
        if (request->body.is_overflowed)
            reply_too_large(request);
        return MHD_YES;
    }
    buffer_done(&request->body);
    request->discarded_bytes += size;
    return request->discarded_bytes > DISCARD_MAX ? MHD_NO : MHD_YES;
}

/* --- the request --- */

static enum MHD_Result add_query(void *context, enum MHD_ValueKind kind __attribute__((unused)),
                                 const char *key, size_t key_size, const char *value,
                                 size_t value_size)
{
    struct http_request *request = context;
    struct error error;
    struct http_pair *pair = arena_alloc(request->arena, sizeof(*pair));
    char *name = arena_alloc(request->arena, key_size + 1);
    char *decoded = arena_alloc(request->arena, value_size + 1);
    if (++request->query_count > QUERY_COUNT_MAX ||
        http_percent_decode((struct text){key, key_size}, name, &pair->name.size, &error) < 0 ||
        http_percent_decode((struct text){value, value ? value_size : 0}, decoded,
                            &pair->value.size, &error) < 0) {
        http_reply_problem(request, 400, "invalid", "the query is malformed");
        return MHD_NO;
    }
    pair->name.data = name;
    pair->value.data = decoded;
    pair->next = request->query;
    request->query = pair;
    return MHD_YES;
}

static struct http_request *request_new(struct http_server *server,
                                        struct MHD_Connection *connection, const char *method,
                                        const char *path)
{
    struct http_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    request->server = server;
    request->connection = connection;
    request->id = ++server->next_id;
    request->arena = arena_new(0);
    request->started_ns = clock_monotonic_ns(loop_clock(server->options.loop));
    request->method = arena_copy_text(request->arena, text_of(method));
    request->path = arena_copy_text(request->arena, text_of(path));
    const union MHD_ConnectionInfo *info =
        server->mhd->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr) {
        request->remote.size = info->client_addr->sa_family == AF_INET6
                                   ? sizeof(struct sockaddr_in6)
                                   : sizeof(struct sockaddr_in);
        memcpy(&request->remote.storage, info->client_addr, request->remote.size);
    }
    list_append(&server->requests, &request->node);
    map_put(&server->waiting, request->id, request);
    return request;
}

static void find_route(struct http_request *request)
{
    struct http_server *server = request->server;
    struct error error;
    if (http_route_find(server->options.routes, server->options.route_count, request->method,
                        request->path, request->arena, &request->match, &error) < 0) {
        http_reply_error(request, &error);
    } else if (!request->match.route && request->match.allow[0] != '\0') {
        if (http_reply_header(request, "Allow", request->match.allow, &error) == 0)
            http_reply_problem(request, 405, "method_not_allowed",
                               "this resource does not take this method");
    } else if (!request->match.route) {
        http_reply_problem(request, 404, "not_found", "there is nothing at this path");
    }
}

/* The headers are here. What is wrong with them is answered, though perhaps after the body. */
static void begin(struct http_request *request)
{
    struct http_server *server = request->server;
    if (server->is_stopping) {
        http_reply_problem(request, 503, "unavailable", "the server is stopping");
        return;
    }
    find_route(request);
    if (request->status == 0)
        server->mhd->MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND,
                                                 add_query, request);
    if (request->status != 0)
        return;
    buffer_init(&request->body, request->match.route->body_max);
    if (declared_length(request) > request->match.route->body_max)
        reply_too_large(request);
    else if (server->options.on_headers)
        server->options.on_headers(request, server->options.context);
}

static enum MHD_Result queue_reply(struct http_request *request)
{
    if (request->is_queued || !request->response)
        return MHD_NO;
    request->is_queued = true;
    return request->server->mhd->MHD_queue_response(request->connection, (unsigned)request->status,
                                                    request->response);
}

/* Whether the client will send no more before it hears from us, or too much to listen to. */
static bool should_answer_before_body(const struct http_request *request)
{
    return request->status != 0 && (declared_length(request) > DISCARD_MAX ||
                                    http_request_header(request, "Expect").data != NULL);
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *connection, const char *path,
                                 const char *method, const char *version __attribute__((unused)),
                                 const char *data, size_t *size, void **request_slot)
{
    struct http_server *server = context;
    struct http_request *request = *request_slot;
    if (!request) {
        request = *request_slot = request_new(server, connection, method, path);
        http_pace_begin(request);
        begin(request);
        return should_answer_before_body(request) ? queue_reply(request) : MHD_YES;
    }
    if (*size > 0) {
        const size_t taken = *size;
        *size = 0;
        http_pace_body(request, taken);
        return take_body(request, data, taken);
    }
    http_pace_end(request);
    if (request->status == 0 && !request->was_handled) {
        request->was_handled = true;
        request->match.route->handler(request, server->options.context);
    }
    if (request->status == 0) {
        request->is_suspended = true;
        server->mhd->MHD_suspend_connection(connection);
        return MHD_YES;
    }
    return queue_reply(request);
}

static void on_completed(void *context, struct MHD_Connection *connection __attribute__((unused)),
                         void **request_slot, enum MHD_RequestTerminationCode how)
{
    struct http_server *server = context;
    struct http_request *request = *request_slot;
    if (!request)
        return;
    *request_slot = NULL;
    if (request->stream)
        http_stream_detach(TAKE(request->stream));
    map_remove(&server->waiting, request->id);
    http_pace_begin(request); /* the next one on this connection */
    if (server->options.on_done)
        server->options.on_done(request,
                                how == MHD_REQUEST_TERMINATED_COMPLETED_OK ? request->status : 0,
                                server->options.context);
    if (request->response)
        server->mhd->MHD_destroy_response(request->response);
    list_remove(&request->node);
    buffer_done(&request->body);
    arena_free(request->arena);
    free(request);
}

/* --- the daemon --- */

void http_server_resume(struct http_server *server, struct MHD_Connection *connection)
{
    server->mhd->MHD_resume_connection(connection);
    /* Without a thread of its own libmicrohttpd wakes nobody up for it. */
    server->has_resumed = true;
    loop_timer_start(server->timeout, 0);
}

/* Lets libmicrohttpd do what there is to do and sees to the next time. */
static void pump(struct http_server *server)
{
    server->has_resumed = false;
    server->mhd->MHD_run(server->daemon);
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    if (server->has_resumed)
        loop_timer_start(server->timeout, 0);
    else if (server->mhd->MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES)
        loop_timer_start(server->timeout, (int64_t)timeout_ms);
    else
        loop_timer_stop(server->timeout);
}

static void on_ready(void *context, uint32_t events __attribute__((unused)))
{
    pump(context);
}

static void on_timeout(void *context)
{
    pump(context);
}

/* Paths and queries are decoded by ourselves, strictly and after they were split. */
static size_t leave_escapes(void *context __attribute__((unused)),
                            struct MHD_Connection *connection __attribute__((unused)), char *text)
{
    return strlen(text);
}

static struct MHD_Daemon *start_daemon(struct http_server *server, int listen_fd)
{
    const struct http_server_options *options = &server->options;
    const bool is_secure = options->certificate_pem != NULL;
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, without_const(options->certificate_pem)},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, without_const(options->key_pem)},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         without_const("NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2")},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    const unsigned flags = (unsigned)MHD_USE_EPOLL | (unsigned)MHD_ALLOW_SUSPEND_RESUME |
                           (is_secure ? (unsigned)MHD_USE_TLS : 0U);
    return server->mhd->MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, server, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        http_pace_connection, server, MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, server,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)options->connection_max, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)options->connection_per_ip_max, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)options->idle_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 * 1024),
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, (int)options->ignores_sigpipe, MHD_OPTION_ARRAY,
        is_secure ? secure : none, MHD_OPTION_END);
}

static void set_defaults(struct http_server_options *options)
{
    if (!options->listen_option)
        options->listen_option = "--listen";
    if (options->connection_max == 0)
        options->connection_max = CONNECTION_MAX_DEFAULT;
    if (options->idle_timeout_s == 0)
        options->idle_timeout_s = IDLE_TIMEOUT_S_DEFAULT;
    if (options->stream_backlog_max == 0)
        options->stream_backlog_max = BACKLOG_MAX_DEFAULT;
    if (options->stream_heartbeat_ms == 0)
        options->stream_heartbeat_ms = HEARTBEAT_MS_DEFAULT;
}

int http_server_open(const struct http_server_options *options, struct http_server **out_server,
                     struct error *error)
{
    ASSERT(!options->certificate_pem == !options->key_pem);
    const struct mhd_library *mhd = NULL;
    if (mhd_library_load(&mhd, error) < 0)
        return -1;
    struct http_server *server = calloc(1, sizeof(*server));
    ASSERT(server);
    AUTO(http_server) struct http_server *owned = server;
    server->mhd = mhd;
    server->options = *options;
    set_defaults(&server->options);
    list_init(&server->requests);
    list_init(&server->streams);
    list_init(&server->senders);
    map_init(&server->waiting);
    server->timeout = loop_timer_new(options->loop, on_timeout, server);
    server->heartbeat = loop_timer_new(options->loop, http_server_heartbeat, server);
    server->pace = loop_timer_new(options->loop, http_pace_check, server);

    AUTO_FD int listen_fd = -1;
    if (tcp_listen(&options->listen, server->options.listen_option, &listen_fd, &server->port,
                   error) < 0)
        return -1;
    /* The daemon closes it, also when it does not start. */
    server->daemon = start_daemon(server, TAKE_FD(listen_fd));
    if (!server->daemon)
        return error_set(error, ERROR_INVALID, "the HTTP server could not be started%s",
                         options->certificate_pem ? ": are certificate and key good?" : "");
    const union MHD_DaemonInfo *info =
        mhd->MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return error_set(error, ERROR_UNAVAILABLE, "libmicrohttpd has no epoll here");
    if (loop_watch_open(options->loop, info->epoll_fd, LOOP_READ, on_ready, server, &server->watch,
                        error) < 0)
        return -1;
    loop_timer_start(server->heartbeat, server->options.stream_heartbeat_ms);
    http_pace_check(server);
    pump(server);
    *out_server = TAKE(owned);
    return 0;
}

static void stop_daemon(struct http_server *server)
{
    /* Nothing may be suspended when libmicrohttpd stops: it aborts. */
    server->is_stopping = true;
    http_server_end_streams(server);
    LIST_EACH(&server->requests, node)
    {
        struct http_request *request = LIST_ITEM(node, struct http_request, node);
        if (request->is_suspended)
            http_reply_problem(request, 503, "unavailable", "the server is stopping");
    }
    /* Once to resume them, once to send. What a slow client has not taken by then it loses. */
    server->mhd->MHD_run(server->daemon);
    server->mhd->MHD_run(server->daemon);
    server->mhd->MHD_stop_daemon(server->daemon);
    ASSERT(list_is_empty(&server->requests));
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    loop_watch_free(TAKE(server->watch));
    if (server->daemon)
        stop_daemon(server);
    loop_timer_free(server->timeout);
    loop_timer_free(server->heartbeat);
    loop_timer_free(server->pace);
    map_done(&server->waiting);
    free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

uint32_t http_server_connection_count(const struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        server->mhd->MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

struct http_request *http_server_find(struct http_server *server, uint64_t request_id)
{
    return map_get(&server->waiting, request_id);
}
