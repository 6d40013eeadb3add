#include "peer/channel.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/list.h"
#include "runtime/lease_message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    TYPE_SIZE = 2,
    PACKET_MAX = LEASE_MESSAGE_SIZE_MAX + TYPE_SIZE,
    BACKLOG = 4,
    MESSAGES_PER_TURN = 32,
    KEPT_BYTES = 64 << 10, /* of memory for what comes in, between two messages */
};

struct packet {
    struct list_node node;
    size_t size;
    uint8_t bytes[];
};

struct channel {
    struct channel_options options;
    int fd;
    struct loop_watch *watch;
    struct loop_timer *closing; /* on_close comes in a turn of its own */
    struct list queue;          /* struct packet */
    size_t queued_bytes;
    struct buffer incoming;
    bool is_paused;
    bool is_closed;
    bool is_busy; /* in a callback */
    bool is_freed;
};

/* ---- Sockets --------------------------------------------------------------------------------- */

/* The kernel takes a packet only if all of it fits. */
static int socket_set_room(int fd, struct error *error)
{
    const int size = PACKET_MAX;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0)
        return error_set_errno(error, errno, "set up a channel");
    return 0;
}

static int socket_check_user(int fd, pid_t *out_pid, struct error *error)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return error_set_errno(error, errno, "ask who is at the other end of a channel");
    if (peer.uid != geteuid())
        return error_set(error, ERROR_REFUSED, "user %d is at the other end of a channel",
                         (int)peer.uid);
    *out_pid = peer.pid;
    return 0;
}

/* A socket's address has room for 107 bytes; through the folder's descriptor any path fits. */
static int socket_name(const char *folder, struct sockaddr_un *address, int *out_folder_fd,
                       struct error *error)
{
    *out_folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*out_folder_fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", folder);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/channel",
             *out_folder_fd);
    return 0;
}

static int socket_open(int *out_fd, struct error *error)
{
    *out_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out_fd < 0)
        return error_set_errno(error, errno, "make a channel");
    return socket_set_room(*out_fd, error);
}

int channel_pair(int out_fds[2], struct error *error)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(error, errno, "make a channel");
    AUTO_FD int left = pair[0];
    AUTO_FD int right = pair[1];
    if (socket_set_room(left, error) < 0 || socket_set_room(right, error) < 0)
        return -1;
    out_fds[0] = TAKE_FD(left);
    out_fds[1] = TAKE_FD(right);
    return 0;
}

