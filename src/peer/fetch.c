#include "base/arena.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/map.h"
#include "peer/fetch_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

/* Of one that another process fetches: its end is seen at once, its death within this. */
enum { OTHERS_MS = 1000 };

void fetch_finish(struct fetch *fetch, const struct error *reason)
{
    if (fetch->has_failed)
        return;
    if (reason) {
        fetch->has_failed = true;
        fetch->error = *reason;
    }
    if (reason || fetch->left_count == 0)
        loop_timer_start(fetch->done, 0);
}

static void fetch_on_done(void *context)
{
    struct fetch *fetch = context;
    fetch->callback(fetch->context, fetch->has_failed ? &fetch->error : NULL);
}

const char *fetch_trouble(struct fetch *fetch)
{
    if (fetch->trouble.code != ERROR_NONE)
        return fetch->trouble.message;
    for (size_t i = 0; i < fetch->item_count; i++) {
        const struct fetch_item *item = &fetch->items[i];
        char text[BLOB_HASH_TEXT_SIZE];
        if (!item->transfer)
            continue;
        snprintf(fetch->slow, sizeof(fetch->slow),
                 "chunk %.12s from %.80s: %" PRIu64 " bytes of it have come so far",
                 blob_hash_format(&item->hash, text), fetch->access.server_url,
                 blob_partial_bytes(item->partial));
        return fetch->slow;
    }
    return NULL;
}

/* ---- One item -------------------------------------------------------------------------------- */

/* In a turn of its own: many ways lead here, some from deep inside. */
static void fetch_pump_later(struct fetch *fetch)
{
    loop_timer_start(fetch->pump, 0);
}

static void fetch_item_leave(struct fetch_item *item, enum chunk_state state)
{
    if (item->state == CHUNK_UNDER_WAY && item->source == CHUNK_SOURCE_MARKET)
        item->fetch->market_count--;
    item->state = state;
    fetch_pump_later(item->fetch);
}

static void fetch_on_rested(void *context)
{
    struct fetch_item *item = context;
    if (item->state == CHUNK_RESTS)
        fetch_item_leave(item, CHUNK_WAITS);
}

static void fetch_item_rest(struct fetch_item *item, int64_t wait_ms)
{
    fetch_item_leave(item, CHUNK_RESTS);
    loop_timer_start(item->retry, wait_ms);
}

void fetch_item_done(struct fetch_item *item)
{
    struct fetch *fetch = item->fetch;
    fetch_item_leave(item, CHUNK_DONE);
    blob_partial_free(TAKE(item->partial));
    if (fetch->access.server)
        chunk_server_offer(fetch->access.server, &item->hash, /* is_held= */ true);
    fetch->trouble = (struct error){0};
    fetch->left_count--;
    fetch_finish(fetch, NULL);
}

/* Whether time may mend it; counts what it does not mend for ever. */
static bool fetch_item_may_retry(struct fetch_item *item, const struct error *error)
{
    struct error room;
    switch (error->code) {
    case ERROR_UNAVAILABLE:
        return true;
    case ERROR_INVALID: /* a source that changed its mind, or lies */
        return ++item->wrong_count < CHUNK_WRONG_MAX && item->begun_bytes > 0;
    case ERROR_EXHAUSTED:
        if (chunk_make_room(item->fetch->access.store, &room) == 0)
            item->patience.try_count = 0;
        return ++item->room_count < CHUNK_ROOM_MAX;
    default:
        return false;
    }
}

