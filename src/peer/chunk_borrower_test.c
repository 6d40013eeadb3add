/*
 * Leases that fetch from their borrower, over real links.
 * covers fetch.c, chunk_peers.c, chunk_server.c
 */
#include "peer/chunk_scene_internal.h"
#include "runtime/source_key.h"

#include <sys/socket.h>
#include <unistd.h>

static const uint8_t secret[SOURCE_SECRET_SIZE] = {3, 1, 4};

struct borrower {
    struct scene *scene;
    struct chunk_server *server;
    char bytes[CHUNK_BYTES];
    bool is_lying;
    size_t found_count;
};

static bool find_chunk(void *context, const struct blob_hash *hash, struct text *out_bytes)
{
    struct borrower *borrower = context;
    for (int i = 0; i < CHUNKS; i++) {
        if (!blob_hash_equal(&borrower->scene->hashes[i], hash))
            continue;
        memset(borrower->bytes, borrower->is_lying ? 'z' : 'a' + i, sizeof(borrower->bytes));
        *out_bytes = (struct text){borrower->bytes, sizeof(borrower->bytes)};
        borrower->found_count++;
        return true;
    }
    return false;
}

static void open_borrower(struct borrower *borrower, struct scene *scene)
{
    struct error error;
    *borrower = (struct borrower){.scene = scene};
    const struct chunk_server_options options = {.loop = scene->loop,
                                                 .lease = SOURCE_BORROWER,
                                                 .find = find_chunk,
                                                 .context = borrower,
                                                 .secret = secret};
    ASSERT_OK(chunk_server_open(&options, &borrower->server, &error));
    for (int i = 0; i < CHUNKS; i++)
        chunk_server_offer(borrower->server, &scene->hashes[i], /* is_held= */ true);
}

/* Rank `who` is told of it, with the key of `key_lease`. */
static void tell(struct scene *scene, size_t who, uint16_t port, uint64_t key_lease)
{
    const struct host_port address = {.host = "127.0.0.1", .port = port};
    uint8_t key[SOURCE_KEY_SIZE];
    source_key(secret, key_lease, key);
    chunk_peers_add(scene->ranks[who].peers, &(struct chunk_peer_options){.lease = SOURCE_BORROWER,
                                                                          .key = key,
                                                                          .addresses = &address,
                                                                          .address_count = 1,
                                                                          .is_borrower = true});
}

/* The fetch begins before the link is up. */
static void all_comes_from_the_borrower_and_nothing_from_the_market(void **state)
{
    struct scene *scene = *state;
    struct borrower borrower;
    open_borrower(&borrower, scene);
    tell(scene, 1, chunk_server_port(borrower.server), 2);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->asked_count, 0);
    assert_int_equal(scene->ranks[1].counts.direct_bytes, CHUNKS * CHUNK_BYTES);
    assert_int_equal(chunk_server_sent_bytes(borrower.server), CHUNKS * CHUNK_BYTES);
    chunk_server_free(borrower.server);
}

static void the_key_of_another_lease_opens_nothing(void **state)
{
    struct scene *scene = *state;
    struct borrower borrower;
    open_borrower(&borrower, scene);
    tell(scene, 1, chunk_server_port(borrower.server), 3);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->asked_count, CHUNKS);
    assert_int_equal(scene->ranks[1].counts.direct_bytes, 0);
    assert_int_equal(borrower.found_count, 0);
    chunk_server_free(borrower.server);
}

static void a_borrower_that_lies_is_not_believed_again(void **state)
{
    struct scene *scene = *state;
    struct error error;
    struct borrower borrower;
    struct buffer bytes AUTO_BUFFER;
    open_borrower(&borrower, scene);
    borrower.is_lying = true;
    tell(scene, 1, chunk_server_port(borrower.server), 2);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(borrower.found_count, 1);
    assert_int_equal(scene->asked_count, CHUNKS);
    buffer_init(&bytes, BLOB_BYTES_MAX);
    for (int i = 0; i < CHUNKS; i++) {
        buffer_clear(&bytes);
        ASSERT_OK(blob_store_read(scene->ranks[1].store, &scene->hashes[i], &bytes, &error));
    }
    chunk_server_free(borrower.server);
}

