/*
 * Leases that exchange chunks over real links, with a market that answers one request at a time.
 * covers fetch.c, fetch_market.c, chunk_peers.c, chunk_server.c
 */
#include "peer/chunk_scene_internal.h"

#include <fcntl.h>
#include <unistd.h>

static void what_another_lease_has_does_not_come_from_the_market(void **state)
{
    struct scene *scene = *state;
    fill_first(scene);
    introduce(scene, 1, 0, scene->key);
    wait_for_link(scene, 1, 0);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->asked_count, CHUNKS);
    assert_int_equal(scene->ranks[1].counts.direct_bytes, CHUNKS * CHUNK_BYTES);
    assert_int_equal(chunk_server_sent_bytes(scene->ranks[0].server), CHUNKS * CHUNK_BYTES);
}

static void leases_that_start_together_fetch_each_chunk_about_once(void **state)
{
    struct scene *scene = *state;
    scene->answer_ms = 20; /* the market is the narrow place, as an uplink is */
    for (size_t i = 0; i < RANKS; i++)
        for (size_t k = 0; k < RANKS; k++)
            if (i != k)
                introduce(scene, i, k, scene->key);
    for (size_t i = 0; i < RANKS; i++)
        start_fetch(scene, i);
    uint64_t market_bytes = 0;
    for (size_t i = 0; i < RANKS; i++) {
        finish_fetch(scene, i);
        market_bytes += scene->ranks[i].counts.market_bytes;
    }
    print_message("%d ranks: %.2f times the data from the market\n", RANKS,
                  (double)market_bytes / (CHUNKS * CHUNK_BYTES));
    assert_true(market_bytes < UINT64_C(2) * CHUNKS * CHUNK_BYTES); /* each for itself: 4 */
}

static void who_has_another_key_gets_nothing_and_the_market_is_asked(void **state)
{
    struct scene *scene = *state;
    const uint8_t wrong[LINK_KEY_SIZE] = {1};
    fill_first(scene);
    introduce(scene, 1, 0, wrong);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->ranks[1].counts.direct_bytes, 0);
    assert_int_equal(chunk_server_sent_bytes(scene->ranks[0].server), 0);
    assert_int_equal(scene->asked_count, 2 * CHUNKS);
}

/* Overwrites what rank 0 has of a chunk, in its own folder. */
static void spoil(const struct scene *scene, const struct blob_hash *hash)
{
    char text[BLOB_HASH_TEXT_SIZE], path[256];
    blob_hash_format(hash, text);
    snprintf(path, sizeof(path), "%s/rank0/%.2s/%s", scene->folder, text, text + 2);
    AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "lie", 3, 500), 3);
}

static void one_that_sends_something_else_is_not_believed_again(void **state)
{
    struct scene *scene = *state;
    struct error error;
    fill_first(scene);
    for (int i = 0; i < CHUNKS; i++)
        spoil(scene, &scene->hashes[i]);
    introduce(scene, 1, 0, scene->key);
    wait_for_link(scene, 1, 0);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->ranks[1].counts.direct_bytes, CHUNK_BYTES); /* the first, and no more */
    assert_int_equal(scene->asked_count, 2 * CHUNKS);
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, BLOB_BYTES_MAX);
    for (int i = 0; i < CHUNKS; i++) {
        buffer_clear(&bytes);
        ASSERT_OK(blob_store_read(scene->ranks[1].store, &scene->hashes[i], &bytes, &error));
    }
}

static void what_is_not_offered_is_not_sent(void **state)
{
    struct scene *scene = *state;
    struct error error;
    struct blob_hash secret;
    fill_first(scene);
    ASSERT_OK(blob_store_put(scene->ranks[0].store, NULL, TEXT("another job's"), &secret, &error));
    ASSERT_OK(blob_store_put(scene->blobs, NULL, TEXT("another job's"), &secret, &error));
    introduce(scene, 1, 0, scene->key);
    wait_for_link(scene, 1, 0);
    assert_true(chunk_peers_holding(scene->ranks[1].peers, 0, &secret) == CHUNK_UNKNOWN);
    chunk_peers_want(scene->ranks[1].peers, 0, &secret); /* asked for all the same */
    const int64_t end_ms = now_ms() + HUNG_MS;
    while (!chunk_peers_is_free(scene->ranks[1].peers, 0)) {
        assert_true(now_ms() < end_ms);
        turn(scene);
    }
    assert_int_equal(chunk_server_sent_bytes(scene->ranks[0].server), 0);
}

