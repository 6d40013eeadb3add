#include "net/link.h"

#include "base/assert.h"
#include "net/link_in_internal.h"
#include "net/link_out_internal.h"
#include "net/link_tls_internal.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PAYLOAD_MAX_DEFAULT = 1 << 20,
    HANDSHAKE_MS_DEFAULT = 10000,
    LOOK_AGAIN_MS = 1,            /* where more was expected than has come */
    FINISH_MS = 5000,             /* for the peer to take leave after we did */
    BYTES_PER_TURN = 1024 * 1024, /* then the loop's other descriptors get theirs */
    SEAL_KEY_RECORDS = 1 << 24,   /* far below what a nonce could count */
};

/* What both ends may agree on in the handshake, beside frames in TLS records. */
static const char PROTOCOL_SEALED[] = "souk-sealed/1";
static const char PROTOCOL_BENCH_PLAIN[] = "souk-bench-plain/1";

enum link_state {
    LINK_HANDSHAKE,
    LINK_OPEN,
    LINK_FINISHING, /* sends what is queued and its farewell, then waits for the peer's */
    LINK_CLOSED,
};

struct link {
    struct loop *loop;
    struct loop_watch *watch;
    struct loop_timer *deadline; /* of the handshake, later of finishing */
    struct loop_timer *soon;     /* goes on with bytes that are already here */
    int fd;
    SSL *ssl;
    struct link_tls_keys keys;
    bool is_server;
    bool is_bench_plain;
    enum link_state state;
    bool is_finish_asked;
    bool is_farewell_sent;
    bool is_paused;
    bool handshake_wants_write;
    bool is_above_low;
    int busy; /* > 0 inside our own functions: a free waits until they return */
    bool is_freed;

    uint32_t payload_max;
    size_t queue_max_bytes, queue_low_bytes;
    int64_t seal_key_bytes;
    uint64_t seal_key_records;
    struct link_out out;
    struct link_in in;

    struct link_callbacks callbacks;
    void *context;
};

