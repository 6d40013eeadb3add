#include "peer/chunk_peers.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/map.h"
#include "peer/chunk_link.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HANDSHAKE_TIMEOUT_MS = 3000,
    HASHES_MAX = 1 << 14,
    TOLD_MAX = 8 * HASHES_MAX, /* each taken, then held, and again on a few new links */
    DIAL_ROUNDS = 3,
    DIAL_AGAIN_MS = 1000,
};

struct chunk_peer {
    struct chunk_peers *peers;
    size_t index;
    uint64_t lease;
    uint8_t key[LINK_KEY_SIZE];
    struct host_port addresses[CHUNK_PEER_ADDRESSES_MAX];
    size_t address_count;
    size_t address_next;
    uint32_t round_count;
    struct tcp_connect *connect;
    struct link *link;
    struct loop_timer *dial_timer;
    struct loop_timer *stall_timer;
    struct loop_timer *chunk_timer;
    struct loop_timer *await_timer; /* runs: it is waited for */
    struct map held, taken;         /* hash -> the peer itself */
    size_t told_count;              /* of hashes so far, the same ones too */
    bool is_busy;
    bool is_banned;
    uint64_t taken_bytes;
};

struct chunk_peers {
    struct loop *loop;
    uint64_t lease;
    struct chunk_peer *items[CHUNK_PEERS_MAX];
    size_t count;
    struct chunk_peers_listener listener;
    bool is_listened_to;
    bool is_closed;
};

static void tell_news(struct chunk_peers *peers)
{
    if (peers->is_listened_to)
        peers->listener.on_news(peers->listener.context);
}

static void peer_forget(struct chunk_peer *peer)
{
    map_clear(&peer->held);
    map_clear(&peer->taken);
}

static bool is_awaited(const struct chunk_peer *peer)
{
    return loop_timer_is_running(peer->await_timer);
}

static void on_awaited(void *context)
{
    tell_news(((struct chunk_peer *)context)->peers);
}

static void peer_await_no_more(struct chunk_peer *peer)
{
    if (!is_awaited(peer))
        return;
    loop_timer_stop(peer->await_timer);
    tell_news(peer->peers);
}

static void peer_stop(struct chunk_peer *peer)
{
    peer->is_busy = false;
    loop_timer_stop(peer->stall_timer);
    loop_timer_stop(peer->chunk_timer);
}

/* The link ends; what was under way is told as failed. */
static void peer_drop(struct chunk_peer *peer, const struct error *reason)
{
    struct chunk_peers *peers = peer->peers;
    const bool was_busy = peer->is_busy;
    peer_stop(peer);
    link_free(TAKE(peer->link));
    peer_forget(peer);
    if (was_busy && peers->is_listened_to)
        peers->listener.on_failed(peers->listener.context, peer->index, reason);
    else
        tell_news(peers);
}

static void peer_dial_later(struct chunk_peer *peer)
{
    if (peer->is_banned || peer->peers->is_closed || peer->address_count == 0)
        return;
    if (peer->address_next < peer->address_count) {
        loop_timer_start(peer->dial_timer, 0);
        return;
    }
    peer_await_no_more(peer);
    if (++peer->round_count < DIAL_ROUNDS) {
        peer->address_next = 0;
        loop_timer_start(peer->dial_timer, DIAL_AGAIN_MS);
    }
}

static void peer_fail(struct chunk_peer *peer, const char *reason)
{
    struct error error;
    error_set(&error, ERROR_UNAVAILABLE, "lease %" PRIu64 ": %s", peer->lease, reason);
    peer_drop(peer, &error);
}

static void on_stall(void *context)
{
    struct chunk_peer *peer = context;
    peer->is_banned = true; /* the market is there */
    peer_fail(peer, "it stalls");
}

static void on_slow(void *context)
{
    struct chunk_peer *peer = context;
    peer->is_banned = true;
    peer_fail(peer, "it is slower than the market is asked to be");
}

/* ---- The link -------------------------------------------------------------------------------- */

static void take_hashes(struct chunk_peer *peer, struct text hashes, struct map *known)
{
    peer->told_count += hashes.size / BLOB_HASH_SIZE + 1;
    if (peer->told_count > TOLD_MAX) {
        peer->is_banned = true;
        peer_fail(peer, "it says the same all the time");
        return;
    }
    for (size_t at = 0; at + BLOB_HASH_SIZE <= hashes.size && known->count < HASHES_MAX;
         at += BLOB_HASH_SIZE)
        map_put_text(known, (struct text){hashes.data + at, BLOB_HASH_SIZE}, peer);
    tell_news(peer->peers);
}

