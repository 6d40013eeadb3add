#include "net/packet_link.h"

#include "base/assert.h"
#include "base/list.h"
#include "net/link_tls_internal.h"
#include "net/packet.h"
#include "net/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HANDSHAKE_MS_DEFAULT = 10000,
    NOT_SENT_BYTES = 128 << 10, /* in the kernel, beyond what is on its way: more is only delay */
    BYTES_PER_TURN = 1 << 20,   /* then the loop's other descriptors get theirs */
    RECEIVE_SIZE = 2 * (PACKET_LINK_CONTENT_MAX + SEAL_OVERHEAD),
    SPARE_MAX = 4, /* batches kept for the next */
};
_Static_assert((int)PACKET_LINK_RECORD_SIZE + (int)PACKET_ROOM <= (int)PACKET_LINK_CONTENT_MAX,
               "a packet fits behind a record that is not full");

/* A record on its way: open while packets are added, then sealed. */
struct batch {
    struct list_node node;
    size_t size; /* of the content; sealed: of the record */
    size_t sent;
    uint8_t record[PACKET_LINK_CONTENT_MAX + SEAL_OVERHEAD];
};

struct packet_link {
    struct loop *loop;
    struct loop_watch *watch;
    struct loop_timer *deadline;
    int fd;
    SSL *tls;
    struct link_tls_keys keys;
    bool is_server;
    bool is_open, is_closed;
    bool wants_write; /* of the handshake */
    bool is_room_wanted;
    bool is_broken; /* noticed inside a call: told from the loop */
    struct error broken;
    struct loop_timer *soon;
    int64_t seal_key_bytes;
    struct seal *sealing, *opening;

    struct batch *open_batch; /* NULL: none begun */
    struct batch *sending;    /* taken from the queue; NULL: none */
    struct list queue;        /* of sealed batches */
    struct list spare;
    size_t spare_count;
    size_t queued_bytes;

    uint8_t *received; /* RECEIVE_SIZE */
    size_t received_size;

    int busy; /* > 0 inside our own functions: a free waits until they return */
    bool is_freed;
    struct packet_link_callbacks callbacks;
    void *context;
};

static void free_batches(struct list *list)
{
    for (struct list_node *node; (node = list_take_first(list));)
        free(LIST_ITEM(node, struct batch, node));
}

static void release(struct packet_link *link)
{
    loop_watch_free(link->watch);
    loop_timer_free(link->deadline);
    loop_timer_free(link->soon);
    seal_free(link->sealing);
    seal_free(link->opening);
    SSL_free(link->tls);
    if (link->fd >= 0)
        close(link->fd);
    free(link->open_batch);
    free(link->sending);
    free_batches(&link->queue);
    free_batches(&link->spare);
    free(link->received);
    OPENSSL_cleanse(&link->keys, sizeof(link->keys));
    free(link);
}

static void leave(struct packet_link *link)
{
    if (--link->busy == 0 && link->is_freed)
        release(link);
}

static bool is_alive(const struct packet_link *link)
{
    return !link->is_freed && !link->is_closed;
}

static void close_with(struct packet_link *link, const struct error *reason)
{
    if (!is_alive(link))
        return;
    link->is_closed = true;
    link->is_open = false;
    loop_watch_free(TAKE(link->watch));
    loop_timer_stop(link->deadline);
    loop_timer_stop(link->soon);
    close(TAKE_FD(link->fd));
    link->callbacks.on_close(link, reason, link->context);
}

/* For what goes wrong where no callback may come. */
static void break_later(struct packet_link *link, const struct error *reason)
{
    if (link->is_broken)
        return;
    link->is_broken = true;
    link->broken = *reason;
    loop_timer_start(link->soon, 0);
}

static void update_interest(struct packet_link *link)
{
    if (!is_alive(link))
        return;
    uint32_t interest = LOOP_READ;
    if (!link->is_open)
        interest = link->wants_write ? LOOP_WRITE : LOOP_READ;
    else if (link->sending || !list_is_empty(&link->queue))
        interest |= LOOP_WRITE;
    loop_watch_set(link->watch, interest);
}

/* --- sending --- */

static struct batch *take_batch(struct packet_link *link)
{
    struct list_node *node = list_take_first(&link->spare);
    struct batch *batch = NULL;
    if (node) {
        batch = LIST_ITEM(node, struct batch, node);
        link->spare_count--;
    } else {
        batch = malloc(sizeof(*batch));
        ASSERT(batch);
    }
    batch->node = (struct list_node){0};
    batch->size = 0;
    batch->sent = 0;
    return batch;
}

