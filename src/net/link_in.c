#include "base/assert.h"
#include "net/link_in_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    TLS_RECORD_SIZE = 16384,    /* the most TLS gives by one read */
    READ_SIZE_MIN = 16384,      /* of records, by one call of the kernel */
    READ_SIZE_MAX = 256 * 1024, /* the most by one call, and how memory grows */
    WAKE_SIZE_MAX = 1024 * 1024,
    WAKE_PARTS = 8, /* of what is on its way: one is done while the next comes */
    WAKE_NS = 500 * 1000,
    KEPT_CAPACITY = 256 * 1024, /* a larger buffer is given back when empty */
};

static size_t content_max(const struct link_in *in)
{
    const size_t frame_max = FRAME_HEADER_SIZE + (size_t)in->payload_max;
    return frame_max > LINK_GATHER_SIZE ? frame_max : LINK_GATHER_SIZE;
}

static size_t tag_size(const struct link_in *in)
{
    return in->seal ? SEAL_TAG_SIZE : 0;
}

void link_in_init(struct link_in *in, SSL *ssl, const struct link_tls_keys *keys,
                  uint32_t payload_max)
{
    *in = (struct link_in){.fd = -1, .ssl = ssl, .keys = keys, .payload_max = payload_max};
    buffer_init(&in->received, content_max(in) + SEAL_OVERHEAD + READ_SIZE_MAX);
}

void link_in_done(struct link_in *in)
{
    buffer_done(&in->received);
    seal_free(in->seal);
}

void link_in_start_take(struct link_in *in, enum link_form form, int fd, struct seal *seal)
{
    ASSERT((form == LINK_FORM_SEALED) == (seal != NULL));
    in->form = form;
    in->fd = fd;
    in->seal = seal;
}

static size_t left(const struct link_in *in)
{
    return in->received.size - in->start;
}

size_t link_in_left(const struct link_in *in)
{
    return left(in) + (in->place.body ? LINK_PLACED_HEAD_SIZE + in->place.done : 0);
}

bool link_in_has_hidden(const struct link_in *in)
{
    return in->form == LINK_FORM_TLS && SSL_has_pending(in->ssl);
}

/* Moves what is left to the front, once no frame that was handed out lies there. */
static void compact(struct link_in *in)
{
    struct buffer *received = &in->received;
    buffer_consume(received, in->start);
    in->start = 0;
    if (received->size == 0 && received->capacity > KEPT_CAPACITY) {
        const size_t size_max = received->size_max;
        buffer_done(received);
        buffer_init(received, size_max);
    }
}

/* --- frames --- */

static enum link_in_result decode(struct link_in *in, size_t size, struct frame *out_frame,
                                  struct error *error)
{
    const struct text bytes = {(const char *)in->received.data + in->start, size};
    size_t frame_size;
    const int found = frame_decode(bytes, in->payload_max, out_frame, &frame_size, error);
    if (found <= 0)
        return found < 0 ? LINK_IN_FAILED : LINK_IN_WAIT;
    in->start += frame_size;
    in->received_bytes += frame_size;
    return LINK_IN_MORE;
}

static enum link_in_result decode_opened(struct link_in *in, struct frame *out_frame,
                                         struct error *error)
{
    const size_t start = in->start;
    const enum link_in_result found = decode(in, in->open_size, out_frame, error);
    if (found == LINK_IN_WAIT) {
        error_set(error, ERROR_CORRUPT, "a record ends inside a frame");
        return LINK_IN_FAILED;
    }
    in->open_size -= in->start - start;
    if (in->open_size == 0)
        in->start += tag_size(in);
    return found;
}

/* The size of the record at the start, 0 when its header is not all there. */
static int record_size(const struct link_in *in, size_t *out_content_size, struct error *error)
{
    *out_content_size = 0;
    if (left(in) < SEAL_HEADER_SIZE)
        return 0;
    const size_t size = seal_content_size(in->received.data + in->start);
    if (size == 0 || size > content_max(in))
        return error_set(error, ERROR_CORRUPT, "a record of %zu bytes", size);
    *out_content_size = size;
    return 0;
}

/* --- frames with a place of their own --- */

static bool may_have_place(const struct link_in *in, size_t content_size)
{
    return in->find_place && content_size >= LINK_GATHER_SIZE;
}

/* Whether the record whose content begins with `head` is one frame that has a place. */
static bool find_place(struct link_in *in, const uint8_t head[LINK_PLACED_HEAD_SIZE],
                       size_t content_size)
{
    struct error ignored; /* the frame is told of when it is proved */
    struct link_place place = {.size = content_size - LINK_PLACED_HEAD_SIZE};
    uint32_t payload_size;
    if (frame_header_decode(head, in->payload_max, &place.type, &payload_size, &ignored) < 0 ||
        payload_size != LINK_HEAD_SIZE + place.size)
        return false;
    place.body = in->find_place(in->context, place.type, place.size);
    memcpy(place.head, head + FRAME_HEADER_SIZE, LINK_HEAD_SIZE);
    if (place.body)
        in->place = place;
    return place.body != NULL;
}