static void nothing_is_sent_while_the_owner_needs_the_machine(void **state)
{
    struct scene *scene = *state;
    fill_first(scene);
    introduce(scene, 1, 0, scene->key);
    wait_for_link(scene, 1, 0);
    chunk_server_set_paused(scene->ranks[0].server, true);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(chunk_server_sent_bytes(scene->ranks[0].server), 0);
    assert_int_equal(scene->asked_count, 2 * CHUNKS);
}

/* ---- Without a fetch ------------------------------------------------------------------------- */

struct taker {
    struct chunk_peers *peers;
    const struct blob_hash *again; /* asked for whenever it came; NULL: once is enough */
    bool is_refusing;
    int came_count, failed_count;
};

static void taker_on_news(void *context)
{
    (void)context;
}

static bool taker_on_data(void *context, size_t peer, struct text bytes, bool is_last)
{
    struct taker *taker = context;
    (void)bytes;
    if (!is_last)
        return true;
    taker->came_count++;
    if (taker->again)
        chunk_peers_want(taker->peers, peer, taker->again);
    return !taker->is_refusing;
}

static void taker_on_failed(void *context, size_t peer, const struct error *reason)
{
    struct taker *taker = context;
    (void)peer, (void)reason;
    taker->failed_count++;
}

static void taker_listen(struct taker *taker, const struct rank *rank)
{
    taker->peers = rank->peers;
    chunk_peers_listen(taker->peers, &(struct chunk_peers_listener){.on_news = taker_on_news,
                                                                    .on_data = taker_on_data,
                                                                    .on_failed = taker_on_failed,
                                                                    .context = taker});
}

static void taker_wait(struct scene *scene, const struct taker *taker)
{
    const int64_t end_ms = now_ms() + HUNG_MS;
    while (taker->came_count + taker->failed_count == 0) {
        assert_true(now_ms() < end_ms);
        turn(scene);
    }
}

static void a_chunk_whose_last_piece_is_refused_is_told_as_failed(void **state)
{
    struct scene *scene = *state;
    struct taker taker = {.is_refusing = true};
    fill_first(scene);
    introduce(scene, 1, 0, scene->key);
    wait_for_link(scene, 1, 0);
    taker_listen(&taker, &scene->ranks[1]);
    chunk_peers_want(taker.peers, 0, &scene->hashes[0]);
    taker_wait(scene, &taker);
    assert_int_equal(taker.came_count, 1);
    assert_int_equal(taker.failed_count, 1);
}

/* As slow as one piece in a few hundredths of a second. */
static void slow_down_first(struct scene *scene)
{
    struct rank *rank = &scene->ranks[0];
    struct error error;
    const struct chunk_server_options options = {
        .loop = scene->loop, .store = rank->store, .lease = 1, .bytes_per_s = 512 << 10};
    chunk_server_free(TAKE(rank->server));
    ASSERT_OK(chunk_server_open(&options, &rank->server, &error));
    rank->access.server = rank->server;
}

static void one_that_asks_all_the_time_leaves_others_their_turn(void **state)
{
    struct scene *scene = *state;
    struct blob_hash whole; /* of pieces that are all full: nothing of a turn is left over */
    static const char bytes[2 * CHUNK_LINK_DATA_BYTES];
    struct taker greedy = {.again = &whole}, modest = {0};
    struct error error;
    slow_down_first(scene);
    fill_first(scene);
    ASSERT_OK(blob_store_put(scene->ranks[0].store, NULL, (struct text){bytes, sizeof(bytes)},
                             &whole, &error));
    chunk_server_offer(scene->ranks[0].server, &whole, /* is_held= */ true);
    introduce(scene, 1, 0, scene->key);
    wait_for_link(scene, 1, 0);
    introduce(scene, 2, 0, scene->key);
    wait_for_link(scene, 2, 0);
    taker_listen(&greedy, &scene->ranks[1]);
    chunk_peers_want(greedy.peers, 0, greedy.again);
    while (greedy.came_count < 2) /* what was saved up is spent */
        turn(scene);
    taker_listen(&modest, &scene->ranks[2]);
    chunk_peers_want(modest.peers, 0, &scene->hashes[1]);
    taker_wait(scene, &modest);
    assert_int_equal(modest.failed_count, 0);
    assert_int_equal(modest.came_count, 1);
}

