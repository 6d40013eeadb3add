#include "net/relay.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES_DEFAULT = 256 * 1024, TURNS_MAX = 8 };

enum side { LEFT, RIGHT };

/* One direction: read from `from`, written to the other side. */
struct direction {
    enum side from;
    uint8_t *data;
    size_t start, end; /* what is read and not yet written */
    bool is_read_to_end;
    bool is_done; /* the end was passed on */
    uint64_t bytes;
};

struct relay {
    struct loop *loop;
    int fds[2];
    struct loop_watch *watches[2];
    struct direction directions[2]; /* by the side they read from */
    size_t buffer_bytes;
    struct loop_timer *idle;
    int64_t idle_timeout_ms;
    uint64_t idle_bytes; /* moved when the idle timer was last looked at */
    bool is_done;
    bool is_busy;
    bool is_freed;
    void (*on_done)(struct relay *relay, const struct error *reason, void *context);
    void *context;
};

static void release(struct relay *relay)
{
    for (int side = 0; side < 2; side++) {
        loop_watch_free(relay->watches[side]);
        if (relay->fds[side] >= 0)
            close(relay->fds[side]);
        free(relay->directions[side].data);
    }
    loop_timer_free(relay->idle);
    free(relay);
}

static void finish(struct relay *relay, const struct error *reason)
{
    if (relay->is_done)
        return;
    relay->is_done = true;
    loop_timer_stop(relay->idle);
    for (int side = 0; side < 2; side++) {
        loop_watch_free(TAKE(relay->watches[side]));
        close(TAKE_FD(relay->fds[side]));
    }
    relay->on_done(relay, reason, relay->context);
}

static bool is_transient(int errno_value)
{
    return errno_value == EAGAIN || errno_value == EINTR;
}

/* Reads what there is room for. Returns whether anything came, or -1. */
static int fill(struct relay *relay, struct direction *direction, struct error *error)
{
    if (direction->is_read_to_end || direction->end == relay->buffer_bytes)
        return 0;
    const ssize_t got = recv(relay->fds[direction->from], direction->data + direction->end,
                             relay->buffer_bytes - direction->end, 0);
    if (got < 0 && is_transient(errno))
        return 0;
    if (got < 0) {
        error_set_errno(error, errno, "relay reads");
        error->code = ERROR_UNAVAILABLE;
        return -1;
    }
    if (got == 0)
        direction->is_read_to_end = true;
    direction->end += (size_t)got;
    return got > 0;
}

/* Writes what waits and passes the end on. Returns whether anything went, or -1. */
static int drain(struct relay *relay, struct direction *direction, struct error *error)
{
    const int fd = relay->fds[!direction->from];
    bool moved = false;
    if (direction->start < direction->end) {
        const ssize_t sent = send(fd, direction->data + direction->start,
                                  direction->end - direction->start, MSG_NOSIGNAL);
        if (sent < 0 && !is_transient(errno)) {
            error_set_errno(error, errno, "relay writes");
            error->code = ERROR_UNAVAILABLE;
            return -1;
        }
        if (sent > 0) {
            direction->start += (size_t)sent;
            direction->bytes += (uint64_t)sent;
            moved = true;
        }
    }
    if (direction->start == direction->end) {
        direction->start = direction->end = 0;
        if (direction->is_read_to_end && !direction->is_done) {
            direction->is_done = true;
            /* The other side may be gone already: then its own direction tells. */
            (void)shutdown(fd, SHUT_WR);
        }
    }
    return moved;
}

static int move(struct relay *relay, struct direction *direction, struct error *error)
{
    for (int turn = 0; turn < TURNS_MAX && !direction->is_done; turn++) {
        const int filled = fill(relay, direction, error);
        if (filled < 0)
            return -1;
        const int drained = drain(relay, direction, error);
        if (drained < 0)
            return -1;
        if (!filled && !drained)
            break;
    }
    return 0;
}

