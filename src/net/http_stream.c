#include "base/assert.h"
#include "net/http_server_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BLOCK_SIZE = 4096 };

/*
 * Held by two: the owner, until http_stream_free, and libmicrohttpd, until it has released the
 * response whose bytes come from here.
 */
struct http_stream {
    struct http_server *server;
    struct http_request *request; /* NULL when the client is gone */
    struct list_node node;
    int references;
    struct buffer backlog;
    size_t sent; /* of the backlog */
    bool is_suspended;
    bool is_ending;
    bool is_dropped;
    bool has_owner;
    void (*on_close)(struct http_stream *stream, void *context);
    void *context;
};

static void unref(struct http_stream *stream)
{
    if (--stream->references > 0)
        return;
    buffer_done(&stream->backlog);
    free(stream);
}

static void release_by_library(void *context)
{
    unref(context);
}

static ssize_t give_bytes(void *context, uint64_t position __attribute__((unused)), char *out,
                          size_t out_size)
{
    struct http_stream *stream = context;
    if (stream->is_dropped)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    const size_t left = stream->backlog.size - stream->sent;
    if (left == 0) {
        if (stream->is_ending || stream->server->is_stopping || !stream->request)
            return MHD_CONTENT_READER_END_OF_STREAM;
        /* Otherwise it would be asked again and again. */
        stream->is_suspended = true;
        stream->server->mhd->MHD_suspend_connection(stream->request->connection);
        return 0;
    }
    const size_t size = left < out_size ? left : out_size;
    memcpy(out, stream->backlog.data + stream->sent, size);
    stream->sent += size;
    if (stream->sent == stream->backlog.size) {
        buffer_clear(&stream->backlog);
        stream->sent = 0;
    }
    return (ssize_t)size;
}

static void resume(struct http_stream *stream)
{
    if (!stream->is_suspended)
        return;
    stream->is_suspended = false;
    http_server_resume(stream->server, stream->request->connection);
}

int http_stream_open(struct http_request *request,
                     void (*on_close)(struct http_stream *stream, void *context), void *context,
                     struct http_stream **out_stream, struct error *error)
{
    struct http_server *server = request->server;
    if (request->status != 0)
        return error_set(error, ERROR_CONFLICT, "the request has a reply already");
    if (http_reply_header(request, "Cache-Control", "no-store", error) < 0 ||
        http_reply_header(request, "X-Accel-Buffering", "no", error) < 0)
        return -1;
    struct http_stream *stream = calloc(1, sizeof(*stream));
    ASSERT(stream);
    struct MHD_Response *response = server->mhd->MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_SIZE, give_bytes, stream, release_by_library);
    if (!response) {
        free(stream);
        return error_set(error, ERROR_EXHAUSTED, "no memory for an event stream");
    }
    stream->server = server;
    stream->request = request;
    stream->references = 2;
    stream->has_owner = true;
    stream->on_close = on_close;
    stream->context = context;
    buffer_init(&stream->backlog, server->options.stream_backlog_max);
    /* The first bytes also carry the headers out. */
    buffer_append_string(&stream->backlog, ":\n\n");
    list_append(&server->streams, &stream->node);
    request->stream = stream;
    http_reply_finish(request, 200, "text/event-stream", response);
    *out_stream = stream;
    return 0;
}

void http_stream_detach(struct http_stream *stream)
{
    list_remove(&stream->node);
    stream->request = NULL;
    stream->is_suspended = false;
    if (!stream->has_owner)
        return;
    if (stream->on_close) {
        stream->on_close(stream, stream->context);
    } else {
        stream->has_owner = false;
        unref(stream);
    }
}

/* Makes room by forgetting what was sent, so that the maximum bounds what waits. */
static void compact(struct http_stream *stream)
{
    buffer_consume(&stream->backlog, stream->sent);
    stream->sent = 0;
}

static void append_lines(struct buffer *backlog, struct text data)
{
    struct text line;
    bool goes_on;
    do {
        goes_on = text_cut(data, '\n', &line, &data);
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        buffer_append_string(backlog, "data: ");
        buffer_append_text(backlog, line);
        buffer_append_byte(backlog, '\n');
    } while (goes_on);
}

static void drop(struct http_stream *stream)
{
    stream->is_dropped = true;
    const union MHD_ConnectionInfo *info = stream->server->mhd->MHD_get_connection_info(
        stream->request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    /* The client does not read, so the library waits for it: a closed socket ends that. */
    if (info)
        (void)shutdown(info->connect_fd, SHUT_RDWR);
    resume(stream);
}

static bool has_line_break(struct text text)
{
    return text.size > 0 &&
           (memchr(text.data, '\n', text.size) || memchr(text.data, '\r', text.size));
}

int http_stream_send(struct http_stream *stream, struct text id, struct text name, struct text data,
                     struct error *error)
{
    if (!stream->request || stream->is_dropped || stream->is_ending)
        return error_set(error, ERROR_UNAVAILABLE, "event stream is closed");
    if (has_line_break(id) || has_line_break(name))
        return error_set(error, ERROR_INVALID, "event id or name has a line break");
    compact(stream);
    struct buffer *backlog = &stream->backlog;
    if (id.size > 0) {
        buffer_append_string(backlog, "id: ");
        buffer_append_text(backlog, id);
        buffer_append_byte(backlog, '\n');
    }
    if (name.size > 0) {
        buffer_append_string(backlog, "event: ");
        buffer_append_text(backlog, name);
        buffer_append_byte(backlog, '\n');
    }
    append_lines(backlog, data);
    buffer_append_byte(backlog, '\n');
    if (backlog->is_overflowed) {
        drop(stream);
        return error_set(error, ERROR_EXHAUSTED, "event stream lags more than %zu bytes",
                         backlog->size_max);
    }
    resume(stream);
    return 0;
}

void http_stream_free(struct http_stream *stream)
{
    if (!stream)
        return;
    ASSERT(stream->has_owner);
    stream->has_owner = false;
    stream->is_ending = true;
    if (stream->request)
        resume(stream);
    unref(stream);
}

void http_server_heartbeat(void *context)
{
    struct http_server *server = context;
    loop_timer_start(server->heartbeat, server->options.stream_heartbeat_ms);
    LIST_EACH(&server->streams, node)
    {
        struct http_stream *stream = LIST_ITEM(node, struct http_stream, node);
        if (stream->is_dropped || stream->is_ending)
            continue;
        compact(stream);
        buffer_append_string(&stream->backlog, ":\n\n");
        if (stream->backlog.is_overflowed)
            drop(stream);
        else
            resume(stream);
    }
}

void http_server_end_streams(struct http_server *server)
{
    LIST_EACH(&server->streams, node)
    {
        struct http_stream *stream = LIST_ITEM(node, struct http_stream, node);
        stream->is_ending = true;
        resume(stream);
    }
}
