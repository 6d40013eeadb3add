/* Links whose frames travel in records, in good order; covers link_in.c, link_out.c */
#include "base/scope.h"
#include "net/link_bulk_fixture_internal.h"
#include "wire/frame.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* --- in good order --- */

static void exchange_bulk(const struct link_options *client, const struct link_options *server,
                          struct fixture *fixture)
{
    struct error error;
    char *bulk = make_bulk(BULK_SIZE);
    const struct text half[2] = {{bulk, BULK_SIZE / 2}, {bulk + BULK_SIZE / 2, BULK_SIZE / 2}};
    open_ends(fixture, client, server);
    ASSERT_OK(link_send(fixture->client.link, 1, half, 2, &error));
    ASSERT_OK(link_send(fixture->server.link, 2, half, 2, &error));
    while (fixture->server.frames < 1 || fixture->client.frames < 1 ||
           link_queued_bytes(fixture->server.link) + link_queued_bytes(fixture->client.link) > 0)
        step(fixture, -1);
    assert_int_equal(fixture->server.received.size, BULK_SIZE);
    assert_memory_equal(fixture->server.received.data, bulk, BULK_SIZE);
    assert_int_equal(fixture->client.received.size, BULK_SIZE);
    assert_memory_equal(fixture->client.received.data, bulk, BULK_SIZE);
    assert_int_equal(fixture->client.drained, 1);
    assert_int_equal(link_sent_bytes(fixture->client.link), BULK_SIZE + FRAME_HEADER_SIZE);
    assert_int_equal(link_received_bytes(fixture->client.link), BULK_SIZE + FRAME_HEADER_SIZE);
    free(bulk);
}

TEST(twenty_megabytes_go_both_ways)
{
    struct fixture fixture;
    fixture_open(&fixture);
    const struct link_options client = options_of(&fixture, &fixture.client);
    const struct link_options server = options_of(&fixture, &fixture.server);
    exchange_bulk(&client, &server, &fixture);
    fixture_close(&fixture);
}

TEST(where_one_end_does_not_ask_for_it_frames_travel_in_tls)
{
    for (int who = 0; who < 2; who++) {
        struct fixture fixture;
        fixture_open(&fixture);
        struct link_options client = options_of(&fixture, &fixture.client);
        struct link_options server = options_of(&fixture, &fixture.server);
        client.is_bulk = who == 0;
        server.is_bulk = who == 1;
        exchange_bulk(&client, &server, &fixture);
        fixture_close(&fixture);
    }
}

/* Frames of sizes around every boundary, some sent before the handshake. */
static void exchange_sizes(int64_t key_bytes, uint64_t key_records)
{
    static const size_t sizes[] = {0, 1, 16, 16375, 16376, 16377, LARGE, 3, LARGE, LARGE, 0, 40000};
    enum { COUNT = sizeof(sizes) / sizeof(*sizes), ROUNDS = 20 };
    struct error error;
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    struct link_options server = options_of(&fixture, &fixture.server);
    client.seal_key_bytes = server.seal_key_bytes = key_bytes;
    client.seal_key_records = server.seal_key_records = key_records;
    client.queue_max_bytes = 64 << 20;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ASSERT_OK(link_open_take(&client, fds[0], &fixture.client.link, &error));
    ASSERT_OK(link_open_take(&server, fds[1], &fixture.server.link, &error));
    char *bulk = make_bulk(LARGE);
    struct buffer sent AUTO_BUFFER;
    buffer_init(&sent, 64 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            const struct text parts[2] = {{bulk, sizes[i] / 3},
                                          {bulk + sizes[i] / 3, sizes[i] - sizes[i] / 3}};
            ASSERT_OK(link_send(fixture.client.link, 1, parts, 2, &error));
            buffer_append(&sent, bulk, sizes[i]);
        }
        step(&fixture, 0);
    }
    link_finish(fixture.client.link);
    while (!fixture.client.is_closed || !fixture.server.is_closed)
        step(&fixture, -1);
    assert_int_equal(fixture.client.reason.code, ERROR_NONE);
    assert_int_equal(fixture.server.reason.code, ERROR_NONE);
    assert_int_equal(fixture.server.frames, ROUNDS * COUNT);
    assert_int_equal(fixture.server.received.size, sent.size);
    assert_memory_equal(fixture.server.received.data, sent.data, sent.size);
    free(bulk);
    fixture_close(&fixture);
}

TEST(frames_of_all_sizes_arrive_in_order_and_the_end_is_in_good_order)
{
    exchange_sizes(0, 0);
}

TEST(keys_change_after_so_many_bytes)
{
    exchange_sizes(150000, 0);
}

TEST(keys_change_after_so_many_records)
{
    exchange_sizes(0, 1);
}

TEST(a_paused_link_holds_its_frames_until_it_goes_on)
{
    struct error error;
    struct fixture fixture;
    open_pair(&fixture);
    link_set_paused(fixture.server.link, true);
    for (int i = 0; i < 10; i++)
        ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("x"), &error));
    while (link_queued_bytes(fixture.client.link) > 0)
        step(&fixture, -1);
    step(&fixture, 0);
    assert_int_equal(fixture.server.frames, 0);
    link_set_paused(fixture.server.link, false);
    while (fixture.server.frames < 10)
        step(&fixture, -1);
    fixture_close(&fixture);
}

TEST(links_without_encryption_need_both_ends_to_ask)
{
    for (int who = 0; who < 2; who++) {
        struct fixture fixture;
        fixture_open(&fixture);
        struct link_options client = options_of(&fixture, &fixture.client);
        struct link_options server = options_of(&fixture, &fixture.server);
        client.is_bench_plain = who == 0;
        server.is_bench_plain = who == 1;
        open_ends(&fixture, &client, &server);
        while (!fixture.client.is_closed || !fixture.server.is_closed)
            step(&fixture, -1);
        assert_int_equal((who == 0 ? fixture.client : fixture.server).reason.code, ERROR_REFUSED);
        assert_int_equal(fixture.client.frames + fixture.server.frames, 0);
        fixture_close(&fixture);
    }
}