static void release(struct link *link)
{
    loop_watch_free(link->watch);
    loop_timer_free(link->deadline);
    loop_timer_free(link->soon);
    link_out_done(&link->out);
    link_in_done(&link->in);
    SSL_free(link->ssl);
    if (link->fd >= 0)
        close(link->fd);
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
    return !link_out_is_empty(&link->out) || link->is_above_low /* on_drained is due */ ||
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

static void *find_place(void *context, uint16_t type, size_t size)
{
    struct link *link = context;
    /* While it finishes frames are not handed out. */
    return link->state == LINK_OPEN ? link->callbacks.find_place(link, type, size, link->context)
                                    : NULL;
}

static void receive_end(struct link *link)
{
    struct error error;
    const size_t left = link->in.form == LINK_FORM_TLS ? link_in_left(&link->in) : 0;
    const struct text bytes = {(const char *)link->in.received.data, left};
    if (link->state != LINK_FINISHING && frame_decode_end(bytes, &error) < 0)
        close_with(link, &error);
    else
        close_with(link, NULL);
}

static void deliver_frames(struct link *link)
{
    struct error error;
    struct frame frame;
    while (is_alive(link) && !link->is_paused) {
        switch (link_in_frame(&link->in, &frame, &error)) {
        case LINK_IN_FAILED:
            close_with(link, &error);
            return;
        case LINK_IN_WAIT:
            return;
        case LINK_IN_END:
            receive_end(link);
            return;
        case LINK_IN_MORE:
            if (link->state == LINK_OPEN)
                link->callbacks.on_frame(link, frame.type, frame.payload, link->context);
            break;
        case LINK_IN_PLACED: {
            const struct text body = link_in_take_body(&link->in);
            if (link->state == LINK_OPEN)
                link->callbacks.on_placed(link, frame.type, frame.payload, body, link->context);
            break;
        }
        }
    }
}

static void receive_failed(struct link *link, struct error *error)
{
    if (link_in_left(&link->in) > 0)
        error_wrap(error, "inside a frame");
    /* After our farewell all we had to say was said, and nothing more was asked of the peer. */
    close_with(link, link->is_farewell_sent ? NULL : error);
}

static void wait_for_more(struct link *link)
{
    if (is_alive(link) && link_in_wait(&link->in, loop_clock(link->loop)))
        loop_timer_start(link->soon, LOOK_AGAIN_MS);
}

static void receive(struct link *link)
{
    size_t budget = BYTES_PER_TURN;
    deliver_frames(link);
    while (is_alive(link) && !link->is_paused) {
        struct error error;
        size_t got = 0;
        switch (link_in_read(&link->in, &got, &error)) {
        case LINK_IN_FAILED:
            receive_failed(link, &error);
            return;
        case LINK_IN_WAIT:
            wait_for_more(link);
            return;
        case LINK_IN_END:
            receive_end(link);
            return;
        case LINK_IN_MORE:
        case LINK_IN_PLACED:
            break;
        }
        deliver_frames(link);
        if (got >= budget) {
            wait_for_more(link);
            if (is_alive(link) && link_in_has_hidden(&link->in))
                loop_timer_start(link->soon, 0);
            return;
        }
        budget -= got;
    }
}

/* --- sending --- */

static void send_queue(struct link *link)
{
    struct error error;
    if (link_out_send(&link->out, &error) < 0) {
        close_with(link, &error);
        return;
    }
    if (link->is_above_low && link->out.queued_bytes <= link->queue_low_bytes) {
        link->is_above_low = false;
        if (link->callbacks.on_drained && link->state == LINK_OPEN)
            link->callbacks.on_drained(link, link->context);
    }
}

static void send_farewell_when_due(struct link *link)
{
    if (!is_alive(link) || link->state != LINK_FINISHING || link->is_farewell_sent ||
        (!link_out_is_empty(&link->out) && !link->out.is_farewell_queued))
        return;
    struct error error;
    const int result = link_out_farewell(&link->out, &error);
    if (result == 0)
        return;
    if (result < 0) {
        close_with(link, &error);
        return;
    }
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
    if (size > link->queue_max_bytes - link->out.queued_bytes)
        return error_set(error, ERROR_EXHAUSTED, "link has %zu bytes waiting to be sent",
                         link->out.queued_bytes);
    if (link_out_add(&link->out, type, parts, part_count, payload_size, error) < 0)
        return -1;
    link->is_above_low = link->is_above_low || link->out.queued_bytes > link->queue_low_bytes;
    /* The loop sends what is small: what is sent together leaves together. No callback comes from
     * here. */
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

static int make_seal(const struct link *link, bool is_opening, struct seal **out_seal,
                     struct error *error)
{
    const struct seal_options options = {.tls = link->ssl,
                                         .is_from_client = link->is_server == is_opening,
                                         .is_opening = is_opening,
                                         .key_bytes = link->seal_key_bytes,
                                         .key_records = link->seal_key_records};
    return seal_new(&options, out_seal, error);
}

/* After the handshake: in the form that both ends agreed on in it. */
static int start_form(struct link *link, struct error *error)
{
    AUTO(seal) struct seal *sealing = NULL;
    AUTO(seal) struct seal *opening = NULL;
    enum link_form form = LINK_FORM_TLS;
    const bool is_agreed = link_tls_is_agreed(link->ssl, &link->keys);
    if (link->is_bench_plain && !is_agreed)
        return error_set(error, ERROR_REFUSED, "the peer measures no plain links");
    /* The handshake is read record by record: what follows it is still in the kernel. */
    ASSERT(!is_agreed || !SSL_has_pending(link->ssl));
    if (is_agreed)
        form = link->is_bench_plain ? LINK_FORM_PLAIN : LINK_FORM_SEALED;
    if (form == LINK_FORM_SEALED &&
        (make_seal(link, false, &sealing, error) < 0 || make_seal(link, true, &opening, error) < 0))
        return -1;
    link_out_start_take(&link->out, form, link->fd, TAKE(sealing));
    link_in_start_take(&link->in, form, link->fd, TAKE(opening));
    return 0;
}

static void handshake(struct link *link)
{
    struct error error;
    int result = link_tls_handshake(link->ssl, &link->keys, &link->handshake_wants_write, &error);
    if (result == 0)
        return;
    if (result > 0)
        result = start_form(link, &error);
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
        link->out.budget = BYTES_PER_TURN;
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
    link->is_server = options->is_server;
    link->is_bench_plain = options->is_bench_plain;
    link->seal_key_bytes = options->seal_key_bytes;
    link->seal_key_records =
        options->seal_key_records ? options->seal_key_records : SEAL_KEY_RECORDS;
    link->keys.protocol = options->is_bench_plain ? PROTOCOL_BENCH_PLAIN
                          : options->is_bulk      ? PROTOCOL_SEALED
                                                  : NULL;
    link_out_init(&link->out, NULL, &link->keys);
    link->out.is_bulk = options->is_bulk;
    link_in_init(&link->in, NULL, &link->keys, link->payload_max);
    if (options->callbacks.find_place) {
        ASSERT(options->callbacks.on_placed);
        link->in.find_place = find_place;
        link->in.context = link;
    }
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
    link->out.ssl = link->in.ssl = link->ssl;
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

void link_expect(struct link *link, size_t bytes)
{
    link_in_expect(&link->in, bytes);
}

bool link_is_open(const struct link *link)
{
    return link->state == LINK_OPEN;
}

size_t link_queued_bytes(const struct link *link)
{
    return link->out.queued_bytes;
}

uint64_t link_received_bytes(const struct link *link)
{
    return link->in.received_bytes;
}

uint64_t link_sent_bytes(const struct link *link)
{
    return link->out.sent_bytes;
}

void link_set_context(struct link *link, void *context)
{
    link->context = context;
}