static void what_is_not_of_the_job_is_denied(void **state)
{
    struct scene *scene = *state;
    struct borrower borrower;
    struct blob_hash other;
    open_borrower(&borrower, scene);
    tell(scene, 1, chunk_server_port(borrower.server), 2);
    wait_for_link(scene, 1, 0);
    blob_hash_of("another job's", 13, &other);
    assert_true(chunk_peers_holding(scene->ranks[1].peers, 0, &other) == CHUNK_UNKNOWN);
    chunk_peers_want(scene->ranks[1].peers, 0, &other); /* asked for all the same */
    const int64_t end_ms = now_ms() + HUNG_MS;
    while (!chunk_peers_is_free(scene->ranks[1].peers, 0)) {
        assert_true(now_ms() < end_ms);
        turn(scene);
    }
    assert_int_equal(borrower.found_count, 0);
    assert_int_equal(chunk_server_sent_bytes(borrower.server), 0);
    chunk_server_free(borrower.server);
}

/* Nobody listens, or somebody who never says a word. */
static void one_that_cannot_be_reached_costs_a_moment(void **state)
{
    struct scene *scene = *state;
    struct error error;
    struct address any;
    AUTO_FD int fd = -1;
    uint16_t port = 0;
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    ASSERT_OK(tcp_listen(&any, "", &fd, &port, &error));
    tell(scene, 2, port, 3);
    start_fetch(scene, 2);
    finish_fetch(scene, 2);
    assert_int_equal(scene->asked_count, CHUNKS);
    assert_int_equal(scene->ranks[2].counts.direct_bytes, 0);
    close(TAKE_FD(fd));
    tell(scene, 1, port, 2);
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->asked_count, 2 * CHUNKS);
}

static void one_that_leaves_in_the_middle_is_made_up_for(void **state)
{
    struct scene *scene = *state;
    struct borrower borrower;
    open_borrower(&borrower, scene);
    tell(scene, 1, chunk_server_port(borrower.server), 2);
    start_fetch(scene, 1);
    while (borrower.found_count < 3)
        turn(scene);
    chunk_server_free(borrower.server);
    finish_fetch(scene, 1);
    assert_true(scene->asked_count >= CHUNKS - 3 && scene->asked_count < CHUNKS);
}

/* One that has the key and says what it has without end. */
struct talker {
    struct scene *scene;
    struct link *link;
    size_t sent_count;
    bool is_closed;
};

static int find_talkers_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    source_key(secret, 2, out_key);
    return 0;
}

static void talk(struct link *link, void *context)
{
    static const char hashes[CHUNK_LINK_HASHES_MAX * BLOB_HASH_SIZE];
    struct talker *talker = context;
    struct error error; /* the queue is full for now */
    while (link_send_text(link, CHUNK_LINK_HAS, (struct text){hashes, sizeof(hashes)}, &error) == 0)
        talker->sent_count += CHUNK_LINK_HASHES_MAX;
}

static void begin_to_talk(struct link *link, struct text identity, void *context)
{
    (void)identity;
    talk(link, context);
}

static void on_word(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)type, (void)payload, (void)context;
}

static void on_left(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    ((struct talker *)context)->is_closed = true;
}

static void one_that_talks_without_end_is_left(void **state)
{
    struct scene *scene = *state;
    struct error error;
    struct address any;
    struct talker talker = {.scene = scene};
    AUTO_FD int listen_fd = -1;
    uint16_t port = 0;
    int fd;
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    ASSERT_OK(tcp_listen(&any, "", &listen_fd, &port, &error));
    tell(scene, 1, port, 2);
    while ((fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
        turn(scene);
    const struct link_options options = {.loop = scene->loop,
                                         .is_server = true,
                                         .find_key = find_talkers_key,
                                         .payload_max = CHUNK_LINK_PAYLOAD_MAX,
                                         .callbacks = {.on_open = begin_to_talk,
                                                       .on_frame = on_word,
                                                       .on_close = on_left,
                                                       .on_drained = talk},
                                         .context = &talker};
    ASSERT_OK(link_open_take(&options, fd, &talker.link, &error));
    while (!talker.is_closed) /* or the test runs into its time limit */
        turn(scene);
    assert_true(talker.sent_count >
                (size_t)2 * CHUNK_SERVER_OFFERS_MAX); /* as much as one may have */
    start_fetch(scene, 1);
    finish_fetch(scene, 1);
    assert_int_equal(scene->asked_count, CHUNKS);
    link_free(talker.link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXCHANGE_TEST(all_comes_from_the_borrower_and_nothing_from_the_market),
        EXCHANGE_TEST(the_key_of_another_lease_opens_nothing),
        EXCHANGE_TEST(a_borrower_that_lies_is_not_believed_again),
        EXCHANGE_TEST(what_is_not_of_the_job_is_denied),
        EXCHANGE_TEST(one_that_cannot_be_reached_costs_a_moment),
        EXCHANGE_TEST(one_that_leaves_in_the_middle_is_made_up_for),
        EXCHANGE_TEST(one_that_talks_without_end_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
