#include "net/link.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/list.h"
#include "net/link_tls_internal.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAYLOAD_MAX_DEFAULT = 1 << 20,
    HANDSHAKE_MS_DEFAULT = 10000,
    FINISH_MS = 5000,            /* for the peer to take leave after we did */
    RECORD_SIZE = 16384,         /* the most TLS gives by one read */
    CHUNK_SIZE = 16384,          /* small frames are gathered up to this */
    KEPT_CAPACITY = 256 * 1024,  /* a larger receive buffer is given back when empty */
    BYTES_PER_TURN = 1024 * 1024 /* then the loop's other descriptors get theirs */
};

enum link_state {
    LINK_HANDSHAKE,
    LINK_OPEN,
    LINK_FINISHING, /* sends what is queued and its farewell, then waits for the peer's */
    LINK_CLOSED,
};

struct chunk {
    struct list_node node;
    size_t size, capacity, sent;
    uint8_t data[];
};

struct link {
    struct loop *loop;
    struct loop_watch *watch;
    struct loop_timer *deadline; /* of the handshake, later of finishing */
    struct loop_timer *soon;     /* goes on with bytes that are already here */
    int fd;
    SSL *ssl;
    struct link_tls_keys keys;
    enum link_state state;
    bool is_finish_asked;
    bool is_farewell_sent;
    bool is_paused;
    bool handshake_wants_write;
    bool is_above_low;
    int busy; /* > 0 inside our own functions: a free waits until they return */
    bool is_freed;

    uint32_t payload_max;
    size_t queue_max_bytes, queue_low_bytes, queued_bytes;
    struct chunk *sending; /* taken from the queue; NULL: none */
    struct list queue;     /* of struct chunk */
    struct buffer received;
    uint64_t received_bytes, sent_bytes;

    struct link_callbacks callbacks;
    void *context;
};

static void release(struct link *link)
{
    loop_watch_free(link->watch);
    loop_timer_free(link->deadline);
    loop_timer_free(link->soon);
    SSL_free(link->ssl);
    if (link->fd >= 0)
        close(link->fd);
    free(link->sending);
    for (struct list_node *node; (node = list_take_first(&link->queue));)
        free(LIST_ITEM(node, struct chunk, node));
    buffer_done(&link->received);
    OPENSSL_cleanse(&link->keys, sizeof(link->keys));
    free(link);
}

static void enter(struct link *link)
{
    link->busy++;
}

/* The link may be gone afterwards. */
static void leave(struct link *link)
{
    if (--link->busy == 0 && link->is_freed)
        release(link);
}

static bool is_alive(const struct link *link)
{
    return !link->is_freed && link->state != LINK_CLOSED;
}

static bool has_to_send(const struct link *link)
{
    return link->sending || !list_is_empty(&link->queue) ||
           (link->state == LINK_FINISHING && !link->is_farewell_sent);
}

static void update_interest(struct link *link)
{
    if (!is_alive(link))
        return;
    uint32_t interest = 0;
    if (link->state == LINK_HANDSHAKE)
        interest = link->handshake_wants_write ? LOOP_WRITE : LOOP_READ;
    else
        interest = (link->is_paused ? 0U : LOOP_READ) | (has_to_send(link) ? LOOP_WRITE : 0U);
    loop_watch_set(link->watch, interest);
}

/* Ends the connection; `reason` NULL when it ended in good order. */
static void close_with(struct link *link, const struct error *reason)
{
    if (!is_alive(link))
        return;
    link->state = LINK_CLOSED;
    loop_watch_free(TAKE(link->watch));
    loop_timer_stop(link->deadline);
    loop_timer_stop(link->soon);
    close(TAKE_FD(link->fd));
    link->callbacks.on_close(link, reason, link->context);
}

/* --- receiving --- */

