#include "base/assert.h"
#include "net/link_in_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    TLS_RECORD_SIZE = 16384,    /* the most TLS gives by one read */
    READ_SIZE_MIN = 16384,      /* of records, by one call of the kernel */
    READ_SIZE_MAX = 256 * 1024, /* the most by one call, and how memory grows */
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

size_t link_in_left(const struct link_in *in)
{
    return in->received.size - in->start;
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
    if (link_in_left(in) < SEAL_HEADER_SIZE)
        return 0;
    const size_t size = seal_content_size(in->received.data + in->start);
    if (size == 0 || size > content_max(in))
        return error_set(error, ERROR_CORRUPT, "a record of %zu bytes", size);
    *out_content_size = size;
    return 0;
}

static enum link_in_result open_record(struct link_in *in, struct error *error)
{
    size_t content_size;
    if (record_size(in, &content_size, error) < 0)
        return LINK_IN_FAILED;
    uint8_t *record = in->received.data + in->start;
    if (content_size == 0 || link_in_left(in) < SEAL_HEADER_SIZE + content_size + tag_size(in))
        return LINK_IN_WAIT;
    if (in->seal && seal_open(in->seal, record, content_size, error) < 0)
        return LINK_IN_FAILED;
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
        result = decode(in, link_in_left(in), out_frame, error);
    } else {
        if (in->open_size == 0)
            result = open_record(in, error);
        if (result == LINK_IN_MORE)
            return decode_opened(in, out_frame, error);
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

static enum link_in_result read_records(struct link_in *in, uint8_t *room, size_t room_size,
                                        size_t *out_size, struct error *error)
{
    const ssize_t got = recv(in->fd, room, room_size, 0);
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
    if (record_size(in, &content_size, &ignored) == 0 && content_size > 0)
        size = content_size + tag_size(in) + 2UL * SEAL_HEADER_SIZE - link_in_left(in);
    if (size < READ_SIZE_MIN)
        size = READ_SIZE_MIN;
    return size < READ_SIZE_MAX ? size : READ_SIZE_MAX;
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
        buffer_advance(&in->received, *out_size);
    return result;
}