int channel_listen(const char *folder, int *out_fd, struct error *error)
{
    AUTO_FD int folder_fd = -1;
    AUTO_FD int fd = -1;
    struct sockaddr_un address;
    if (socket_name(folder, &address, &folder_fd, error) < 0 || socket_open(&fd, error) < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
        return error_set_errno(error, errno, "listen in \"%s\"", folder);
    *out_fd = TAKE_FD(fd);
    return 0;
}

int channel_connect(const char *folder, int *out_fd, pid_t *out_pid, struct error *error)
{
    AUTO_FD int folder_fd = -1;
    AUTO_FD int fd = -1;
    struct sockaddr_un address;
    if (socket_name(folder, &address, &folder_fd, error) < 0 || socket_open(&fd, error) < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return error_set(error, ERROR_UNAVAILABLE, "nobody listens in \"%.150s\"", folder);
    if (socket_check_user(fd, out_pid, error) < 0)
        return -1;
    *out_fd = TAKE_FD(fd);
    return 0;
}

int channel_accept(int listen_fd, int *out_fd, struct error *error)
{
    pid_t ignored;
    AUTO_FD int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return error_set(error, ERROR_UNAVAILABLE, "nobody waits at a channel");
    if (socket_check_user(fd, &ignored, error) < 0 || socket_set_room(fd, error) < 0)
        return -1;
    *out_fd = TAKE_FD(fd);
    return 0;
}

bool channel_has_peer(const struct channel *channel)
{
    struct pollfd hangup = {.fd = channel->fd};
    return !channel->is_closed && poll(&hangup, 1, 0) == 0;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* A START has the job's secrets. */
static void packet_free(struct packet *packet)
{
    explicit_bzero(packet->bytes, packet->size);
    free(packet);
}

static void channel_release(struct channel *channel)
{
    struct list_node *node;
    while ((node = list_take_first(&channel->queue)))
        packet_free(LIST_ITEM(node, struct packet, node));
    loop_watch_free(channel->watch);
    loop_timer_free(channel->closing);
    buffer_done(&channel->incoming);
    close(channel->fd);
    free(channel);
}

static void channel_close(struct channel *channel)
{
    if (channel->is_closed)
        return;
    channel->is_closed = true;
    loop_watch_set(channel->watch, 0);
    loop_timer_start(channel->closing, 0);
}

static void channel_update(struct channel *channel)
{
    if (channel->is_closed)
        return;
    const uint32_t reads = channel->is_paused ? 0 : LOOP_READ;
    loop_watch_set(channel->watch, reads | (list_is_empty(&channel->queue) ? 0 : LOOP_WRITE));
}

/* True when the packet is with the kernel; a failure closes the channel. */
static bool packet_send(struct channel *channel, const struct packet *packet)
{
    ssize_t sent;
    do
        sent = send(channel->fd, packet->bytes, packet->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN)
        channel_close(channel);
    return sent >= 0;
}

static void channel_flush(struct channel *channel)
{
    const bool had_any = !list_is_empty(&channel->queue);
    LIST_EACH(&channel->queue, node)
    {
        struct packet *packet = LIST_ITEM(node, struct packet, node);
        if (!packet_send(channel, packet))
            return;
        list_remove(&packet->node);
        channel->queued_bytes -= packet->size;
        packet_free(packet);
    }
    if (had_any && channel->options.callbacks.on_drained)
        channel->options.callbacks.on_drained(channel, channel->options.context);
}

/* False when there is nothing more, or nobody. */
static bool channel_receive(struct channel *channel)
{
    /*
     * When the other end closes with packets of ours unread, the kernel reports a reset once; its
     * last words lie behind that.
     */
    ssize_t size;
    int reset_count = 0;
    do
        size = recv(channel->fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
    while (size < 0 && (errno == EINTR || (errno == ECONNRESET && reset_count++ == 0)));
    if (size < 0 && errno == EAGAIN)
        return false;
    buffer_clear(&channel->incoming);
    uint8_t *room = size >= TYPE_SIZE ? buffer_reserve(&channel->incoming, (size_t)size) : NULL;
    if (!room || recv(channel->fd, room, (size_t)size, MSG_DONTWAIT) != size) {
        channel_close(channel);
        return false;
    }
    buffer_advance(&channel->incoming, (size_t)size);
    const struct text payload = {(const char *)room + TYPE_SIZE, (size_t)size - TYPE_SIZE};
    channel->options.callbacks.on_message(channel, (uint16_t)(room[0] | room[1] << 8), payload,
                                          channel->options.context);
    if (channel->incoming.capacity > KEPT_BYTES) {
        buffer_done(&channel->incoming);
        buffer_init_secret(&channel->incoming, PACKET_MAX);
    }
    buffer_clear(&channel->incoming);
    return true;
}

static void channel_on_events(void *context, uint32_t events)
{
    struct channel *channel = context;
    (void)events;
    channel->is_busy = true;
    channel_flush(channel);
    for (int i = 0; i < MESSAGES_PER_TURN; i++)
        if (channel->is_freed || channel->is_closed || channel->is_paused ||
            !channel_receive(channel))
            break;
    channel->is_busy = false;
    if (channel->is_freed)
        channel_release(channel);
    else
        channel_update(channel);
}

static void channel_on_closing(void *context)
{
    struct channel *channel = context;
    channel->options.callbacks.on_close(channel, channel->options.context);
}

int channel_open_take(const struct channel_options *options, int fd, struct channel **out_channel,
                      struct error *error)
{
    struct channel *channel = calloc(1, sizeof(*channel));
    ASSERT(channel);
    channel->options = *options;
    channel->fd = -1;
    list_init(&channel->queue);
    buffer_init_secret(&channel->incoming, PACKET_MAX);
    channel->closing = loop_timer_new(options->loop, channel_on_closing, channel);
    if (loop_watch_open(options->loop, fd, LOOP_READ, channel_on_events, channel, &channel->watch,
                        error) < 0) {
        loop_timer_free(channel->closing);
        free(channel);
        return -1;
    }
    channel->fd = fd;
    *out_channel = channel;
    return 0;
}

void channel_hold_open(const struct channel *channel)
{
    /* If this fails, the other end only sees the hang-up early. */
    (void)fcntl(channel->fd, F_DUPFD_CLOEXEC, 0);
}

void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    channel->is_freed = true;
    if (!channel->is_busy)
        channel_release(channel);
}

int channel_send(struct channel *channel, uint16_t type, struct text payload, struct error *error)
{
    ASSERT(payload.size <= LEASE_MESSAGE_SIZE_MAX);
    if (channel->is_closed)
        return error_set(error, ERROR_UNAVAILABLE, "the other end of a channel is gone");
    if (channel->queued_bytes > channel->options.queue_max_bytes)
        return error_set(error, ERROR_EXHAUSTED, "too much waits in a channel");
    struct packet *packet = calloc(1, sizeof(*packet) + TYPE_SIZE + payload.size);
    ASSERT(packet);
    packet->size = TYPE_SIZE + payload.size;
    packet->bytes[0] = (uint8_t)type;
    packet->bytes[1] = (uint8_t)(type >> 8);
    if (payload.size > 0)
        memcpy(packet->bytes + TYPE_SIZE, payload.data, payload.size);
    if (list_is_empty(&channel->queue) && packet_send(channel, packet)) {
        packet_free(packet);
        return 0;
    }
    list_append(&channel->queue, &packet->node);
    channel->queued_bytes += packet->size;
    channel_update(channel);
    return 0;
}

void channel_set_paused(struct channel *channel, bool is_paused)
{
    channel->is_paused = is_paused;
    channel_update(channel);
}