static void deliver_frames(struct link *link)
{
    size_t done = 0;
    struct error error;
    while (is_alive(link) && !link->is_paused) {
        const struct text left = {(const char *)link->received.data + done,
                                  link->received.size - done};
        struct frame frame;
        size_t size;
        const int found = frame_decode(left, link->payload_max, &frame, &size, &error);
        if (found < 0) {
            close_with(link, &error);
            return;
        }
        if (found == 0)
            break;
        done += size;
        link->received_bytes += size;
        if (link->state == LINK_OPEN)
            link->callbacks.on_frame(link, frame.type, frame.payload, link->context);
    }
    if (!is_alive(link))
        return;
    buffer_consume(&link->received, done);
    if (link->received.size == 0 && link->received.capacity > KEPT_CAPACITY) {
        const size_t size_max = link->received.size_max;
        buffer_done(&link->received);
        buffer_init(&link->received, size_max);
    }
}

static void receive_end(struct link *link)
{
    struct error error;
    if (link->state != LINK_FINISHING && frame_decode_end(buffer_text(&link->received), &error) < 0)
        close_with(link, &error);
    else
        close_with(link, NULL);
}

static void receive_failed(struct link *link, int result)
{
    const int kind = SSL_get_error(link->ssl, result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return;
    if (kind == SSL_ERROR_ZERO_RETURN) {
        receive_end(link);
        return;
    }
    struct error error;
    link_tls_error(link->ssl, result, &link->keys, &error);
    if (link->received.size > 0)
        error_wrap(&error, "inside a frame");
    /* After our farewell all we had to say was said, and nothing more was asked of the peer. */
    close_with(link, link->is_farewell_sent ? NULL : &error);
}

static void receive(struct link *link)
{
    size_t budget = BYTES_PER_TURN;
    deliver_frames(link);
    while (is_alive(link) && !link->is_paused) {
        uint8_t *room = buffer_reserve(&link->received, RECORD_SIZE);
        if (!room) {
            struct error error;
            error_set(&error, ERROR_EXHAUSTED, "no memory for a frame");
            close_with(link, &error);
            return;
        }
        ERR_clear_error();
        errno = 0;
        const int got = SSL_read(link->ssl, room, RECORD_SIZE);
        if (got <= 0) {
            receive_failed(link, got);
            return;
        }
        buffer_advance(&link->received, (size_t)got);
        deliver_frames(link);
        if ((size_t)got >= budget) {
            if (is_alive(link) && SSL_has_pending(link->ssl))
                loop_timer_start(link->soon, 0);
            return;
        }
        budget -= (size_t)got;
    }
}

/* --- sending --- */

static void send_queue(struct link *link)
{
    size_t budget = BYTES_PER_TURN;
    while (budget > 0) {
        if (!link->sending && !list_is_empty(&link->queue))
            link->sending = LIST_ITEM(list_take_first(&link->queue), struct chunk, node);
        struct chunk *chunk = link->sending;
        if (!chunk)
            break;
        size_t size = chunk->size - chunk->sent;
        if (size > BYTES_PER_TURN)
            size = BYTES_PER_TURN;
        ERR_clear_error();
        errno = 0;
        const int sent = SSL_write(link->ssl, chunk->data + chunk->sent, (int)size);
        if (sent <= 0) {
            const int kind = SSL_get_error(link->ssl, sent);
            if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
                break;
            struct error error;
            link_tls_error(link->ssl, sent, &link->keys, &error);
            close_with(link, &error);
            return;
        }
        chunk->sent += (size_t)sent;
        link->queued_bytes -= (size_t)sent;
        link->sent_bytes += (uint64_t)sent;
        budget -= (size_t)sent < budget ? (size_t)sent : budget;
        if (chunk->sent == chunk->size) {
            link->sending = NULL;
            free(chunk);
        }
    }
    if (link->is_above_low && link->queued_bytes <= link->queue_low_bytes) {
        link->is_above_low = false;
        if (link->callbacks.on_drained && link->state == LINK_OPEN)
            link->callbacks.on_drained(link, link->context);
    }
}

static void send_farewell_when_due(struct link *link)
{
    if (!is_alive(link) || link->state != LINK_FINISHING || link->is_farewell_sent ||
        link->sending || !list_is_empty(&link->queue))
        return;
    ERR_clear_error();
    /* Tells the peer that nothing was cut off. */
    const int result = SSL_shutdown(link->ssl);
    if (result < 0 && SSL_get_error(link->ssl, result) == SSL_ERROR_WANT_WRITE)
        return;
    link->is_farewell_sent = true;
    (void)shutdown(link->fd, SHUT_WR);
}

int link_send(struct link *link, uint16_t type, const struct text *parts, size_t part_count,
              struct error *error)
{
    if (!is_alive(link) || link->is_finish_asked)
        return error_set(error, ERROR_UNAVAILABLE, "link is closed");
    size_t payload_size = 0;
    for (size_t i = 0; i < part_count; i++)
        if (__builtin_add_overflow(payload_size, parts[i].size, &payload_size))
            return error_set(error, ERROR_INVALID, "frame is too large");
    if (payload_size > link->payload_max)
        return error_set(error, ERROR_INVALID, "frame of %zu bytes is over the maximum of %u",
                         payload_size, link->payload_max);
    const size_t size = FRAME_HEADER_SIZE + payload_size;
    if (size > link->queue_max_bytes - link->queued_bytes)
        return error_set(error, ERROR_EXHAUSTED, "link has %zu bytes waiting to be sent",
                         link->queued_bytes);

    struct chunk *chunk = NULL;
    if (!list_is_empty(&link->queue)) {
        chunk = LIST_ITEM(link->queue.head.previous, struct chunk, node);
        if (chunk->capacity - chunk->size < size)
            chunk = NULL;
    }
    if (!chunk) {
        const size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        chunk = malloc(sizeof(*chunk) + capacity);
        if (!chunk)
            return error_set(error, ERROR_EXHAUSTED, "no memory for a frame of %zu bytes", size);
        *chunk = (struct chunk){.capacity = capacity};
        list_append(&link->queue, &chunk->node);
    }
    frame_header_encode((uint32_t)payload_size, type, chunk->data + chunk->size);
    chunk->size += FRAME_HEADER_SIZE;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].size > 0)
            memcpy(chunk->data + chunk->size, parts[i].data, parts[i].size);
        chunk->size += parts[i].size;
    }
    link->queued_bytes += size;
    link->is_above_low = link->is_above_low || link->queued_bytes > link->queue_low_bytes;
    /* The loop sends: what is sent together leaves together, and no callback comes from here. */
    update_interest(link);
    return 0;
}