static void update_interest(struct relay *relay)
{
    for (int side = 0; side < 2; side++) {
        const struct direction *out = &relay->directions[side];
        const struct direction *in = &relay->directions[!side];
        uint32_t interest = 0;
        if (!out->is_read_to_end && out->end < relay->buffer_bytes)
            interest |= LOOP_READ;
        if (in->start < in->end)
            interest |= LOOP_WRITE;
        loop_watch_set(relay->watches[side], interest);
    }
}

static void on_ready(void *context, uint32_t events __attribute__((unused)))
{
    struct relay *relay = context;
    struct error error;
    relay->is_busy = true;
    if (move(relay, &relay->directions[LEFT], &error) < 0 ||
        move(relay, &relay->directions[RIGHT], &error) < 0)
        finish(relay, &error);
    else if (relay->directions[LEFT].is_done && relay->directions[RIGHT].is_done)
        finish(relay, NULL);
    else
        update_interest(relay);
    relay->is_busy = false;
    if (relay->is_freed)
        release(relay);
}

static void on_idle(void *context)
{
    struct relay *relay = context;
    const uint64_t bytes = relay->directions[LEFT].bytes + relay->directions[RIGHT].bytes;
    if (bytes != relay->idle_bytes) {
        relay->idle_bytes = bytes;
        loop_timer_start(relay->idle, relay->idle_timeout_ms);
        return;
    }
    struct error error;
    error_set(&error, ERROR_UNAVAILABLE, "relay was idle for %lld ms",
              (long long)relay->idle_timeout_ms);
    relay->is_busy = true;
    finish(relay, &error);
    relay->is_busy = false;
    if (relay->is_freed)
        release(relay);
}

static int set_up_side(struct relay *relay, enum side side, int fd, const void *pending,
                       size_t pending_size, struct error *error)
{
    struct direction *direction = &relay->directions[side];
    direction->from = side;
    if (pending_size > relay->buffer_bytes)
        return error_set(error, ERROR_INVALID, "relay cannot hold %zu pending bytes", pending_size);
    direction->data = malloc(relay->buffer_bytes);
    if (!direction->data)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a relay");
    if (pending_size > 0)
        memcpy(direction->data, pending, pending_size);
    direction->end = pending_size;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "make a descriptor non-blocking");
    return loop_watch_open(relay->loop, fd, LOOP_READ, on_ready, relay, &relay->watches[side],
                           error);
}

int relay_open_take(const struct relay_options *options, struct relay **out_relay,
                    struct error *error)
{
    ASSERT(options->on_done);
    struct relay *relay = calloc(1, sizeof(*relay));
    ASSERT(relay);
    relay->loop = options->loop;
    relay->fds[LEFT] = relay->fds[RIGHT] = -1;
    relay->buffer_bytes = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES_DEFAULT;
    relay->on_done = options->on_done;
    relay->context = options->context;
    relay->idle_timeout_ms = options->idle_timeout_ms;
    relay->idle = loop_timer_new(relay->loop, on_idle, relay);
    if (set_up_side(relay, LEFT, options->left_fd, options->left_pending,
                    options->left_pending_size, error) < 0 ||
        set_up_side(relay, RIGHT, options->right_fd, options->right_pending,
                    options->right_pending_size, error) < 0) {
        release(relay);
        return -1;
    }
    relay->fds[LEFT] = options->left_fd;
    relay->fds[RIGHT] = options->right_fd;
    if (relay->idle_timeout_ms > 0)
        loop_timer_start(relay->idle, relay->idle_timeout_ms);
    update_interest(relay);
    *out_relay = relay;
    return 0;
}

void relay_free(struct relay *relay)
{
    if (!relay)
        return;
    relay->is_freed = true;
    if (!relay->is_busy)
        release(relay);
}

struct relay_counts relay_counts(const struct relay *relay)
{
    return (struct relay_counts){
        .left_to_right_bytes = relay->directions[LEFT].bytes,
        .right_to_left_bytes = relay->directions[RIGHT].bytes,
    };
}
