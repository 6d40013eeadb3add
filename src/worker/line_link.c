#include "worker/line_link.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAITING_MAX = 4 * MUSTER_LINE_MAX, READ_SIZE = 16 << 10 };

struct line_link {
    int fd;
    struct loop_watch *watch;
    struct loop_timer *closing; /* tells of an end outside of send */
    struct line_link_callbacks callbacks;
    void *context;
    struct buffer in, out;
    struct arena *arena; /* of one message */
    bool *is_freed;      /* of who calls back just now, or NULL */
    char why[128];
};

static void close_later(struct line_link *link, const char *why)
{
    if (link->why[0])
        return;
    snprintf(link->why, sizeof(link->why), "%.120s", why);
    loop_watch_set(link->watch, 0);
    loop_timer_start(link->closing, 0);
}

static void on_closing(void *context)
{
    struct line_link *link = context;
    link->callbacks.on_closed(link->context, link->why);
}

/* False: the link is gone, or ends. */
static bool take_lines(struct line_link *link)
{
    bool is_freed = false;
    for (const uint8_t *end; !link->why[0] && link->in.size > 0 &&
                             (end = memchr(link->in.data, '\n', link->in.size));) {
        const size_t size = (size_t)(end - link->in.data);
        struct muster_message message;
        struct error error;
        arena_clear(link->arena);
        if (muster_message_decode(link->arena, (struct text){(const char *)link->in.data, size},
                                  &message, &error) < 0) {
            close_later(link, error.message);
            return false;
        }
        buffer_consume(&link->in, size + 1);
        link->is_freed = &is_freed;
        link->callbacks.on_message(link->context, &message);
        if (is_freed)
            return false;
        link->is_freed = NULL;
    }
    return !link->why[0];
}

static void read_some(struct line_link *link)
{
    uint8_t *room = buffer_room(&link->in, READ_SIZE);
    if (!room) {
        close_later(link, "a line too long");
        return;
    }
    const ssize_t got = recv(link->fd, room, READ_SIZE, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        close_later(link, got == 0 ? "its connection was closed" : strerrordesc_np(errno));
        return;
    }
    buffer_advance(&link->in, (size_t)got);
    take_lines(link);
}

static void write_some(struct line_link *link)
{
    while (link->out.size > 0) {
        const ssize_t sent =
            send(link->fd, link->out.data, link->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent <= 0) {
            close_later(link, strerrordesc_np(errno));
            return;
        }
        buffer_consume(&link->out, (size_t)sent);
    }
    loop_watch_set(link->watch, link->out.size > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void on_events(void *context, uint32_t events)
{
    struct line_link *link = context;
    if (events & LOOP_WRITE)
        write_some(link);
    if (!link->why[0] && events & (LOOP_READ | LOOP_HANGUP))
        read_some(link);
}

int line_link_open_take(struct loop *loop, int fd, const struct line_link_callbacks *callbacks,
                        void *context, struct line_link **out_link, struct error *error)
{
    AUTO(line_link) struct line_link *link = calloc(1, sizeof(*link));
    ASSERT(link);
    link->fd = fd;
    link->callbacks = *callbacks;
    link->context = context;
    buffer_init(&link->in, MUSTER_LINE_MAX + READ_SIZE);
    buffer_init(&link->out, WAITING_MAX);
    link->arena = arena_new(0);
    link->closing = loop_timer_new(loop, on_closing, link);
    if (loop_watch_open(loop, fd, LOOP_READ, on_events, link, &link->watch, error) < 0)
        return error_wrap(error, "connection between ranks");
    *out_link = TAKE(link);
    return 0;
}

void line_link_free(struct line_link *link)
{
    if (!link)
        return;
    if (link->is_freed)
        *link->is_freed = true;
    loop_watch_free(link->watch);
    loop_timer_free(link->closing);
    close(link->fd);
    buffer_done(&link->in);
    buffer_done(&link->out);
    arena_free(link->arena);
    free(link);
}

void line_link_send(struct line_link *link, const struct muster_message *message)
{
    if (link->why[0])
        return;
    muster_message_encode(message, &link->out);
    struct error error;
    if (buffer_check(&link->out, &error) < 0)
        close_later(link, "it does not take what it is sent");
    else
        write_some(link);
}
