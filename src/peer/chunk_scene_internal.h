/* What tests of exchanging chunks share: four leases, and a market that answers one at a time. */
#pragma once

#include "net/http_server.h"
#include "peer/chunk_link.h"
#include "peer/fetch.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 8, CHUNK_BYTES = 100000, RANKS = 4, ANSWERS_MAX = 4096 };

struct rank {
    struct chunk_access access;
    struct chunk_counts counts;
    struct chunk_server *server;
    struct chunk_peers *peers;
    struct blob_store *store;
    struct fetch *fetch;
    bool is_done;
    struct error error;
};

struct scene {
    char folder[64];
    struct loop *loop;
    struct http_server *http;
    struct http_client *client;
    char url[64];
    struct blob_store *blobs; /* the market's */
    struct blob_hash hashes[CHUNKS];
    uint64_t waiting[ANSWERS_MAX]; /* requests */
    size_t asked_count, answered_count;
    struct loop_timer *answer_timer;
    int64_t answer_ms; /* between two */
    struct rank ranks[RANKS];
    bool is_away;
    uint8_t key[LINK_KEY_SIZE];
};

static inline void answer_one(void *context)
{
    struct scene *scene = context;
    struct error error;
    if (scene->answered_count == scene->asked_count)
        return;
    struct http_request *request =
        http_server_find(scene->http, scene->waiting[scene->answered_count++]);
    struct blob_hash hash;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, BLOB_BYTES_MAX);
    if (request) {
        ASSERT_OK(blob_hash_parse(http_request_parameter(request, "hash"), &hash, &error));
        ASSERT_OK(blob_store_read(scene->blobs, &hash, &bytes, &error));
        http_reply(request, 200, "application/octet-stream", buffer_text(&bytes));
    }
    loop_timer_start(scene->answer_timer, scene->answer_ms);
}

static inline void on_get_chunk(struct http_request *request, void *context)
{
    struct scene *scene = context;
    assert_true(scene->asked_count < ANSWERS_MAX);
    scene->waiting[scene->asked_count++] = http_request_id(request);
    if (!loop_timer_is_running(scene->answer_timer))
        loop_timer_start(scene->answer_timer, scene->answer_ms);
}

static const struct http_route routes[] = {
    {"GET", "/v1/chunks/{hash}", 0, on_get_chunk, 0},
};

static inline void open_rank(struct scene *scene, uint32_t number)
{
    struct rank *rank = &scene->ranks[number];
    struct error error;
    char folder[96];
    snprintf(folder, sizeof(folder), "%s/rank%u", scene->folder, number);
    const struct blob_store_options store = {.folder = folder, .is_shared = true};
    ASSERT_OK(blob_store_open(&store, &rank->store, &error));
    const struct chunk_server_options server = {
        .loop = scene->loop, .store = rank->store, .lease = number + 1};
    ASSERT_OK(chunk_server_open(&server, &rank->server, &error));
    rank->peers = chunk_peers_new(scene->loop, number + 1);
    rank->access = (struct chunk_access){.loop = scene->loop,
                                         .client = scene->client,
                                         .store = rank->store,
                                         .server_url = scene->url,
                                         .token = "fetch-me",
                                         .is_away = &scene->is_away,
                                         .peers = rank->peers,
                                         .server = rank->server,
                                         .rank = number,
                                         .world = RANKS,
                                         .counts = &rank->counts};
}