int link_send_text(struct link *link, uint16_t type, struct text payload, struct error *error)
{
    return link_send(link, type, &payload, 1, error);
}

/* --- the connection --- */

static void start_finishing(struct link *link)
{
    link->state = LINK_FINISHING;
    link->is_paused = false;
    loop_timer_start(link->deadline, FINISH_MS);
    send_farewell_when_due(link);
}

static void handshake(struct link *link)
{
    struct error error;
    const int result =
        link_tls_handshake(link->ssl, &link->keys, &link->handshake_wants_write, &error);
    if (result == 0)
        return;
    if (result < 0) {
        close_with(link, &error);
        return;
    }
    loop_timer_stop(link->deadline);
    link->state = LINK_OPEN;
    link->callbacks.on_open(link, text_of(link->keys.identity), link->context);
    if (is_alive(link) && link->is_finish_asked)
        start_finishing(link);
}

static void on_ready(void *context, uint32_t events)
{
    struct link *link = context;
    enter(link);
    if (link->state == LINK_HANDSHAKE) {
        handshake(link);
        /* The peer's first frames may have come with its last handshake bytes. */
        if (is_alive(link) && link->state != LINK_HANDSHAKE)
            receive(link);
    } else {
        if (events & (LOOP_WRITE | LOOP_HANGUP))
            send_queue(link);
        if (is_alive(link) && (events & (LOOP_READ | LOOP_HANGUP)))
            receive(link);
        send_farewell_when_due(link);
    }
    update_interest(link);
    leave(link);
}

