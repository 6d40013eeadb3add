#include "peer/chunk_server.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "peer/chunk_link.h"
#include "peer/door.h"
#include "runtime/source_key.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HANDSHAKE_TIMEOUT_MS = 5000,
    QUEUE_BYTES = 4 * (CHUNK_LINK_DATA_BYTES + 64),
    NEWS_BYTES = 1 << 20, /* beside it, of what there is */
    WAIT_MS = 10,         /* for the rate */
};

_Static_assert((int)CHUNK_SERVER_OFFERS_MAX *BLOB_HASH_SIZE <= NEWS_BYTES / 2,
               "a new visitor can be told of all");

struct client {
    uint64_t lease;
    uint8_t key[LINK_KEY_SIZE];
};

struct offer {
    struct blob_hash hash;
    bool is_held;
};

struct visitor {
    struct list_node node;
    struct chunk_server *server;
    struct link *link;
    int fd;             /* of the chunk that is being sent; -1: none is, from a file */
    struct text memory; /* the same, from memory; data NULL: none is */
    uint64_t left_bytes;
};

struct chunk_server {
    struct chunk_server_options options;
    uint8_t secret[SOURCE_SECRET_SIZE];
    struct door *door;
    struct map clients; /* lease -> struct client, owned */
    struct map offers;  /* hash -> struct offer, owned */
    struct list visitors;
    size_t visitor_count;
    struct loop_timer *timer;
    int64_t budget_bytes; /* what may be sent now */
    int64_t budget_ns;    /* when that was reckoned */
    uint64_t sent_bytes;
    bool is_paused;
};

static struct text hash_key(const struct blob_hash *hash)
{
    return (struct text){(const char *)hash->bytes, sizeof(hash->bytes)};
}

static void visitor_stop(struct visitor *visitor)
{
    if (visitor->fd >= 0)
        close(TAKE_FD(visitor->fd));
    visitor->memory = (struct text){0};
}

static bool is_being_sent_to(const struct visitor *visitor)
{
    return visitor->fd >= 0 || visitor->memory.data;
}

static void visitor_free(struct visitor *visitor)
{
    list_remove(&visitor->node);
    visitor->server->visitor_count--;
    visitor_stop(visitor);
    link_free(visitor->link);
    free(visitor);
}