static inline int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct error error;
    struct address any;
    char folder[96];
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/souk-exchange-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    ASSERT_OK(loop_open(&clock_system, &scene->loop, &error));
    scene->answer_timer = loop_timer_new(scene->loop, answer_one, scene);
    scene->answer_ms = 1;
    memset(scene->key, 7, sizeof(scene->key));
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    const struct http_server_options http = {
        .loop = scene->loop, .listen = any, .routes = routes, .route_count = 1, .context = scene};
    ASSERT_OK(http_server_open(&http, &scene->http, &error));
    scene->client = http_client_new(&(struct http_client_options){.loop = scene->loop});
    snprintf(scene->url, sizeof(scene->url), "http://127.0.0.1:%u", http_server_port(scene->http));
    snprintf(folder, sizeof(folder), "%s/market", scene->folder);
    ASSERT_OK(
        blob_store_open(&(struct blob_store_options){.folder = folder}, &scene->blobs, &error));
    static char bytes[CHUNK_BYTES];
    for (int i = 0; i < CHUNKS; i++) {
        memset(bytes, 'a' + i, sizeof(bytes));
        ASSERT_OK(blob_store_put(scene->blobs, NULL, (struct text){bytes, sizeof(bytes)},
                                 &scene->hashes[i], &error));
    }
    for (uint32_t i = 0; i < RANKS; i++)
        open_rank(scene, i);
    *state = scene;
    return 0;
}

static inline int tear_down(void **state)
{
    struct scene *scene = *state;
    for (size_t i = 0; i < RANKS; i++) {
        struct rank *rank = &scene->ranks[i];
        fetch_free(rank->fetch);
        chunk_peers_free(rank->peers);
        chunk_server_free(rank->server);
        blob_store_free(rank->store);
    }
    http_client_free(scene->client);
    http_server_free(scene->http);
    loop_timer_free(scene->answer_timer);
    loop_free(scene->loop);
    blob_store_free(scene->blobs);
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", scene->folder);
    const int result = system(command); /* NOLINT: a path this test made */
    free(scene);
    return result;
}

/* `who` may ask `whom`, and is told where. */
static inline void introduce(struct scene *scene, size_t who, size_t whom, const uint8_t *key)
{
    const struct host_port address = {.host = "127.0.0.1",
                                      .port = chunk_server_port(scene->ranks[whom].server)};
    chunk_server_allow(scene->ranks[whom].server, who + 1, scene->key);
    chunk_peers_add(scene->ranks[who].peers,
                    &(struct chunk_peer_options){
                        .lease = whom + 1, .key = key, .addresses = &address, .address_count = 1});
}

static inline void on_fetched(void *context, const struct error *reason)
{
    struct rank *rank = context;
    rank->is_done = true;
    if (reason)
        rank->error = *reason;
}

static inline void start_fetch(struct scene *scene, size_t number)
{
    struct rank *rank = &scene->ranks[number];
    rank->fetch = fetch_start(&rank->access, scene->hashes, CHUNKS, on_fetched, rank);
}

static inline int64_t now_ms(void)
{
    return clock_monotonic_ns(&clock_system) / 1000000;
}

static inline void turn(struct scene *scene)
{
    struct error error;
    ASSERT_OK(loop_step(scene->loop, 20, &error));
}

static inline void finish_fetch(struct scene *scene, size_t number)
{
    struct rank *rank = &scene->ranks[number];
    const int64_t end_ms = now_ms() + HUNG_MS;
    while (!rank->is_done && now_ms() < end_ms)
        turn(scene);
    assert_true(rank->is_done);
    if (rank->error.code != ERROR_NONE)
        fail_msg("%s", rank->error.message);
    for (int i = 0; i < CHUNKS; i++)
        assert_true(blob_store_has(rank->store, &scene->hashes[i]));
}

static inline void wait_for_link(struct scene *scene, size_t number, size_t peer)
{
    const int64_t end_ms = now_ms() + HUNG_MS;
    while (chunk_peers_holding(scene->ranks[number].peers, peer, &scene->hashes[0]) != CHUNK_HELD) {
        assert_true(now_ms() < end_ms);
        turn(scene);
    }
}

/* Rank 0 has everything. */
static inline void fill_first(struct scene *scene)
{
    start_fetch(scene, 0);
    finish_fetch(scene, 0);
    assert_int_equal(scene->asked_count, CHUNKS);
    assert_int_equal(scene->ranks[0].counts.market_bytes, CHUNKS * CHUNK_BYTES);
}

#define EXCHANGE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
