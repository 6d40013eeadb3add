#include "base/assert.h"
#include "net/link_out_internal.h"
#include "wire/frame.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    WRITE_SIZE_MAX = 1 << 20, /* by one call of TLS */
    DIRECT_PARTS_MAX = 3,     /* of a frame that is sent from where it lies */
    SPARE_MAX = 8,            /* chunks kept for the next frames */
    SPARE_CAPACITY_MAX = 256 << 10,
};

struct link_chunk {
    struct list_node node;
    size_t size, capacity; /* of the content: whole frames, or the farewell */
    size_t sent;           /* as it leaves, from first_byte */
    bool is_closed;        /* it is a record: nothing more is added */
    uint8_t record[];      /* header, content, room for the tag */
};

void link_out_init(struct link_out *out, SSL *ssl, const struct link_tls_keys *keys)
{
    *out = (struct link_out){.fd = -1, .ssl = ssl, .keys = keys};
    list_init(&out->queue);
    list_init(&out->spare);
}

static void free_chunks(struct list *list)
{
    for (struct list_node *node; (node = list_take_first(list));)
        free(LIST_ITEM(node, struct link_chunk, node));
}

void link_out_done(struct link_out *out)
{
    free(out->sending);
    free_chunks(&out->queue);
    free_chunks(&out->spare);
    seal_free(out->seal);
}

void link_out_start_take(struct link_out *out, enum link_form form, int fd, struct seal *seal)
{
    ASSERT((form == LINK_FORM_SEALED) == (seal != NULL));
    out->form = form;
    out->fd = fd;
    out->seal = seal;
    out->is_started = true;
}

bool link_out_is_empty(const struct link_out *out)
{
    return !out->sending && list_is_empty(&out->queue);
}

/* --- chunks --- */

/* The last one given back, where it fits: memory of this size is otherwise mapped anew each time.
 */
static struct link_chunk *take_spare(struct link_out *out, size_t capacity)
{
    if (list_is_empty(&out->spare))
        return NULL;
    struct link_chunk *chunk = LIST_ITEM(out->spare.head.next, struct link_chunk, node);
    if (chunk->capacity < capacity)
        return NULL;
    list_remove(&chunk->node);
    out->spare_count--;
    return chunk;
}

static void give_chunk(struct link_out *out, struct link_chunk *chunk)
{
    if (!out->is_bulk || out->spare_count == SPARE_MAX || chunk->capacity <= LINK_GATHER_SIZE ||
        chunk->capacity > SPARE_CAPACITY_MAX) {
        free(chunk);
        return;
    }
    out->spare_count++;
    list_prepend(&out->spare, &chunk->node); /* the one still in the cache */
}

static struct link_chunk *append_chunk(struct link_out *out, size_t capacity, struct error *error)
{
    struct link_chunk *chunk = take_spare(out, capacity);
    if (chunk)
        capacity = chunk->capacity;
    else
        chunk = malloc(sizeof(*chunk) + capacity + SEAL_OVERHEAD);
    if (!chunk) {
        error_set(error, ERROR_EXHAUSTED, "no memory for a frame of %zu bytes", capacity);
        return NULL;
    }
    *chunk = (struct link_chunk){.capacity = capacity};
    list_append(&out->queue, &chunk->node);
    return chunk;
}

static void header_write(uint8_t *at, size_t content_size)
{
    for (size_t i = 0; i < SEAL_HEADER_SIZE; i++)
        at[i] = (uint8_t)(content_size >> 8 * i);
}

/* A cipher that failed inside a record has no way on. */
static int break_off(struct link_out *out, const struct error *error)
{
    out->is_broken = true;
    out->broken = *error;
    return -1;
}

static int close_chunk(struct link_out *out, struct link_chunk *chunk, struct error *error)
{
    if (chunk->is_closed || out->form == LINK_FORM_TLS)
        return 0;
    if (!out->seal)
        header_write(chunk->record, chunk->size);
    else if (seal_close(out->seal, chunk->record, chunk->size, error) < 0)
        return break_off(out, error);
    chunk->is_closed = true;
    return 0;
}

static int close_queue(struct link_out *out, struct error *error)
{
    LIST_EACH(&out->queue, node)
    if (close_chunk(out, LIST_ITEM(node, struct link_chunk, node), error) < 0)
        return -1;
    return 0;
}

/* --- frames --- */

static void append_copied(struct link_chunk *chunk, struct text part)
{
    if (part.size > 0)
        memcpy(chunk->record + SEAL_HEADER_SIZE + chunk->size, part.data, part.size);
    chunk->size += part.size;
}