static void on_soon(void *context)
{
    on_ready(context, LOOP_READ);
}

static void on_deadline(void *context)
{
    struct link *link = context;
    enter(link);
    struct error error;
    if (link->is_farewell_sent) {
        close_with(link, NULL);
    } else {
        error_set(&error, ERROR_UNAVAILABLE,
                  link->state == LINK_HANDSHAKE ? "TLS handshake took too long"
                                                : "peer did not take what was left to send");
        close_with(link, &error);
    }
    leave(link);
}

int link_open_take(const struct link_options *options, int fd, struct link **out_link,
                   struct error *error)
{
    ASSERT(options->callbacks.on_open && options->callbacks.on_frame &&
           options->callbacks.on_close);
    ASSERT(options->is_server ? options->find_key != NULL : options->key && options->identity);
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "make a descriptor non-blocking");

    struct link *link = calloc(1, sizeof(*link));
    ASSERT(link);
    link->loop = options->loop;
    link->fd = -1;
    link->payload_max = options->payload_max ? options->payload_max : PAYLOAD_MAX_DEFAULT;
    link->queue_max_bytes = options->queue_max_bytes
                                ? options->queue_max_bytes
                                : (size_t)link->payload_max + PAYLOAD_MAX_DEFAULT;
    link->queue_low_bytes =
        options->queue_low_bytes ? options->queue_low_bytes : link->queue_max_bytes / 4;
    link->callbacks = options->callbacks;
    link->context = options->context;
    link->deadline = loop_timer_new(link->loop, on_deadline, link);
    link->soon = loop_timer_new(link->loop, on_soon, link);
    list_init(&link->queue);
    buffer_init(&link->received, FRAME_HEADER_SIZE + (size_t)link->payload_max + RECORD_SIZE);
    link->keys.find_key = options->find_key;
    link->keys.context = &link->context;
    if (!options->is_server) {
        memcpy(link->keys.key, options->key, LINK_KEY_SIZE);
        if (text_copy(text_of(options->identity), link->keys.identity, sizeof(link->keys.identity),
                      error) < 0) {
            release(link);
            return error_wrap(error, "identity of a link");
        }
    }
    /* A client speaks first, a server waits. */
    if (link_tls_new(options->is_server, fd, &link->keys, &link->ssl, error) < 0 ||
        loop_watch_open(link->loop, fd, options->is_server ? LOOP_READ : LOOP_WRITE, on_ready, link,
                        &link->watch, error) < 0) {
        release(link);
        return -1;
    }
    link->handshake_wants_write = !options->is_server;
    link->fd = fd;
    loop_timer_start(link->deadline, options->handshake_timeout_ms ? options->handshake_timeout_ms
                                                                   : HANDSHAKE_MS_DEFAULT);
    *out_link = link;
    return 0;
}

void link_free(struct link *link)
{
    if (!link)
        return;
    link->is_freed = true;
    if (link->busy == 0)
        release(link);
}

void link_finish(struct link *link)
{
    if (!is_alive(link) || link->is_finish_asked)
        return;
    link->is_finish_asked = true;
    if (link->state == LINK_OPEN)
        start_finishing(link);
    update_interest(link);
}

void link_set_paused(struct link *link, bool is_paused)
{
    if (!is_alive(link) || link->is_paused == is_paused || link->is_finish_asked)
        return;
    link->is_paused = is_paused;
    /* Frames may already be here, where no descriptor tells of them. */
    if (!is_paused && link->state == LINK_OPEN)
        loop_timer_start(link->soon, 0);
    update_interest(link);
}

bool link_is_open(const struct link *link)
{
    return link->state == LINK_OPEN;
}

size_t link_queued_bytes(const struct link *link)
{
    return link->queued_bytes;
}

uint64_t link_received_bytes(const struct link *link)
{
    return link->received_bytes;
}

uint64_t link_sent_bytes(const struct link *link)
{
    return link->sent_bytes;
}

void link_set_context(struct link *link, void *context)
{
    link->context = context;
}