TEST(links_without_encryption_carry_what_is_sent)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    struct link_options server = options_of(&fixture, &fixture.server);
    client.is_bench_plain = server.is_bench_plain = true;
    exchange_bulk(&client, &server, &fixture);
    fixture_close(&fixture);
}

/* --- frames with a place of their own, and those expected --- */

/* Between others, in pieces that end anywhere. */
static void exchange_placed(bool is_plain)
{
    static const size_t sizes[] = {LARGE, LARGE, 5, LARGE, LARGE + 1, 20000, LARGE, LARGE};
    enum { COUNT = sizeof(sizes) / sizeof(*sizes), ROUNDS = 20, PLACED = 5 };
    struct error error;
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    struct link_options server = options_of(&fixture, &fixture.server);
    client.is_bench_plain = server.is_bench_plain = is_plain;
    client.queue_max_bytes = 64 << 20;
    fixture.server.place = malloc(PLACE_SIZE);
    assert_non_null(fixture.server.place);
    open_ends(&fixture, &client, &server);
    char *bulk = make_bulk(LARGE + ROUNDS * COUNT);
    struct buffer sent AUTO_BUFFER;
    buffer_init(&sent, 64 << 20);
    for (int i = 0; i < ROUNDS * COUNT; i++) {
        const struct text parts[2] = {
            {bulk + i, LINK_HEAD_SIZE - 3},
            {bulk + i + LINK_HEAD_SIZE - 3, sizes[i % COUNT] - (LINK_HEAD_SIZE - 3)}};
        ASSERT_OK(link_send(fixture.client.link, PLACED_TYPE, parts, 2, &error));
        buffer_append(&sent, bulk + i, sizes[i % COUNT]);
        if (i % 3 == 0)
            step(&fixture, 0);
    }
    link_finish(fixture.client.link);
    while (!fixture.client.is_closed || !fixture.server.is_closed)
        step(&fixture, -1);
    assert_int_equal(fixture.server.reason.code, ERROR_NONE);
    assert_int_equal(fixture.server.frames, ROUNDS * COUNT);
    assert_int_equal(fixture.server.placed, ROUNDS * PLACED);
    assert_int_equal(fixture.server.received.size, sent.size);
    assert_memory_equal(fixture.server.received.data, sent.data, sent.size);
    free(bulk);
    fixture_close(&fixture);
}

TEST(sealed_frames_are_opened_into_their_place)
{
    exchange_placed(false);
}

TEST(plain_frames_are_received_into_their_place)
{
    exchange_placed(true);
}

static void tcp_pair(int out_fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    AUTO_FD int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listen_fd, 1), 0);
    assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&address, &size), 0);
    out_fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(out_fds[0], (struct sockaddr *)&address, size), 0);
    out_fds[1] = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(out_fds[1] >= 0);
}

/* Over TCP, where the number of bytes that wakes a receiver counts: the frame behind all that was
 * expected comes, however small it is. */
TEST(what_is_expected_and_the_little_behind_it_arrives)
{
    enum { FRAMES = 40 };
    struct error error;
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options client = options_of(&fixture, &fixture.client);
    struct link_options server = options_of(&fixture, &fixture.server);
    client.queue_max_bytes = 64 << 20;
    int fds[2];
    tcp_pair(fds);
    open_ends_on(&fixture, &client, &server, fds);
    char *bulk = make_bulk(LARGE);
    for (int round = 0; round < 3; round++) {
        link_expect(fixture.server.link, (size_t)FRAMES * LARGE);
        for (int i = 0; i < FRAMES; i++)
            ASSERT_OK(link_send_text(fixture.client.link, 1, (struct text){bulk, LARGE}, &error));
        while (fixture.server.frames < round * (FRAMES + 1) + FRAMES)
            step(&fixture, -1);
        ASSERT_OK(link_send_text(fixture.client.link, 1, TEXT("x"), &error));
        while (fixture.server.frames < (round + 1) * (FRAMES + 1))
            step(&fixture, -1);
    }
    /* And the end is told at once, whatever was expected. */
    link_expect(fixture.server.link, (size_t)FRAMES * LARGE);
    ASSERT_OK(link_send_text(fixture.client.link, 1, (struct text){bulk, LARGE}, &error));
    while (link_queued_bytes(fixture.client.link) > 0)
        step(&fixture, -1);
    link_free(TAKE(fixture.client.link));
    while (!fixture.server.is_closed)
        step(&fixture, -1);
    assert_int_equal(fixture.server.reason.code, ERROR_UNAVAILABLE);
    free(bulk);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_megabytes_go_both_ways),
        cmocka_unit_test(where_one_end_does_not_ask_for_it_frames_travel_in_tls),
        cmocka_unit_test(frames_of_all_sizes_arrive_in_order_and_the_end_is_in_good_order),
        cmocka_unit_test(keys_change_after_so_many_bytes),
        cmocka_unit_test(keys_change_after_so_many_records),
        cmocka_unit_test(a_paused_link_holds_its_frames_until_it_goes_on),
        cmocka_unit_test(links_without_encryption_need_both_ends_to_ask),
        cmocka_unit_test(links_without_encryption_carry_what_is_sent),
        cmocka_unit_test(sealed_frames_are_opened_into_their_place),
        cmocka_unit_test(plain_frames_are_received_into_their_place),
        cmocka_unit_test(what_is_expected_and_the_little_behind_it_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