/* The content goes to its place, or stays where it lies. */
static int open_content(struct link_in *in, uint8_t *content, size_t content_size,
                        struct error *error)
{
    if (!may_have_place(in, content_size))
        return seal_open_part(in->seal, content, content_size, content, error);
    if (seal_open_part(in->seal, content, LINK_PLACED_HEAD_SIZE, content, error) < 0)
        return -1;
    uint8_t *rest = content + LINK_PLACED_HEAD_SIZE;
    uint8_t *to = find_place(in, content, content_size) ? in->place.body : rest;
    return seal_open_part(in->seal, rest, content_size - LINK_PLACED_HEAD_SIZE, to, error);
}

static int open_sealed(struct link_in *in, uint8_t *record, size_t content_size,
                       struct error *error)
{
    uint8_t *content = record + SEAL_HEADER_SIZE;
    if (seal_open_begin(in->seal, record, error) < 0 ||
        open_content(in, content, content_size, error) < 0 ||
        seal_open_end(in->seal, content + content_size, error) < 0) {
        in->place.body = NULL; /* whatever lies there is nobody's */
        return -1;
    }
    if (in->place.body) {
        in->place.done = in->place.size;
        in->start += content_size + SEAL_OVERHEAD;
    }
    return 0;
}

/* Without encryption: what has come of the frame goes to its place, what comes is read there. */
static void place_plain(struct link_in *in, const uint8_t *record, size_t content_size)
{
    const size_t before = SEAL_HEADER_SIZE + LINK_PLACED_HEAD_SIZE;
    if (left(in) < before || !find_place(in, record + SEAL_HEADER_SIZE, content_size))
        return;
    const size_t there = left(in) - before;
    in->place.done = there < in->place.size ? there : in->place.size;
    memcpy(in->place.body, record + before, in->place.done);
    in->start += before + in->place.done;
}

static enum link_in_result take_placed(struct link_in *in, struct frame *out_frame)
{
    if (in->place.done < in->place.size)
        return LINK_IN_WAIT;
    out_frame->type = in->place.type;
    out_frame->payload = (struct text){(const char *)in->place.head, LINK_HEAD_SIZE};
    in->received_bytes += LINK_PLACED_HEAD_SIZE + in->place.size;
    return LINK_IN_PLACED;
}

struct text link_in_take_body(struct link_in *in)
{
    const struct text body = {(const char *)in->place.body, in->place.size};
    in->place.body = NULL;
    return body;
}

/* --- records --- */

static enum link_in_result open_record(struct link_in *in, struct error *error)
{
    size_t content_size;
    if (record_size(in, &content_size, error) < 0)
        return LINK_IN_FAILED;
    uint8_t *record = in->received.data + in->start;
    const size_t there = left(in);
    if (!in->seal && may_have_place(in, content_size))
        place_plain(in, record, content_size);
    if (in->place.body)
        return LINK_IN_MORE;
    if (content_size == 0 || there < SEAL_HEADER_SIZE + content_size + tag_size(in))
        return LINK_IN_WAIT;
    if (in->seal && open_sealed(in, record, content_size, error) < 0)
        return LINK_IN_FAILED;
    if (in->place.body)
        return LINK_IN_MORE;
    if (content_size == LINK_FAREWELL_SIZE && record[SEAL_HEADER_SIZE] == 0)
        return LINK_IN_END;
    in->start += SEAL_HEADER_SIZE;
    in->open_size = content_size;
    return LINK_IN_MORE;
}

enum link_in_result link_in_frame(struct link_in *in, struct frame *out_frame, struct error *error)
{
    enum link_in_result result = LINK_IN_MORE;
    if (in->form == LINK_FORM_TLS) {
        result = decode(in, left(in), out_frame, error);
    } else {
        if (in->open_size == 0 && !in->place.body)
            result = open_record(in, error);
        if (result == LINK_IN_MORE)
            result =
                in->place.body ? take_placed(in, out_frame) : decode_opened(in, out_frame, error);
    }
    if (result == LINK_IN_WAIT)
        compact(in);
    return result;
}

/* --- bytes --- */