static void give_batch(struct packet_link *link, struct batch *batch)
{
    if (link->spare_count == SPARE_MAX) {
        free(batch);
        return;
    }
    link->spare_count++;
    list_prepend(&link->spare, &batch->node); /* the one still in the cache */
}

static void send_queue(struct packet_link *link)
{
    while (!link->is_broken) {
        if (!link->sending && !list_is_empty(&link->queue))
            link->sending = LIST_ITEM(list_take_first(&link->queue), struct batch, node);
        struct batch *batch = link->sending;
        if (!batch)
            break;
        const ssize_t sent = send(link->fd, batch->record + batch->sent, batch->size - batch->sent,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (sent < 0) {
            struct error error;
            error_set_errno(&error, errno, "connection");
            error.code = ERROR_UNAVAILABLE;
            break_later(link, &error);
            break;
        }
        batch->sent += (size_t)sent;
        link->queued_bytes -= (size_t)sent;
        if (batch->sent < batch->size)
            break;
        give_batch(link, TAKE(link->sending));
    }
}

static void seal_batch(struct packet_link *link)
{
    struct batch *batch = TAKE(link->open_batch);
    struct error error;
    if (seal_close(link->sealing, batch->record, batch->size, &error) < 0) {
        give_batch(link, batch);
        break_later(link, &error);
        return;
    }
    batch->size += SEAL_OVERHEAD;
    link->queued_bytes += batch->size;
    list_append(&link->queue, &batch->node);
    send_queue(link);
}

uint8_t *packet_link_room(struct packet_link *link)
{
    if (!link->is_open || link->is_broken)
        return NULL;
    if (link->queued_bytes >= PACKET_LINK_QUEUE_BYTES) {
        link->is_room_wanted = true;
        return NULL;
    }
    if (!link->open_batch)
        link->open_batch = take_batch(link);
    return link->open_batch->record + SEAL_HEADER_SIZE + link->open_batch->size;
}

void packet_link_add(struct packet_link *link, size_t size)
{
    ASSERT(link->open_batch && size <= PACKET_ROOM);
    link->open_batch->size += size;
    if (link->open_batch->size >= PACKET_LINK_RECORD_SIZE)
        seal_batch(link);
}

void packet_link_flush(struct packet_link *link)
{
    if (!link->is_open)
        return;
    if (link->open_batch && link->open_batch->size > 0)
        seal_batch(link);
    update_interest(link);
}

static void tell_room(struct packet_link *link)
{
    if (!link->is_room_wanted || link->queued_bytes > PACKET_LINK_QUEUE_BYTES / 2)
        return;
    link->is_room_wanted = false;
    if (link->callbacks.on_room)
        link->callbacks.on_room(link, link->context);
}

/* --- receiving --- */

static int deliver(struct packet_link *link, struct error *error)
{
    size_t done = 0;
    while (is_alive(link) && link->received_size - done >= SEAL_HEADER_SIZE) {
        uint8_t *record = link->received + done;
        const size_t size = seal_content_size(record);
        if (size == 0 || size > PACKET_LINK_CONTENT_MAX)
            return error_set(error, ERROR_CORRUPT, "a record of %zu bytes", size);
        if (link->received_size - done < size + SEAL_OVERHEAD)
            break;
        if (seal_open(link->opening, record, size, error) < 0)
            return -1;
        done += size + SEAL_OVERHEAD;
        link->callbacks.on_record(link, record + SEAL_HEADER_SIZE, size, link->context);
    }
    if (is_alive(link) && done > 0) {
        memmove(link->received, link->received + done, link->received_size - done);
        link->received_size -= done;
    }
    return 0;
}

static void receive_end(struct packet_link *link)
{
    struct error error;
    error_set(&error, ERROR_CORRUPT, "connection closed inside a record");
    close_with(link, link->received_size > 0 ? &error : NULL);
}

static void receive(struct packet_link *link)
{
    struct error error;
    for (size_t total = 0; is_alive(link) && total < BYTES_PER_TURN;) {
        const size_t room = RECEIVE_SIZE - link->received_size;
        const ssize_t got = recv(link->fd, link->received + link->received_size, room, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got < 0) {
            error_set_errno(&error, errno, "connection");
            error.code = ERROR_UNAVAILABLE;
            close_with(link, &error);
            return;
        }
        if (got == 0) {
            receive_end(link);
            return;
        }
        link->received_size += (size_t)got;
        total += (size_t)got;
        if (deliver(link, &error) < 0) {
            close_with(link, &error);
            return;
        }
        if ((size_t)got < room) /* that was all */
            return;
    }
}

/* --- the connection --- */

static int start_sealing(struct packet_link *link, struct error *error)
{
    const struct seal_options sealing = {.tls = link->tls,
                                         .is_from_client = !link->is_server,
                                         .is_opening = false,
                                         .key_bytes = link->seal_key_bytes};
    const struct seal_options opening = {.tls = link->tls,
                                         .is_from_client = link->is_server,
                                         .is_opening = true,
                                         .key_bytes = link->seal_key_bytes};
    return seal_new(&sealing, &link->sealing, error) < 0
               ? -1
               : seal_new(&opening, &link->opening, error);
}

static void handshake(struct packet_link *link)
{
    struct error error;
    const int result = link_tls_handshake(link->tls, &link->keys, &link->wants_write, &error);
    if (result == 0)
        return;
    if (result < 0 || start_sealing(link, &error) < 0) {
        close_with(link, &error);
        return;
    }
    loop_timer_stop(link->deadline);
    link->received = malloc(RECEIVE_SIZE);
    ASSERT(link->received);
    link->is_open = true;
    link->callbacks.on_open(link, link->context);
}

static void on_ready(void *context, uint32_t events)
{
    struct packet_link *link = context;
    link->busy++;
    if (!link->is_open) {
        handshake(link);
    } else {
        if (events & (LOOP_WRITE | LOOP_HANGUP)) {
            send_queue(link);
            tell_room(link);
        }
        if (is_alive(link) && (events & (LOOP_READ | LOOP_HANGUP)))
            receive(link);
    }
    update_interest(link);
    leave(link);
}

static void on_soon(void *context)
{
    struct packet_link *link = context;
    link->busy++;
    close_with(link, &link->broken);
    leave(link);
}

static void on_deadline(void *context)
{
    struct packet_link *link = context;
    struct error error;
    link->busy++;
    error_set(&error, ERROR_UNAVAILABLE, "TLS handshake took too long");
    close_with(link, &error);
    leave(link);
}

static int set_up(struct packet_link *link, const struct packet_link_options *options, int fd,
                  struct error *error)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "make a descriptor non-blocking");
    /* Only TCP has them; a socketpair does as well without. */
    const int on = 1, not_sent = NOT_SENT_BYTES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &not_sent, sizeof(not_sent));
    if (!options->is_server) {
        memcpy(link->keys.key, options->key, LINK_KEY_SIZE);
        if (text_copy(text_of(options->identity), link->keys.identity, sizeof(link->keys.identity),
                      error) < 0)
            return error_wrap(error, "identity of a link");
    }
    /* A client speaks first, a server waits. */
    if (link_tls_new(options->is_server, fd, &link->keys, &link->tls, error) < 0)
        return -1;
    return loop_watch_open(link->loop, fd, options->is_server ? LOOP_READ : LOOP_WRITE, on_ready,
                           link, &link->watch, error);
}

