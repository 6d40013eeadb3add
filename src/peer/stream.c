#include "peer/stream.h"

#include "base/assert.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    RETRY_FIRST_MS = 100,
    RETRY_LAST_MS = 5000,
    TICKET_TEXT_SIZE = 2 * LEASE_TICKET_SIZE + 1,
};

struct stream {
    struct stream_options options;
    struct tcp_connect *connect;
    struct relay *relay;
    struct loop_timer *retry;
    struct random random;
    int64_t retry_ms;
};

static void stream_dial(void *context);

static void stream_on_relayed(struct relay *relay, const struct error *reason, void *context)
{
    struct stream *stream = context;
    (void)relay;
    stream->options.on_done(stream, reason, stream->options.context);
}

/* On success the relay has `fd` and *out_inner is the sandbox's end. */
static int stream_join(struct stream *stream, int fd, int *out_inner, struct error *error)
{
    char ticket[TICKET_TEXT_SIZE], line[TICKET_TEXT_SIZE + 16];
    text_hex_encode(stream->options.ticket, LEASE_TICKET_SIZE, ticket);
    const int size = snprintf(line, sizeof(line), "SOUK-STREAM %s\n", ticket);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(error, errno, "make a socketpair");
    AUTO_FD int outer = pair[0];
    AUTO_FD int inner = pair[1];
    /* A new connection's buffer holds one line; if not, dialling again is as good as waiting. */
    if (send(fd, line, (size_t)size, MSG_NOSIGNAL) != size)
        return error_set_errno(error, errno, "name the stream");
    const struct relay_options options = {.loop = stream->options.loop,
                                          .left_fd = fd,
                                          .right_fd = outer,
                                          .on_done = stream_on_relayed,
                                          .context = stream};
    if (relay_open_take(&options, &stream->relay, error) < 0)
        return -1;
    (void)TAKE_FD(outer); /* the relay's now */
    *out_inner = TAKE_FD(inner);
    return 0;
}

static void stream_on_connected(void *context, int fd, const struct error *reason)
{
    struct stream *stream = context;
    struct error error;
    int inner = -1;
    tcp_connect_free(TAKE(stream->connect));
    if (!reason && stream_join(stream, fd, &inner, &error) == 0) {
        stream->options.on_ready(stream, inner, stream->options.context);
        return;
    }
    if (fd >= 0)
        close(fd);
    /* Up to half as long again, so that many streams do not knock at once. */
    const int64_t jitter_ms = (int64_t)random_below(&stream->random, (uint64_t)stream->retry_ms);
    loop_timer_start(stream->retry, stream->retry_ms + jitter_ms / 2);
    stream->retry_ms *= 2;
    if (stream->retry_ms > RETRY_LAST_MS)
        stream->retry_ms = RETRY_LAST_MS;
}

static void stream_dial(void *context)
{
    struct stream *stream = context;
    stream->connect = tcp_connect_start(stream->options.loop, &stream->options.target,
                                        CONNECT_TIMEOUT_MS, stream_on_connected, stream);
}

struct stream *stream_start(const struct stream_options *options)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    ASSERT(stream);
    stream->options = *options;
    stream->retry_ms = RETRY_FIRST_MS;
    random_init(&stream->random, options->seed);
    stream->retry = loop_timer_new(options->loop, stream_dial, stream);
    stream_dial(stream);
    return stream;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    tcp_connect_free(stream->connect);
    relay_free(stream->relay);
    loop_timer_free(stream->retry);
    free(stream);
}

struct stream_counts stream_counts(const struct stream *stream)
{
    if (!stream->relay)
        return (struct stream_counts){0};
    const struct relay_counts counts = relay_counts(stream->relay);
    return (struct stream_counts){.bytes_in = counts.left_to_right_bytes,
                                  .bytes_out = counts.right_to_left_bytes};
}
