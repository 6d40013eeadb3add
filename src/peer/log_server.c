#include "peer/log_server.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "peer/door.h"
#include "runtime/log_link.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HANDSHAKE_TIMEOUT_MS = 5000, WANT_TIMEOUT_MS = 5000 };

struct reader {
    uint64_t id; /* 0: none */
    uint8_t key[LINK_KEY_SIZE];
    int64_t expires_ns;
    size_t link_count;
};

struct visitor {
    struct list_node node;
    struct log_server *server;
    struct link *link;
    struct loop_timer *want_timer;
    uint64_t reader; /* 0: not known yet */
    uint64_t next;   /* offset of the next byte to be sent */
    bool has_asked;
    bool is_done; /* END was sent, or it is being let go */
};

struct log_server {
    struct log_server_options options;
    struct door *door;
    struct reader readers[LOG_SERVER_READERS_MAX];
    struct list visitors;
    size_t visitor_count;
};

static int64_t now_ns(const struct log_server *server)
{
    return clock_monotonic_ns(loop_clock(server->options.loop));
}

/* ---- Readers --------------------------------------------------------------------------------- */

static struct reader *find_reader(struct log_server *server, uint64_t id)
{
    for (size_t i = 0; i < LOG_SERVER_READERS_MAX; i++)
        if (id && server->readers[i].id == id)
            return &server->readers[i];
    return NULL;
}

static bool is_good(const struct log_server *server, const struct reader *reader)
{
    return reader->id && (reader->link_count > 0 || now_ns(server) < reader->expires_ns);
}

static void extend(const struct log_server *server, struct reader *reader)
{
    reader->expires_ns = now_ns(server) + (int64_t)LOG_SERVER_KEY_MS * 1000000;
}

/* More keys than links: there is always one that nobody uses. */
static struct reader *take_place(struct log_server *server)
{
    struct reader *oldest = NULL;
    for (size_t i = 0; i < LOG_SERVER_READERS_MAX; i++) {
        struct reader *reader = &server->readers[i];
        if (reader->link_count == 0 && (!oldest || reader->expires_ns < oldest->expires_ns))
            oldest = reader;
    }
    ASSERT(oldest);
    return oldest;
}
_Static_assert((int)LOG_SERVER_READERS_MAX > (int)LOG_SERVER_LINKS_MAX, "a key without a link");

void log_server_allow(struct log_server *server, uint64_t id, const uint8_t key[LINK_KEY_SIZE])
{
    struct reader *reader = find_reader(server, id);
    if (!reader)
        reader = take_place(server);
    const size_t link_count = reader->id == id ? reader->link_count : 0;
    *reader = (struct reader){.id = id, .link_count = link_count};
    memcpy(reader->key, key, LINK_KEY_SIZE);
    extend(server, reader);
}

/* ---- Visitors -------------------------------------------------------------------------------- */

static void visitor_free(struct visitor *visitor)
{
    struct log_server *server = visitor->server;
    struct reader *reader = find_reader(server, visitor->reader);
    if (reader) {
        reader->link_count--;
        extend(server, reader);
    }
    list_remove(&visitor->node);
    server->visitor_count--;
    loop_timer_free(visitor->want_timer);
    link_free(visitor->link);
    free(visitor);
}

static void visitor_finish(struct visitor *visitor)
{
    visitor->is_done = true;
    link_finish(visitor->link);
}

static uint64_t book_end(const struct logbook *book)
{
    return book->start + book->bytes.size;
}

static bool send_part(struct visitor *visitor, enum log_link_type type, struct text bytes)
{
    struct error error;
    struct buffer offset AUTO_BUFFER;
    buffer_init(&offset, LOG_LINK_OFFSET_SIZE);
    wire_put_u64(&offset, visitor->next);
    const struct text parts[] = {buffer_text(&offset), bytes};
    return link_send(visitor->link, (uint16_t)type, parts, 2, &error) == 0;
}

/* All that the queue takes. What it does not take now is taken when it has drained, if the book
 * still has it then. */
static void visitor_pump(struct visitor *visitor)
{
    const struct logbook *book = visitor->server->options.book;
    if (!visitor->has_asked || visitor->is_done)
        return;
    if (visitor->next < book->start) { /* too slow: the market has the rest */
        link_free(TAKE(visitor->link));
        visitor_free(visitor);
        return;
    }
    while (visitor->next < book_end(book) &&
           link_queued_bytes(visitor->link) < LOG_SERVER_QUEUE_BYTES / 2) {
        const uint64_t left = book_end(book) - visitor->next;
        const struct text bytes = {(const char *)book->bytes.data + (visitor->next - book->start),
                                   left < LOG_LINK_DATA_BYTES ? (size_t)left
                                                              : (size_t)LOG_LINK_DATA_BYTES};
        if (!send_part(visitor, LOG_LINK_DATA, bytes)) {
            visitor_finish(visitor);
            return;
        }
        visitor->next += bytes.size;
    }
    if (book->has_ended && visitor->next == book_end(book)) {
        send_part(visitor, LOG_LINK_END, (struct text){0});
        visitor_finish(visitor);
    }
}