int packet_link_open_take(const struct packet_link_options *options, int fd,
                          struct packet_link **out_link, struct error *error)
{
    ASSERT(options->callbacks.on_open && options->callbacks.on_record &&
           options->callbacks.on_close);
    ASSERT(options->is_server ? options->find_key != NULL : options->key && options->identity);
    struct packet_link *link = calloc(1, sizeof(*link));
    ASSERT(link);
    link->loop = options->loop;
    link->fd = -1;
    link->is_server = options->is_server;
    link->wants_write = !options->is_server;
    link->seal_key_bytes = options->seal_key_bytes;
    link->callbacks = options->callbacks;
    link->context = options->context;
    link->keys.find_key = options->find_key;
    link->keys.context = &link->context;
    list_init(&link->queue);
    list_init(&link->spare);
    link->deadline = loop_timer_new(link->loop, on_deadline, link);
    link->soon = loop_timer_new(link->loop, on_soon, link);
    if (set_up(link, options, fd, error) < 0) {
        release(link);
        return -1;
    }
    link->fd = fd;
    loop_timer_start(link->deadline, options->handshake_timeout_ms ? options->handshake_timeout_ms
                                                                   : HANDSHAKE_MS_DEFAULT);
    *out_link = link;
    return 0;
}

void packet_link_free(struct packet_link *link)
{
    if (!link)
        return;
    link->is_freed = true;
    if (link->busy == 0)
        release(link);
}

void packet_link_set_owner(struct packet_link *link, const struct packet_link_callbacks *callbacks,
                           void *context)
{
    ASSERT(callbacks->on_record && callbacks->on_close);
    link->callbacks = *callbacks;
    link->context = context;
}

bool packet_link_is_open(const struct packet_link *link)
{
    return link->is_open;
}

size_t packet_link_queued_bytes(const struct packet_link *link)
{
    return link->queued_bytes;
}