static void take_data(struct chunk_peer *peer, struct text payload)
{
    struct chunk_peers *peers = peer->peers;
    if (!peer->is_busy || payload.size < 2) {
        peer->is_banned = true;
        peer_fail(peer, "it sends what it was not asked for");
        return;
    }
    const bool is_last = payload.data[0] != 0;
    const struct text bytes = {payload.data + 1, payload.size - 1};
    peer->taken_bytes += bytes.size;
    if (peer->taken_bytes > BLOB_BYTES_MAX || !peers->is_listened_to) {
        peer->is_banned = true;
        peer_fail(peer, "it sends more than a chunk");
        return;
    }
    loop_timer_start(peer->stall_timer, CHUNK_PEER_STALL_MS);
    if (is_last)
        peer_stop(peer);
    if (peers->listener.on_data(peers->listener.context, peer->index, bytes, is_last))
        return;
    peer->is_busy = true; /* with the last piece too: it is told as failed */
    peer_fail(peer, "its chunk could not be taken");
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct chunk_peer *peer = context;
    struct chunk_peers *peers = peer->peers;
    (void)link;
    if (type == CHUNK_LINK_HAS) {
        loop_timer_stop(peer->await_timer); /* this is what it has */
        take_hashes(peer, payload, &peer->held);
    } else if (type == CHUNK_LINK_TAKES) {
        take_hashes(peer, payload, &peer->taken);
    } else if (type == CHUNK_LINK_DATA) {
        take_data(peer, payload);
    } else if (type == CHUNK_LINK_DENIED && peer->is_busy) {
        struct error error;
        error_set(&error, ERROR_REFUSED, "lease %" PRIu64 " does not send it now", peer->lease);
        peer_stop(peer);
        peer_forget(peer); /* its owner needs the machine, or it has thrown things out */
        if (peers->is_listened_to)
            peers->listener.on_failed(peers->listener.context, peer->index, &error);
    } else {
        peer->is_banned = true;
        peer_fail(peer, "it speaks nonsense");
    }
}

static void on_open(struct link *link, struct text identity, void *context)
{
    struct chunk_peer *peer = context;
    (void)link, (void)identity;
    peer->round_count = 0;
    log_event(LOG_INFO, "chunk_peer_linked", "lease=%" PRIu64 " peer=%" PRIu64, peer->peers->lease,
              peer->lease);
    tell_news(peer->peers);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    struct chunk_peer *peer = context;
    (void)link;
    peer_fail(peer, reason ? reason->message : "it closed the link");
    peer_dial_later(peer);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct chunk_peer *peer = context;
    char identity[CHUNK_LINK_IDENTITY_SIZE];
    struct error error;
    tcp_connect_free(TAKE(peer->connect));
    chunk_link_identity(peer->lease, peer->peers->lease, identity);
    const struct link_options options = {
        .loop = peer->peers->loop,
        .identity = identity,
        .key = peer->key,
        .payload_max = CHUNK_LINK_PAYLOAD_MAX,
        .handshake_timeout_ms = HANDSHAKE_TIMEOUT_MS,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = peer};
    if (!reason && link_open_take(&options, fd, &peer->link, &error) == 0)
        return;
    if (!reason)
        close(fd);
    peer_dial_later(peer);
}

static void on_dial(void *context)
{
    struct chunk_peer *peer = context;
    if (peer->link || peer->connect || peer->is_banned || peer->peers->is_closed)
        return;
    ASSERT(peer->address_next < peer->address_count);
    peer->connect = tcp_connect_start(peer->peers->loop, &peer->addresses[peer->address_next++],
                                      CHUNK_PEER_CONNECT_MS, on_connected, peer);
}

/* ---- All of them ----------------------------------------------------------------------------- */

struct chunk_peers *chunk_peers_new(struct loop *loop, uint64_t lease)
{
    struct chunk_peers *peers = calloc(1, sizeof(*peers));
    ASSERT(peers);
    peers->loop = loop;
    peers->lease = lease;
    return peers;
}

static void peer_close(struct chunk_peer *peer)
{
    tcp_connect_free(TAKE(peer->connect));
    link_free(TAKE(peer->link));
    loop_timer_stop(peer->dial_timer);
    loop_timer_stop(peer->await_timer);
    peer_stop(peer);
    peer_forget(peer);
}

void chunk_peers_close(struct chunk_peers *peers)
{
    peers->is_closed = true;
    for (size_t i = 0; i < peers->count; i++)
        peer_close(peers->items[i]);
}