static enum link_in_result read_tls(struct link_in *in, uint8_t *room, size_t *out_size,
                                    struct error *error)
{
    ERR_clear_error();
    errno = 0;
    const int got = SSL_read(in->ssl, room, TLS_RECORD_SIZE);
    if (got > 0) {
        *out_size = (size_t)got;
        return LINK_IN_MORE;
    }
    const int kind = SSL_get_error(in->ssl, got);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
        return LINK_IN_WAIT;
    if (kind == SSL_ERROR_ZERO_RETURN)
        return LINK_IN_END;
    link_tls_error(in->ssl, got, in->keys, error);
    return LINK_IN_FAILED;
}

/* Into the place of the frame at hand as far as it goes, then into the room. */
static ssize_t receive(struct link_in *in, uint8_t *room, size_t room_size)
{
    struct link_place *place = &in->place;
    if (!place->body)
        return recv(in->fd, room, room_size, 0);
    struct iovec parts[2] = {{place->body + place->done, place->size - place->done},
                             {room, room_size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return recvmsg(in->fd, &message, 0);
}

static enum link_in_result read_records(struct link_in *in, uint8_t *room, size_t room_size,
                                        size_t *out_size, struct error *error)
{
    const ssize_t got = receive(in, room, room_size);
    if (got > 0) {
        *out_size = (size_t)got;
        return LINK_IN_MORE;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return LINK_IN_WAIT;
    if (got == 0)
        error_set(error, ERROR_UNAVAILABLE, "connection closed without a farewell");
    else
        error_set_errno(error, errno, "connection");
    error->code = ERROR_UNAVAILABLE;
    return LINK_IN_FAILED;
}

/* The rest of the record and the next one's header: then hardly a byte has to be moved. */
static size_t read_size(const struct link_in *in)
{
    struct error ignored; /* link_in_frame has told of it */
    size_t content_size, size = READ_SIZE_MIN;
    if (in->place.body)
        return SEAL_HEADER_SIZE + LINK_PLACED_HEAD_SIZE;
    if (record_size(in, &content_size, &ignored) == 0 && content_size > 0)
        size = content_size + tag_size(in) + 2UL * SEAL_HEADER_SIZE - left(in);
    if (size < READ_SIZE_MIN)
        size = READ_SIZE_MIN;
    return size < READ_SIZE_MAX ? size : READ_SIZE_MAX;
}

void link_in_expect(struct link_in *in, size_t bytes)
{
    const size_t here = link_in_left(in);
    in->expected_bytes = bytes > here ? bytes - here : 0;
}

/* A part of what is on its way, but no more than comes in WAKE_NS. */
static size_t wake_size(const struct link_in *in, int64_t elapsed_ns)
{
    const double bytes_per_ns = (double)in->waited_bytes / (double)(elapsed_ns + 1);
    const double soon = bytes_per_ns * WAKE_NS;
    size_t size = in->expected_bytes / WAKE_PARTS;
    if (size > WAKE_SIZE_MAX)
        size = WAKE_SIZE_MAX;
    return soon < (double)size ? (size_t)soon : size;
}

bool link_in_wait(struct link_in *in, const struct clock *clock)
{
    size_t size = 1;
    if (in->form == LINK_FORM_TLS)
        return false;
    if (in->expected_bytes >= READ_SIZE_MIN) {
        const int64_t now_ns = clock_monotonic_ns(clock);
        size = wake_size(in, now_ns - in->waited_ns);
        in->waited_ns = now_ns;
        in->waited_bytes = 0;
    }
    const int wanted = size < READ_SIZE_MIN ? 1 : (int)size;
    if (wanted != in->wake_size &&
        setsockopt(in->fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted)) == 0)
        in->wake_size = wanted;
    return in->wake_size > 1;
}

static void advance(struct link_in *in, size_t size)
{
    const size_t wanted = in->place.body ? in->place.size - in->place.done : 0;
    const size_t placed = size < wanted ? size : wanted;
    in->place.done += placed;
    in->waited_bytes += size;
    in->expected_bytes -= size < in->expected_bytes ? size : in->expected_bytes;
    buffer_advance(&in->received, size - placed);
}

enum link_in_result link_in_read(struct link_in *in, size_t *out_size, struct error *error)
{
    ASSERT(in->start == 0 && in->open_size == 0); /* link_in_frame has found no more */
    const size_t size = in->form == LINK_FORM_TLS ? TLS_RECORD_SIZE : read_size(in);
    uint8_t *room = buffer_reserve(&in->received, size);
    if (!room) {
        error_set(error, ERROR_EXHAUSTED, "no memory for a frame");
        return LINK_IN_FAILED;
    }
    const enum link_in_result result = in->form == LINK_FORM_TLS
                                           ? read_tls(in, room, out_size, error)
                                           : read_records(in, room, size, out_size, error);
    if (result == LINK_IN_MORE)
        advance(in, *out_size);
    return result;
}