void fetch_item_fail(struct fetch_item *item, const struct error *error,
                     const struct http_response *response)
{
    struct fetch *fetch = item->fetch;
    if (item->partial && blob_partial_bytes(item->partial) > item->begun_bytes)
        item->patience.try_count = 0; /* it goes on, if with breaks */
    if (!fetch_item_may_retry(item, error)) {
        fetch_finish(fetch, error);
        return;
    }
    fetch->trouble = *error;
    const int64_t wait_ms = chunk_patience_next_ms(&item->patience, &fetch->access, response);
    log_event(LOG_WARN, "chunk_waits", "got_bytes=%" PRIu64 " wait_ms=%" PRId64 " error=\"%s\"",
              item->partial ? blob_partial_bytes(item->partial) : 0, wait_ms, error->message);
    fetch_item_rest(item, wait_ms);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void fetch_on_others(void *context, uint32_t events)
{
    struct fetch *fetch = context;
    char told[4096];
    (void)events;
    while (read(fetch->others_fd, told, sizeof(told)) > 0)
        ;
    for (size_t i = 0; i < fetch->item_count; i++)
        if (fetch->items[i].is_others && fetch->items[i].state == CHUNK_RESTS)
            loop_timer_start(fetch->items[i].retry, 0);
}

/* Without the watch, its timer alone tells. */
static void fetch_watch_others(struct fetch *fetch)
{
    struct error error;
    if (fetch->others_fd >= 0)
        return;
    if (blob_partial_watch(fetch->access.store, &fetch->others_fd, &error) < 0 ||
        loop_watch_open(fetch->access.loop, fetch->others_fd, LOOP_READ, fetch_on_others, fetch,
                        &fetch->others, &error) < 0)
        log_event(LOG_DEBUG, "watch_failed", "error=\"%s\"", error.message);
}

/* False when it needs no fetching now: it is there, another fetches it, or it rests. */
static bool fetch_item_open(struct fetch_item *item)
{
    struct fetch *fetch = item->fetch;
    struct error error;
    item->is_others = false;
    if (item->partial)
        return true;
    /* In this order: what another finished between the two is seen. */
    const int result = blob_partial_open(fetch->access.store, &item->hash, &item->partial, &error);
    if (blob_store_use(fetch->access.store, &item->hash)) {
        fetch_item_done(item);
    } else if (result < 0 && error.code == ERROR_CONFLICT) {
        item->is_others = true;
        fetch_watch_others(fetch);
        fetch_item_rest(item, OTHERS_MS);
    } else if (result < 0) {
        fetch_item_fail(item, &error, NULL);
    } else {
        return true;
    }
    return false;
}

static void fetch_item_start(struct fetch_item *item, int source)
{
    struct fetch *fetch = item->fetch;
    struct error error;
    if (!fetch_item_open(item))
        return;
    item->state = CHUNK_UNDER_WAY;
    item->begun_ns = clock_monotonic_ns(loop_clock(fetch->access.loop));
    item->source = source;
    item->own = (struct error){0};
    if (source == CHUNK_SOURCE_MARKET) {
        fetch->market_count++;
        if (fetch->access.server)
            chunk_server_offer(fetch->access.server, &item->hash, /* is_held= */ false);
        if (fetch_ask_market(item, &error) < 0)
            fetch_finish(fetch, &error);
    } else if (blob_partial_restart(item->partial, BLOB_CODING_PLAIN, "", &error) < 0) {
        fetch_item_fail(item, &error, NULL);
    } else {
        chunk_peers_want(fetch->access.peers, (size_t)source, &item->hash);
    }
}

/* ---- From other leases ----------------------------------------------------------------------- */

static struct fetch_item *fetch_find_source(struct fetch *fetch, size_t peer)
{
    for (size_t i = 0; i < fetch->item_count; i++)
        if (fetch->items[i].state == CHUNK_UNDER_WAY && fetch->items[i].source == (int)peer)
            return &fetch->items[i];
    return NULL;
}

static void fetch_on_news(void *context)
{
    fetch_pump_later(context);
}

/* The last piece makes the blob appear, if it is it. */
static void fetch_finish_direct(struct fetch_item *item, size_t peer)
{
    struct fetch *fetch = item->fetch;
    struct error error;
    if (blob_partial_finish(item->partial, &error) == 0) {
        fetch->moved_ns = clock_monotonic_ns(loop_clock(fetch->access.loop));
        fetch_item_done(item);
        return;
    }
    if (error.code != ERROR_INVALID) {
        fetch_item_fail(item, &error, NULL);
        return;
    }
    blob_partial_free(TAKE(item->partial)); /* nothing is left of it */
    chunk_peers_ban(fetch->access.peers, peer);
    fetch_item_leave(item, CHUNK_WAITS);
}

static bool fetch_on_data(void *context, size_t peer, struct text bytes, bool is_last)
{
    struct fetch *fetch = context;
    struct fetch_item *item = fetch_find_source(fetch, peer);
    if (!item || blob_partial_append(item->partial, bytes, &item->own) < 0)
        return false;
    if (fetch->access.counts)
        fetch->access.counts->direct_bytes += bytes.size;
    if (is_last)
        fetch_finish_direct(item, peer);
    return true;
}

static void fetch_on_failed(void *context, size_t peer, const struct error *reason)
{
    struct fetch_item *item = fetch_find_source(context, peer);
    log_event(LOG_INFO, "chunk_not_direct", "error=\"%s\"", reason->message);
    if (item && item->own.code != ERROR_NONE)
        fetch_item_fail(item, &item->own, NULL);
    else if (item)
        fetch_item_leave(item, CHUNK_WAITS);
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static bool fetch_choose(const struct fetch *fetch, struct chunk_choice *out_choice)
{
    const struct chunk_peers *peers = fetch->access.peers;
    const size_t count = fetch->item_count;
    const size_t peer_count = peers ? chunk_peers_count(peers) : 0;
    AUTO(arena) struct arena *arena = arena_new(0);
    enum chunk_state *states = arena_alloc(arena, count * sizeof(*states));
    enum chunk_holding *holdings = arena_alloc(arena, (peer_count * count + 1) * sizeof(*holdings));
    bool *is_free = arena_alloc(arena, peer_count + 1);
    for (size_t i = 0; i < count; i++)
        states[i] = fetch->items[i].state;
    for (size_t peer = 0; peer < peer_count; peer++) {
        is_free[peer] = chunk_peers_is_free(peers, peer);
        for (size_t i = 0; i < count; i++)
            holdings[peer * count + i] = chunk_peers_holding(peers, peer, &fetch->items[i].hash);
    }
    const int64_t now_ns = clock_monotonic_ns(loop_clock(fetch->access.loop));
    const struct chunk_view view = {
        .chunk_count = count,
        .peer_count = peer_count,
        .first = chunk_source_first(fetch->access.rank, fetch->access.world, count),
        .market_count = fetch->market_count,
        .patience_ms =
            chunk_source_patience_ms(fetch->access.counts ? fetch->access.counts->market_ms : 0),
        .unmoved_ms = (now_ns - fetch->moved_ns) / 1000000,
        .states = states,
        .holdings = holdings,
        .is_peer_free = is_free};
    return chunk_source_choose(&view, out_choice);
}

static void fetch_on_pump(void *context)
{
    struct fetch *fetch = context;
    struct chunk_choice choice;
    while (!fetch->has_failed && fetch->left_count > 0 && fetch_choose(fetch, &choice))
        fetch_item_start(&fetch->items[choice.chunk], choice.source);
    if (fetch->left_count > 0 && fetch->access.peers && chunk_peers_count(fetch->access.peers) > 0)
        loop_timer_start(fetch->pump, CHUNK_PATIENCE_MS / 4); /* patience may be over */
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* Before anything is looked for, so that what is found stays. A full disk gets a second chance. */
static int fetch_pin(struct fetch *fetch, const struct blob_hash *hashes, size_t count,
                     struct error *error)
{
    struct blob_store *store = fetch->access.store;
    if (blob_pins_open(store, &fetch->pins, error) == 0 &&
        blob_pins_add(fetch->pins, hashes, count, error) == 0)
        return 0;
    if (error->code != ERROR_EXHAUSTED || chunk_make_room(store, error) < 0)
        return -1;
    blob_pins_free(TAKE(fetch->pins));
    return blob_pins_open(store, &fetch->pins, error) < 0 ||
                   blob_pins_add(fetch->pins, hashes, count, error) < 0
               ? -1
               : 0;
}

/* Each blob once, and whether it is there. */
static void fetch_list(struct fetch *fetch, const struct blob_hash *hashes, size_t count)
{
    const struct chunk_access *access = &fetch->access;
    struct map known;
    map_init(&known);
    for (size_t i = 0; i < count; i++) {
        const struct text key = {(const char *)hashes[i].bytes, sizeof(hashes[i].bytes)};
        struct fetch_item *item = &fetch->items[fetch->item_count];
        if (map_get_text(&known, key))
            continue;
        map_put_text(&known, key, item);
        fetch->item_count++;
        item->fetch = fetch;
        item->hash = hashes[i];
        item->retry = loop_timer_new(access->loop, fetch_on_rested, item);
        chunk_patience_init(&item->patience, &item->hash);
        if (!blob_store_use(access->store, &item->hash)) {
            fetch->left_count++;
            continue;
        }
        item->state = CHUNK_DONE;
        if (access->server)
            chunk_server_offer(access->server, &item->hash, /* is_held= */ true);
    }
    map_done(&known);
}

struct fetch *fetch_start(const struct chunk_access *access, const struct blob_hash *hashes,
                          size_t count, fetch_function *callback, void *context)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));
    ASSERT(fetch);
    fetch->access = *access;
    fetch->callback = callback;
    fetch->context = context;
    fetch->others_fd = -1;
    fetch->moved_ns = clock_monotonic_ns(loop_clock(access->loop));
    fetch->done = loop_timer_new(access->loop, fetch_on_done, fetch);
    fetch->pump = loop_timer_new(access->loop, fetch_on_pump, fetch);
    fetch->items = calloc(count ? count : 1, sizeof(*fetch->items));
    ASSERT(fetch->items);
    struct error error;
    if (fetch_pin(fetch, hashes, count, &error) < 0) {
        fetch_finish(fetch, &error);
        return fetch;
    }
    fetch_list(fetch, hashes, count);
    if (access->peers)
        chunk_peers_listen(access->peers,
                           &(struct chunk_peers_listener){.on_news = fetch_on_news,
                                                          .on_data = fetch_on_data,
                                                          .on_failed = fetch_on_failed,
                                                          .context = fetch});
    if (fetch->left_count == 0)
        fetch_finish(fetch, NULL);
    else
        fetch_pump_later(fetch);
    return fetch;
}

void fetch_free(struct fetch *fetch)
{
    if (!fetch)
        return;
    if (fetch->access.peers)
        chunk_peers_listen(fetch->access.peers, NULL);
    for (size_t i = 0; i < fetch->item_count; i++) {
        if (fetch->items[i].transfer)
            http_transfer_cancel(fetch->items[i].transfer);
        else if (fetch->items[i].state == CHUNK_UNDER_WAY && fetch->items[i].source >= 0)
            chunk_peers_give_up(fetch->access.peers, (size_t)fetch->items[i].source);
        loop_timer_free(fetch->items[i].retry);
        blob_partial_free(fetch->items[i].partial);
    }
    loop_watch_free(fetch->others);
    auto_close_fd(&fetch->others_fd);
    blob_pins_free(fetch->pins);
    loop_timer_free(fetch->done);
    loop_timer_free(fetch->pump);
    free(fetch->items);
    free(fetch);
}