void chunk_peers_free(struct chunk_peers *peers)
{
    if (!peers)
        return;
    for (size_t i = 0; i < peers->count; i++) {
        struct chunk_peer *peer = peers->items[i];
        peer_close(peer);
        loop_timer_free(peer->dial_timer);
        loop_timer_free(peer->stall_timer);
        loop_timer_free(peer->chunk_timer);
        loop_timer_free(peer->await_timer);
        map_done(&peer->held);
        map_done(&peer->taken);
        sodium_memzero(peer->key, sizeof(peer->key));
        free(peer);
    }
    free(peers);
}

static struct chunk_peer *find(const struct chunk_peers *peers, uint64_t lease)
{
    for (size_t i = 0; i < peers->count; i++)
        if (peers->items[i]->lease == lease)
            return peers->items[i];
    return NULL;
}

void chunk_peers_add(struct chunk_peers *peers, const struct chunk_peer_options *options)
{
    if (peers->is_closed || peers->count == CHUNK_PEERS_MAX || find(peers, options->lease))
        return;
    struct chunk_peer *peer = calloc(1, sizeof(*peer));
    ASSERT(peer);
    peer->peers = peers;
    peer->index = peers->count;
    peer->lease = options->lease;
    memcpy(peer->key, options->key, LINK_KEY_SIZE);
    for (size_t i = 0; i < options->address_count && i < CHUNK_PEER_ADDRESSES_MAX; i++)
        peer->addresses[peer->address_count++] = options->addresses[i];
    map_init(&peer->held);
    map_init(&peer->taken);
    peer->dial_timer = loop_timer_new(peers->loop, on_dial, peer);
    peer->stall_timer = loop_timer_new(peers->loop, on_stall, peer);
    peer->chunk_timer = loop_timer_new(peers->loop, on_slow, peer);
    peer->await_timer = loop_timer_new(peers->loop, on_awaited, peer);
    peers->items[peers->count++] = peer;
    if (options->is_borrower && peer->address_count > 0)
        loop_timer_start(peer->await_timer, CHUNK_PEER_AWAIT_MS);
    peer_dial_later(peer);
}

void chunk_peers_listen(struct chunk_peers *peers, const struct chunk_peers_listener *listener)
{
    peers->is_listened_to = listener != NULL;
    if (listener)
        peers->listener = *listener;
}

size_t chunk_peers_count(const struct chunk_peers *peers)
{
    return peers->count;
}

enum chunk_holding chunk_peers_holding(const struct chunk_peers *peers, size_t peer,
                                       const struct blob_hash *hash)
{
    const struct chunk_peer *item = peers->items[peer];
    if (is_awaited(item))
        return CHUNK_TAKEN;
    if (!item->link || !link_is_open(item->link) || item->is_banned)
        return CHUNK_UNKNOWN;
    const struct text key = {(const char *)hash->bytes, sizeof(hash->bytes)};
    if (map_get_text(&item->held, key))
        return CHUNK_HELD;
    return map_get_text(&item->taken, key) ? CHUNK_TAKEN : CHUNK_UNKNOWN;
}

bool chunk_peers_is_free(const struct chunk_peers *peers, size_t peer)
{
    const struct chunk_peer *item = peers->items[peer];
    return item->link && link_is_open(item->link) && !item->is_busy && !item->is_banned;
}

void chunk_peers_want(struct chunk_peers *peers, size_t peer, const struct blob_hash *hash)
{
    struct chunk_peer *item = peers->items[peer];
    struct error ignored; /* a link that takes nothing ends, or its stall is seen */
    ASSERT(chunk_peers_is_free(peers, peer));
    item->is_busy = true;
    item->taken_bytes = 0;
    loop_timer_start(item->stall_timer, CHUNK_PEER_STALL_MS);
    loop_timer_start(item->chunk_timer, CHUNK_PEER_CHUNK_MS);
    if (link_send_text(item->link, CHUNK_LINK_WANT,
                       (struct text){(const char *)hash->bytes, sizeof(hash->bytes)}, &ignored) < 0)
        loop_timer_start(item->stall_timer, 0);
}

void chunk_peers_give_up(struct chunk_peers *peers, size_t peer)
{
    struct chunk_peer *item = peers->items[peer];
    peer_stop(item);
    link_free(TAKE(item->link));
    peer_forget(item);
    item->address_next = 0;
    peer_dial_later(item);
}

void chunk_peers_ban(struct chunk_peers *peers, size_t peer)
{
    struct chunk_peer *item = peers->items[peer];
    item->is_banned = true;
    log_event(LOG_WARN, "chunk_peer_banned", "lease=%" PRIu64 " peer=%" PRIu64, peers->lease,
              item->lease);
    peer_close(item);
}