/* ---- One that says it has everything and then says nothing ----------------------------------- */

static const uint8_t *silent_key;
static struct link *silent_link;
static int silent_want_count;

static int find_silent_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    memcpy(out_key, silent_key, LINK_KEY_SIZE);
    return 0;
}

static void silent_on_open(struct link *link, struct text identity, void *context)
{
    const struct scene *scene = context;
    struct error error;
    (void)identity;
    ASSERT_OK(link_send_text(
        link, CHUNK_LINK_HAS,
        (struct text){(const char *)scene->hashes[0].bytes, sizeof(scene->hashes)}, &error));
}

static void silent_on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)payload, (void)context;
    silent_want_count += type == CHUNK_LINK_WANT;
}

static void silent_on_close(struct link *link, const struct error *reason, void *context)
{
    (void)reason, (void)context;
    link_free(link);
    silent_link = NULL;
}

struct silent {
    struct scene *scene;
    int fd;
};

static void silent_on_visit(void *context, uint32_t events)
{
    const struct silent *silent = context;
    struct error error;
    struct address from;
    int fd;
    (void)events;
    while (tcp_accept(silent->fd, &fd, &from, &error) > 0) {
        const struct link_options options = {.loop = silent->scene->loop,
                                             .is_server = true,
                                             .find_key = find_silent_key,
                                             .callbacks = {.on_open = silent_on_open,
                                                           .on_frame = silent_on_frame,
                                                           .on_close = silent_on_close},
                                             .context = silent->scene};
        ASSERT_OK(link_open_take(&options, fd, &silent_link, &error));
    }
}

static void one_that_stalls_does_not_hold_the_others_up(void **state)
{
    struct scene *scene = *state;
    struct error error;
    struct address any;
    struct silent silent = {.scene = scene, .fd = -1};
    struct host_port address = {.host = "127.0.0.1"};
    struct loop_watch *watch = NULL;
    silent_key = scene->key;
    ASSERT_OK(address_resolve(&address, &any, &error));
    ASSERT_OK(tcp_listen(&any, "", &silent.fd, &address.port, &error));
    ASSERT_OK(loop_watch_open(scene->loop, silent.fd, LOOP_READ, silent_on_visit, &silent, &watch,
                              &error));
    chunk_peers_add(scene->ranks[1].peers,
                    &(struct chunk_peer_options){
                        .lease = 9, .key = scene->key, .addresses = &address, .address_count = 1});
    wait_for_link(scene, 1, 0);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(silent_want_count, 1); /* it stalls one chunk, and is asked for no other */
    assert_int_equal(scene->asked_count, CHUNKS);
    loop_watch_free(watch);
    close(silent.fd);
    link_free(silent_link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXCHANGE_TEST(what_another_lease_has_does_not_come_from_the_market),
        EXCHANGE_TEST(leases_that_start_together_fetch_each_chunk_about_once),
        EXCHANGE_TEST(who_has_another_key_gets_nothing_and_the_market_is_asked),
        EXCHANGE_TEST(one_that_sends_something_else_is_not_believed_again),
        EXCHANGE_TEST(what_is_not_offered_is_not_sent),
        EXCHANGE_TEST(nothing_is_sent_while_the_owner_needs_the_machine),
        EXCHANGE_TEST(a_chunk_whose_last_piece_is_refused_is_told_as_failed),
        EXCHANGE_TEST(one_that_asks_all_the_time_leaves_others_their_turn),
        EXCHANGE_TEST(one_that_stalls_does_not_hold_the_others_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