static int add_copied(struct link_out *out, struct text header, const struct text *parts,
                      size_t part_count, size_t size, struct error *error)
{
    struct link_chunk *chunk = NULL;
    if (!list_is_empty(&out->queue)) {
        chunk = LIST_ITEM(out->queue.head.previous, struct link_chunk, node);
        if (chunk->is_closed || chunk->capacity - chunk->size < size)
            chunk = NULL;
    }
    if (!chunk)
        chunk = append_chunk(out, size > LINK_GATHER_SIZE ? size : LINK_GATHER_SIZE, error);
    if (!chunk)
        return -1;
    append_copied(chunk, header);
    for (size_t i = 0; i < part_count; i++)
        append_copied(chunk, parts[i]);
    return 0;
}

static int seal_frame(struct seal *seal, uint8_t *record, struct text header,
                      const struct text *parts, size_t part_count, struct error *error)
{
    size_t size = header.size;
    for (size_t i = 0; i < part_count; i++)
        size += parts[i].size;
    if (seal_begin(seal, record, size, error) < 0 || seal_add(seal, record, header, error) < 0)
        return -1;
    for (size_t i = 0; i < part_count; i++)
        if (seal_add(seal, record, parts[i], error) < 0)
            return -1;
    return seal_end(seal, record, error);
}

/* From the caller's memory into the record, by the cipher alone. */
static int add_sealed(struct link_out *out, struct text header, const struct text *parts,
                      size_t part_count, size_t size, struct error *error)
{
    if (close_queue(out, error) < 0)
        return -1;
    struct link_chunk *chunk = append_chunk(out, size, error);
    if (!chunk)
        return -1;
    if (seal_frame(out->seal, chunk->record, header, parts, part_count, error) < 0) {
        list_remove(&chunk->node);
        free(chunk);
        return break_off(out, error);
    }
    chunk->size = size;
    chunk->is_closed = true;
    return 0;
}

/* --- sending --- */

static size_t first_byte(const struct link_out *out)
{
    return out->form == LINK_FORM_TLS ? SEAL_HEADER_SIZE : 0;
}

/* As it leaves. */
static size_t whole_size(const struct link_out *out, const struct link_chunk *chunk)
{
    switch (out->form) {
    case LINK_FORM_TLS:
        return chunk->size;
    case LINK_FORM_SEALED:
        return chunk->size + SEAL_OVERHEAD;
    case LINK_FORM_PLAIN:
        break;
    }
    return chunk->size + SEAL_HEADER_SIZE;
}

/* How many bytes of frames are gone with the first `sent` bytes. */
static size_t frame_bytes(const struct link_out *out, const struct link_chunk *chunk, size_t sent)
{
    if (out->is_farewell_queued)
        return 0;
    const size_t before = out->form == LINK_FORM_TLS ? 0 : SEAL_HEADER_SIZE;
    const size_t done = sent > before ? sent - before : 0;
    return done < chunk->size ? done : chunk->size;
}

static void advance(struct link_out *out, struct link_chunk *chunk, size_t size)
{
    const size_t gone =
        frame_bytes(out, chunk, chunk->sent + size) - frame_bytes(out, chunk, chunk->sent);
    chunk->sent += size;
    out->queued_bytes -= gone;
    out->sent_bytes += gone;
}

/* The number of bytes that left, 0 when the kernel takes no more now. */
static ssize_t write_chunk(struct link_out *out, struct link_chunk *chunk, struct error *error)
{
    const uint8_t *bytes = chunk->record + first_byte(out) + chunk->sent;
    const size_t size = whole_size(out, chunk) - chunk->sent;
    errno = 0;
    if (out->form != LINK_FORM_TLS) {
        const ssize_t sent = send(out->fd, bytes, size, MSG_NOSIGNAL);
        if (sent >= 0 || errno == EAGAIN || errno == EINTR)
            return sent >= 0 ? sent : 0;
        error_set_errno(error, errno, "connection");
        error->code = ERROR_UNAVAILABLE;
        return -1;
    }
    ERR_clear_error();
    const int sent =
        SSL_write(out->ssl, bytes, (int)(size < WRITE_SIZE_MAX ? size : WRITE_SIZE_MAX));
    if (sent > 0)
        return sent;
    const int kind = SSL_get_error(out->ssl, sent);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return 0;
    return link_tls_error(out->ssl, sent, out->keys, error);
}