static void visitor_deny(struct visitor *visitor)
{
    struct error ignored; /* a link that takes no word is about to end */
    visitor_stop(visitor);
    if (link_send_text(visitor->link, CHUNK_LINK_DENIED, (struct text){0}, &ignored) < 0)
        link_finish(visitor->link);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void refill(struct chunk_server *server)
{
    const int64_t now_ns = clock_monotonic_ns(loop_clock(server->options.loop));
    const int64_t passed_us = (now_ns - server->budget_ns) / 1000;
    const int64_t most = server->options.bytes_per_s / 4 + CHUNK_LINK_DATA_BYTES;
    server->budget_ns = now_ns;
    if (passed_us >= 1000000)
        server->budget_bytes = most;
    else
        server->budget_bytes += passed_us * server->options.bytes_per_s / 1000000;
    if (server->budget_bytes > most)
        server->budget_bytes = most;
}

static bool visitor_can_take(const struct visitor *visitor)
{
    return is_being_sent_to(visitor) && link_queued_bytes(visitor->link) <= QUEUE_BYTES / 2;
}

/* Whether all of it was there. */
static bool take_piece(struct visitor *visitor, uint8_t *out, size_t size)
{
    if (!visitor->memory.data)
        return read(visitor->fd, out, size) == (ssize_t)size;
    memcpy(out, visitor->memory.data, size);
    visitor->memory.data += size;
    return true;
}

static void send_piece(struct visitor *visitor)
{
    struct chunk_server *server = visitor->server;
    uint8_t piece[1 + CHUNK_LINK_DATA_BYTES];
    struct error error;
    const size_t wanted = visitor->left_bytes < CHUNK_LINK_DATA_BYTES
                              ? (size_t)visitor->left_bytes
                              : (size_t)CHUNK_LINK_DATA_BYTES;
    if (!take_piece(visitor, piece + 1, wanted)) {
        visitor_deny(visitor);
        return;
    }
    visitor->left_bytes -= wanted;
    piece[0] = visitor->left_bytes == 0;
    if (link_send_text(visitor->link, CHUNK_LINK_DATA,
                       (struct text){(const char *)piece, wanted + 1}, &error) < 0) {
        visitor_stop(visitor);
        link_finish(visitor->link);
        return;
    }
    server->budget_bytes -= (int64_t)wanted;
    server->sent_bytes += wanted;
    if (visitor->left_bytes == 0)
        visitor_stop(visitor);
}

/* A piece to whoever got one longest ago; false when nobody can take any. */
static bool send_next(struct chunk_server *server)
{
    LIST_EACH(&server->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        if (!visitor_can_take(visitor))
            continue;
        list_remove(node);
        list_append(&server->visitors, node);
        send_piece(visitor);
        return true;
    }
    return false;
}

static void pump(struct chunk_server *server)
{
    bool has_more = !server->is_paused;
    refill(server);
    while (has_more && server->budget_bytes > 0)
        has_more = send_next(server);
    if (has_more && !loop_timer_is_running(server->timer))
        loop_timer_start(server->timer, WAIT_MS);
}

static void on_timer(void *context)
{
    pump(context);
}

/* ---- What visitors say ----------------------------------------------------------------------- */

static void send_hashes(struct visitor *visitor, enum chunk_link_type type, struct text hashes)
{
    struct error ignored; /* one that does not read is served by the market */
    if (link_send_text(visitor->link, (uint16_t)type, hashes, &ignored) < 0)
        link_finish(visitor->link);
}

static void send_offers(struct visitor *visitor, bool is_held)
{
    const struct map *offers = &visitor->server->offers;
    struct buffer hashes AUTO_BUFFER;
    buffer_init(&hashes, (size_t)CHUNK_LINK_HASHES_MAX * BLOB_HASH_SIZE);
    for (size_t i = 0; i < offers->count; i++) {
        const struct offer *offer = offers->entries[i].value;
        if (offer->is_held == is_held)
            buffer_append(&hashes, offer->hash.bytes, BLOB_HASH_SIZE);
        if (hashes.size < hashes.size_max && i + 1 < offers->count)
            continue;
        if (hashes.size > 0)
            send_hashes(visitor, is_held ? CHUNK_LINK_HAS : CHUNK_LINK_TAKES, buffer_text(&hashes));
        buffer_clear(&hashes);
    }
}

static void on_open(struct link *link, struct text identity, void *context)
{
    struct visitor *visitor = context;
    (void)link;
    log_event(LOG_DEBUG, "chunk_visitor", "identity=\"" TEXT_FORMAT "\"", TEXT_ARGS(identity));
    send_offers(visitor, /* is_held= */ true);
    send_offers(visitor, /* is_held= */ false);
}

static bool open_chunk(struct visitor *visitor, const struct blob_hash *hash)
{
    const struct chunk_server_options *options = &visitor->server->options;
    struct blob_file file = {.fd = -1};
    struct error error;
    if (options->find) {
        if (!options->find(options->context, hash, &visitor->memory))
            return false;
        visitor->left_bytes = visitor->memory.size;
        return visitor->left_bytes > 0;
    }
    if (blob_store_open_blob(options->store, hash, &file, &error) < 0)
        return false;
    visitor->fd = file.fd;
    visitor->left_bytes = file.size_bytes;
    return file.coding == BLOB_CODING_PLAIN && file.size_bytes > 0;
}

static void begin(struct visitor *visitor, const struct blob_hash *hash)
{
    struct chunk_server *server = visitor->server;
    const struct offer *offer = map_get_text(&server->offers, hash_key(hash));
    if (offer && offer->is_held && !server->is_paused && open_chunk(visitor, hash))
        pump(server);
    else
        visitor_deny(visitor);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct visitor *visitor = context;
    struct blob_hash hash;
    if (type != CHUNK_LINK_WANT || payload.size != sizeof(hash.bytes) ||
        is_being_sent_to(visitor)) {
        link_finish(link);
        return;
    }
    memcpy(hash.bytes, payload.data, sizeof(hash.bytes));
    begin(visitor, &hash);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    visitor_free(context);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    pump(((struct visitor *)context)->server);
}

/* The lease that the identity names as the visitor, whoever has the key. */
static bool read_client(struct text identity, uint64_t own_lease, uint64_t *out_lease)
{
    char expected[CHUNK_LINK_IDENTITY_SIZE];
    struct error ignored; /* nobody is known by such a name */
    struct text rest = identity, word = {0};
    while (text_cut(rest, ':', &word, &rest))
        ;
    if (text_parse_u64(word, out_lease, &ignored) < 0)
        return false;
    chunk_link_identity(own_lease, *out_lease, expected);
    return text_equal(identity, text_of(expected));
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    const struct chunk_server *server = ((struct visitor *)context)->server;
    char expected[CHUNK_LINK_IDENTITY_SIZE];
    uint64_t lease = 0;
    if (server->options.secret && read_client(identity, server->options.lease, &lease)) {
        source_key(server->secret, lease, out_key);
        return 0;
    }
    for (size_t i = 0; i < server->clients.count; i++) {
        const struct client *client = server->clients.entries[i].value;
        chunk_link_identity(server->options.lease, client->lease, expected);
        if (!text_equal(identity, text_of(expected)))
            continue;
        memcpy(out_key, client->key, LINK_KEY_SIZE);
        return 0;
    }
    return -1;
}

static void take_visitor(void *context, int fd)
{
    struct chunk_server *server = context;
    struct error error;
    struct visitor *visitor = calloc(1, sizeof(*visitor));
    ASSERT(visitor);
    visitor->server = server;
    visitor->fd = -1;
    list_append(&server->visitors, &visitor->node);
    server->visitor_count++;
    const struct link_options options = {.loop = server->options.loop,
                                         .is_server = true,
                                         .find_key = find_key,
                                         .payload_max = CHUNK_LINK_PAYLOAD_MAX,
                                         .queue_max_bytes = (size_t)QUEUE_BYTES + NEWS_BYTES,
                                         .queue_low_bytes = QUEUE_BYTES / 4,
                                         .handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS,
                                         .callbacks = {.on_open = on_open,
                                                       .on_frame = on_frame,
                                                       .on_close = on_close,
                                                       .on_drained = on_drained},
                                         .context = visitor};
    if (server->visitor_count <= CHUNK_SERVER_LINKS_MAX &&
        link_open_take(&options, fd, &visitor->link, &error) == 0)
        return;
    close(fd);
    visitor_free(visitor);
}

/* ---- The server itself ----------------------------------------------------------------------- */

int chunk_server_open(const struct chunk_server_options *options, struct chunk_server **out_server,
                      struct error *error)
{
    AUTO(chunk_server) struct chunk_server *server = calloc(1, sizeof(*server));
    ASSERT(server);
    server->options = *options;
    if (server->options.bytes_per_s == 0)
        server->options.bytes_per_s = CHUNK_SERVER_BYTES_PER_S;
    if (options->secret) {
        memcpy(server->secret, options->secret, sizeof(server->secret));
        server->options.secret = server->secret;
    }
    map_init(&server->clients);
    map_init(&server->offers);
    list_init(&server->visitors);
    server->timer = loop_timer_new(options->loop, on_timer, server);
    const struct door_options door = {.loop = options->loop,
                                      .closed_event = "chunks_not_served",
                                      .on_visit_take = take_visitor,
                                      .context = server};
    if (door_open(&door, &server->door, error) < 0)
        return error_wrap(error, "listen for those that want chunks");
    *out_server = TAKE(server);
    return 0;
}

void chunk_server_free(struct chunk_server *server)
{
    if (!server)
        return;
    LIST_EACH(&server->visitors, node)
    {
        visitor_free(LIST_ITEM(node, struct visitor, node));
    }
    door_free(server->door);
    for (size_t i = 0; i < server->clients.count; i++) {
        sodium_memzero(server->clients.entries[i].value, sizeof(struct client));
        free(server->clients.entries[i].value);
    }
    map_done(&server->clients);
    for (size_t i = 0; i < server->offers.count; i++)
        free(server->offers.entries[i].value);
    map_done(&server->offers);
    loop_timer_free(server->timer);
    sodium_memzero(server->secret, sizeof(server->secret));
    free(server);
}

uint16_t chunk_server_port(const struct chunk_server *server)
{
    return door_port(server->door);
}

void chunk_server_allow(struct chunk_server *server, uint64_t client_lease,
                        const uint8_t key[LINK_KEY_SIZE])
{
    struct client *client = map_get(&server->clients, client_lease);
    if (!client && server->clients.count == CHUNK_SERVER_CLIENTS_MAX)
        return;
    if (!client) {
        client = calloc(1, sizeof(*client));
        ASSERT(client);
        client->lease = client_lease;
        map_put(&server->clients, client_lease, client);
    }
    memcpy(client->key, key, LINK_KEY_SIZE);
}

void chunk_server_offer(struct chunk_server *server, const struct blob_hash *hash, bool is_held)
{
    struct offer *offer = map_get_text(&server->offers, hash_key(hash));
    if (offer && offer->is_held >= is_held)
        return;
    if (!offer && server->offers.count == CHUNK_SERVER_OFFERS_MAX)
        return;
    if (!offer) {
        offer = calloc(1, sizeof(*offer));
        ASSERT(offer);
        offer->hash = *hash;
        map_put_text(&server->offers, hash_key(&offer->hash), offer);
    }
    offer->is_held = is_held;
    LIST_EACH(&server->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        if (link_is_open(visitor->link))
            send_hashes(visitor, is_held ? CHUNK_LINK_HAS : CHUNK_LINK_TAKES, hash_key(hash));
    }
}

void chunk_server_set_paused(struct chunk_server *server, bool is_paused)
{
    server->is_paused = is_paused;
    LIST_EACH(&server->visitors, node)
    {
        struct visitor *visitor = LIST_ITEM(node, struct visitor, node);
        if (is_paused && is_being_sent_to(visitor))
            visitor_deny(visitor);
    }
}

uint64_t chunk_server_sent_bytes(const struct chunk_server *server)
{
    return server->sent_bytes;
}