void log_server_pump(struct log_server *server)
{
    LIST_EACH(&server->visitors, node)
    {
        visitor_pump(LIST_ITEM(node, struct visitor, node));
    }
}

size_t log_server_link_count(const struct log_server *server)
{
    size_t count = 0;
    LIST_EACH(&server->visitors, node)
    {
        count += LIST_ITEM(node, struct visitor, node)->has_asked;
    }
    return count;
}

/* ---- What visitors say ----------------------------------------------------------------------- */

static size_t open_count(const struct log_server *server)
{
    size_t count = 0;
    for (size_t i = 0; i < LOG_SERVER_READERS_MAX; i++)
        count += server->readers[i].link_count;
    return count;
}

/* Which of the keys the visitor has proved to hold. */
static struct reader *reader_of(struct log_server *server, struct text identity)
{
    char expected[LOG_LINK_IDENTITY_SIZE];
    for (size_t i = 0; i < LOG_SERVER_READERS_MAX; i++) {
        struct reader *reader = &server->readers[i];
        log_link_identity(server->options.lease, reader->id, expected);
        if (is_good(server, reader) && text_equal(identity, text_of(expected)))
            return reader;
    }
    return NULL;
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    const struct reader *reader = reader_of(((struct visitor *)context)->server, identity);
    if (!reader)
        return -1;
    memcpy(out_key, reader->key, LINK_KEY_SIZE);
    return 0;
}

static void on_open(struct link *link, struct text identity, void *context)
{
    struct visitor *visitor = context;
    struct log_server *server = visitor->server;
    struct reader *reader = reader_of(server, identity);
    if (!reader || open_count(server) >= LOG_SERVER_LINKS_MAX) {
        link_finish(link);
        return;
    }
    reader->link_count++;
    visitor->reader = reader->id;
    loop_timer_start(visitor->want_timer, WANT_TIMEOUT_MS);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct visitor *visitor = context;
    const struct logbook *book = visitor->server->options.book;
    if (type != LOG_LINK_WANT || payload.size != LOG_LINK_OFFSET_SIZE || visitor->has_asked ||
        !visitor->reader) {
        link_finish(link);
        return;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    const uint64_t wanted = wire_get_u64(&reader);
    loop_timer_stop(visitor->want_timer);
    visitor->has_asked = true;
    log_event(LOG_INFO, "log_reader", "lease=%" PRIu64 " offset=%" PRIu64,
              visitor->server->options.lease, wanted);
    visitor->next = wanted < book->start ? book->start : wanted;
    if (visitor->next > book_end(book)) /* what nobody printed */
        visitor_finish(visitor);
    else
        visitor_pump(visitor);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    visitor_free(context);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    visitor_pump(context);
}

static void on_silent(void *context)
{
    visitor_free(context);
}

static void take_visitor(void *context, int fd)
{
    struct log_server *server = context;
    struct error error;
    struct visitor *visitor = calloc(1, sizeof(*visitor));
    ASSERT(visitor);
    visitor->server = server;
    visitor->want_timer = loop_timer_new(server->options.loop, on_silent, visitor);
    list_append(&server->visitors, &visitor->node);
    server->visitor_count++;
    const struct link_options options = {.loop = server->options.loop,
                                         .is_server = true,
                                         .find_key = find_key,
                                         .payload_max = LOG_LINK_PAYLOAD_MAX,
                                         .queue_max_bytes = LOG_SERVER_QUEUE_BYTES,
                                         .queue_low_bytes = LOG_SERVER_QUEUE_BYTES / 4,
                                         .handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS,
                                         .callbacks = {.on_open = on_open,
                                                       .on_frame = on_frame,
                                                       .on_close = on_close,
                                                       .on_drained = on_drained},
                                         .context = visitor};
    if (server->visitor_count <= LOG_SERVER_VISITORS_MAX &&
        link_open_take(&options, fd, &visitor->link, &error) == 0)
        return;
    close(fd);
    visitor_free(visitor);
}

/* ---- The server itself ----------------------------------------------------------------------- */

int log_server_open(const struct log_server_options *options, struct log_server **out_server,
                    struct error *error)
{
    AUTO(log_server) struct log_server *server = calloc(1, sizeof(*server));
    ASSERT(server);
    server->options = *options;
    list_init(&server->visitors);
    const struct door_options door = {.loop = options->loop,
                                      .closed_event = "logs_not_served",
                                      .on_visit_take = take_visitor,
                                      .context = server};
    if (door_open(&door, &server->door, error) < 0)
        return error_wrap(error, "listen for those that read the log");
    *out_server = TAKE(server);
    return 0;
}

void log_server_free(struct log_server *server)
{
    if (!server)
        return;
    LIST_EACH(&server->visitors, node)
    {
        visitor_free(LIST_ITEM(node, struct visitor, node));
    }
    door_free(server->door);
    sodium_memzero(server->readers, sizeof(server->readers));
    free(server);
}

uint16_t log_server_port(const struct log_server *server)
{
    return door_port(server->door);
}