int link_out_send(struct link_out *out, struct error *error)
{
    if (out->is_broken) {
        *error = out->broken;
        return -1;
    }
    while (out->budget > 0) {
        if (!out->sending && !list_is_empty(&out->queue))
            out->sending = LIST_ITEM(list_take_first(&out->queue), struct link_chunk, node);
        struct link_chunk *chunk = out->sending;
        if (!chunk)
            return 0;
        if (close_chunk(out, chunk, error) < 0)
            return -1;
        const ssize_t sent = write_chunk(out, chunk, error);
        if (sent <= 0) {
            out->budget = 0; /* the kernel takes no more */
            return (int)sent;
        }
        advance(out, chunk, (size_t)sent);
        out->budget -= (size_t)sent < out->budget ? (size_t)sent : out->budget;
        if (chunk->sent == whole_size(out, chunk)) {
            out->sending = NULL;
            give_chunk(out, chunk);
        }
    }
    return 0;
}

/* --- frames that leave at once --- */

/* As far as the budget goes. */
static void send_what_waits(struct link_out *out)
{
    struct error error;
    if (!out->is_broken && link_out_send(out, &error) < 0)
        break_off(out, &error); /* the loop tells of it */
}

/* From the caller's memory to the kernel; how many bytes of the record it took. */
static size_t send_parts(struct link_out *out, uint8_t *head, size_t head_size,
                         const struct text *parts, size_t part_count)
{
    struct iovec pieces[1 + DIRECT_PARTS_MAX] = {{head, head_size}};
    for (size_t i = 0; i < part_count; i++) {
        const union {
            const char *data;
            void *unchanged; /* the kernel only reads, though its type does not say so */
        } part = {parts[i].data};
        pieces[1 + i] = (struct iovec){part.unchanged, parts[i].size};
    }
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 1 + part_count};
    const ssize_t sent = sendmsg(out->fd, &message, MSG_NOSIGNAL);
    return sent > 0 ? (size_t)sent : 0; /* an error comes again, and is told then */
}

/* Without encryption and with nothing before it: only what the kernel does not take is copied. */
static int send_plain(struct link_out *out, struct text header, const struct text *parts,
                      size_t part_count, size_t size, struct error *error)
{
    uint8_t head[SEAL_HEADER_SIZE + FRAME_HEADER_SIZE];
    header_write(head, size);
    memcpy(head + SEAL_HEADER_SIZE, header.data, FRAME_HEADER_SIZE);
    const size_t sent = send_parts(out, head, sizeof(head), parts, part_count);
    if (sent == SEAL_HEADER_SIZE + size) {
        out->sent_bytes += size;
        out->budget -= size < out->budget ? size : out->budget;
        return 0;
    }
    if (add_copied(out, header, parts, part_count, size, error) < 0)
        return -1;
    out->queued_bytes += size;
    struct link_chunk *chunk = LIST_ITEM(list_take_first(&out->queue), struct link_chunk, node);
    out->sending = chunk;
    chunk->is_closed = true;
    header_write(chunk->record, size);
    advance(out, chunk, sent);
    out->budget = 0; /* the kernel takes no more */
    return 0;
}

int link_out_add(struct link_out *out, uint16_t type, const struct text *parts, size_t part_count,
                 size_t payload_size, struct error *error)
{
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_encode((uint32_t)payload_size, type, bytes);
    const struct text header = {(const char *)bytes, sizeof(bytes)};
    const size_t size = FRAME_HEADER_SIZE + payload_size;
    const bool is_large = out->is_started && out->form != LINK_FORM_TLS && size >= LINK_GATHER_SIZE;
    if (is_large && out->form == LINK_FORM_PLAIN && out->budget > 0 &&
        part_count <= DIRECT_PARTS_MAX) {
        send_what_waits(out);
        if (link_out_is_empty(out))
            return send_plain(out, header, parts, part_count, size, error);
    }
    if ((is_large && out->seal ? add_sealed : add_copied)(out, header, parts, part_count, size,
                                                          error) < 0)
        return -1;
    out->queued_bytes += size;
    if (is_large)
        send_what_waits(out);
    return 0;
}

int link_out_farewell(struct link_out *out, struct error *error)
{
    if (out->form == LINK_FORM_TLS) {
        ERR_clear_error();
        const int result = SSL_shutdown(out->ssl);
        return result < 0 && SSL_get_error(out->ssl, result) == SSL_ERROR_WANT_WRITE ? 0 : 1;
    }
    if (!out->is_farewell_queued) {
        struct link_chunk *chunk = append_chunk(out, LINK_FAREWELL_SIZE, error);
        if (!chunk)
            return -1;
        chunk->record[SEAL_HEADER_SIZE] = 0;
        chunk->size = LINK_FAREWELL_SIZE;
        out->is_farewell_queued = true;
    }
    out->budget = SIZE_MAX;
    if (link_out_send(out, error) < 0)
        return -1;
    return link_out_is_empty(out);
}
