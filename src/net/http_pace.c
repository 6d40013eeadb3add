/*
 * Pace: who sends a request too slowly is cut off.
 *
 * libmicrohttpd drops only connections on which nothing moves: a byte now and then would hold one,
 * and two thousand of them all there are. A request may take its time at first and then has to come
 * at a least rate, its headers included.
 */
#include "base/assert.h"
#include "net/http_server_internal.h"

#include <stdlib.h>
#include <sys/socket.h>

enum { GRACE_MS_DEFAULT = 30000, RATE_MIN = 8 << 10 /* bytes a second */ };

struct http_sender {
    struct list_node node;
    int fd;
    bool is_sending; /* a request, or nothing yet */
    int64_t since_ns;
    uint64_t bytes; /* of the body, since then */
};

static int64_t now_ns(const struct http_server *server)
{
    return clock_monotonic_ns(loop_clock(server->options.loop));
}

static int64_t grace_ms(const struct http_server *server)
{
    return server->options.send_grace_ms ? server->options.send_grace_ms : GRACE_MS_DEFAULT;
}

static void begin(const struct http_server *server, struct http_sender *sender)
{
    sender->is_sending = true;
    sender->since_ns = now_ns(server);
    sender->bytes = 0;
}

void http_pace_connection(void *context, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    struct http_sender *sender = *slot;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (sender)
            list_remove(&sender->node);
        free(sender);
        *slot = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        server->mhd->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return;
    sender = calloc(1, sizeof(*sender));
    ASSERT(sender);
    sender->fd = info->connect_fd;
    begin(server, sender);
    list_append(&server->senders, &sender->node);
    *slot = sender;
}

static struct http_sender *sender_of(const struct http_request *request)
{
    const union MHD_ConnectionInfo *info = request->server->mhd->MHD_get_connection_info(
        request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void http_pace_begin(const struct http_request *request)
{
    struct http_sender *sender = sender_of(request);
    if (sender)
        begin(request->server, sender);
}

void http_pace_body(const struct http_request *request, size_t size)
{
    struct http_sender *sender = sender_of(request);
    if (sender)
        sender->bytes += size;
}

void http_pace_end(const struct http_request *request)
{
    struct http_sender *sender = sender_of(request);
    if (sender)
        sender->is_sending = false;
}

void http_pace_check(void *context)
{
    struct http_server *server = context;
    const int64_t now = now_ns(server), grace_ns = grace_ms(server) * INT64_C(1000000);
    LIST_EACH(&server->senders, node)
    {
        struct http_sender *sender = LIST_ITEM(node, struct http_sender, node);
        const int64_t earned_ns = (int64_t)(sender->bytes * UINT64_C(1000000000) / RATE_MIN);
        if (!sender->is_sending || now - sender->since_ns <= grace_ns + earned_ns)
            continue;
        sender->is_sending = false;
        (void)shutdown(sender->fd, SHUT_RDWR); /* the library sees its end, and tells us */
    }
    loop_timer_start(server->pace, grace_ms(server) / 4 + 1);
}
