/* covers packet_link.c, seal.c */
#include "base/assert.h"
#include "base/buffer.h"
#include "net/packet.h"
#include "net/packet_link.h"
#include "net/seal.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BULK_SIZE = 8 << 20 };

static const uint8_t KEY[LINK_KEY_SIZE] = "0123456789abcdef0123456789abcde";
static const uint8_t OTHER_KEY[LINK_KEY_SIZE] = "another key that is not the same";

struct end {
    struct packet_link *link;
    bool is_open, is_closed, frees_itself;
    struct error reason; /* code NONE: in good order */
    int records, rooms;
    struct buffer received;
};

struct fixture {
    struct loop *loop;
    struct end client, server;
};

static void on_open(struct packet_link *link, void *context)
{
    struct end *end = context;
    assert_ptr_equal(link, end->link);
    end->is_open = true;
}

static void on_record(struct packet_link *link, uint8_t *bytes, size_t size, void *context)
{
    struct end *end = context;
    end->records++;
    buffer_append(&end->received, bytes, size);
    if (end->frees_itself) {
        packet_link_free(link);
        end->link = NULL;
    }
}

static void on_close(struct packet_link *link, const struct error *reason, void *context)
{
    struct end *end = context;
    assert_false(end->is_closed);
    end->is_closed = true;
    if (reason)
        end->reason = *reason;
    packet_link_free(link);
    end->link = NULL;
}

static void on_room(struct packet_link *link, void *context)
{
    struct end *end = context;
    assert_ptr_equal(link, end->link);
    end->rooms++;
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context;
    if (!text_equal(identity, TEXT("lease:7")))
        return -1;
    memcpy(out_key, KEY, LINK_KEY_SIZE);
    return 0;
}

static void open_end(struct fixture *fixture, struct end *end, int fd, const uint8_t *key,
                     int64_t seal_key_bytes)
{
    struct error error = {0};
    const struct packet_link_options options = {.loop = fixture->loop,
                                                .is_server = end == &fixture->server,
                                                .identity = "lease:7",
                                                .key = key,
                                                .find_key = find_key,
                                                .handshake_timeout_ms = 2000,
                                                .seal_key_bytes = seal_key_bytes,
                                                .callbacks = {.on_open = on_open,
                                                              .on_record = on_record,
                                                              .on_close = on_close,
                                                              .on_room = on_room},
                                                .context = end};
    ASSERT_OK(packet_link_open_take(&options, fd, &end->link, &error));
}

static void step(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(loop_step(fixture->loop, 5000, &error));
}

static void fixture_open(struct fixture *fixture)
{
    struct error error = {0};
    *fixture = (struct fixture){0};
    buffer_init(&fixture->client.received, 64 << 20);
    buffer_init(&fixture->server.received, 64 << 20);
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
}

static void fixture_connect(struct fixture *fixture, int64_t seal_key_bytes)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    open_end(fixture, &fixture->client, fds[0], KEY, seal_key_bytes);
    open_end(fixture, &fixture->server, fds[1], NULL, seal_key_bytes);
    while (!fixture->client.is_open || !fixture->server.is_open) {
        step(fixture);
        assert_false(fixture->client.is_closed || fixture->server.is_closed);
    }
}

static void fixture_close(struct fixture *fixture)
{
    packet_link_free(fixture->client.link);
    packet_link_free(fixture->server.link);
    buffer_done(&fixture->client.received);
    buffer_done(&fixture->server.received);
    loop_free(fixture->loop);
}

/* Adds `size` bytes; false when there is no room. */
static bool put(struct end *end, uint8_t value, size_t size)
{
    uint8_t *room = packet_link_room(end->link);
    if (!room)
        return false;
    memset(room, value, size);
    packet_link_add(end->link, size);
    return true;
}

TEST(packets_of_one_flush_come_as_one_record)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_connect(&fixture, 0);
    assert_true(put(&fixture.client, 'a', 3));
    assert_true(put(&fixture.client, 'b', 2));
    packet_link_flush(fixture.client.link);
    while (fixture.server.received.size < 5)
        step(&fixture);
    assert_int_equal(fixture.server.records, 1);
    assert_memory_equal(fixture.server.received.data, "aaabb", 5);
    /* And the other way. */
    assert_true(put(&fixture.server, 'c', 1));
    packet_link_flush(fixture.server.link);
    while (fixture.client.received.size < 1)
        step(&fixture);
    assert_memory_equal(fixture.client.received.data, "c", 1);
    fixture_close(&fixture);
}

static void send_bulk(struct fixture *fixture)
{
    size_t sent = 0;
    while (sent < BULK_SIZE) {
        const size_t size = 1 + sent % 60000;
        if (put(&fixture->client, (uint8_t)(sent % 251), size)) {
            sent += size;
            continue;
        }
        packet_link_flush(fixture->client.link);
        const int rooms = fixture->client.rooms;
        while (fixture->client.rooms == rooms)
            step(fixture);
    }
    packet_link_flush(fixture->client.link);
    while (fixture->server.received.size < sent)
        step(fixture);
    assert_int_equal(fixture->server.received.size, sent);
    for (size_t at = 0; at < sent;) {
        const size_t size = 1 + at % 60000;
        for (size_t i = 0; i < size; i += 997)
            assert_int_equal(fixture->server.received.data[at + i], at % 251);
        at += size;
    }
}

TEST(full_link_has_no_room_until_it_says_so_and_nothing_is_lost)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_connect(&fixture, 0);
    send_bulk(&fixture);
    assert_true(fixture.client.rooms > 0);
    assert_int_equal(packet_link_queued_bytes(fixture.client.link), 0);
    fixture_close(&fixture);
}

TEST(keys_change_on_the_way_without_a_word)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_connect(&fixture, 100000);
    send_bulk(&fixture);
    fixture_close(&fixture);
}

TEST(wrong_key_is_refused_by_both_ends)
{
    struct fixture fixture;
    fixture_open(&fixture);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    open_end(&fixture, &fixture.client, fds[0], OTHER_KEY, 0);
    open_end(&fixture, &fixture.server, fds[1], NULL, 0);
    while (!fixture.client.is_closed || !fixture.server.is_closed)
        step(&fixture);
    assert_false(fixture.client.is_open || fixture.server.is_open);
    assert_int_equal(fixture.server.reason.code, ERROR_REFUSED);
    fixture_close(&fixture);
}

TEST(silent_peer_is_given_up)
{
    struct fixture fixture;
    fixture_open(&fixture);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    open_end(&fixture, &fixture.server, fds[1], NULL, 0);
    while (!fixture.server.is_closed)
        step(&fixture);
    assert_int_equal(fixture.server.reason.code, ERROR_UNAVAILABLE);
    close(fds[0]);
    fixture_close(&fixture);
}

TEST(end_between_records_is_a_good_one)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_connect(&fixture, 0);
    packet_link_free(TAKE(fixture.client.link));
    while (!fixture.server.is_closed)
        step(&fixture);
    assert_int_equal(fixture.server.reason.code, ERROR_NONE);
    fixture_close(&fixture);
}

TEST(link_may_be_freed_in_its_own_callback)
{
    struct fixture fixture;
    fixture_open(&fixture);
    fixture_connect(&fixture, 0);
    fixture.server.frees_itself = true;
    assert_true(put(&fixture.client, 'a', 3));
    packet_link_flush(fixture.client.link);
    while (!fixture.client.is_closed)
        step(&fixture);
    assert_int_equal(fixture.server.records, 1);
    fixture_close(&fixture);
}

/* A man in the middle who passes on the handshake and then changes bytes. */
struct middle {
    struct fixture fixture;
    int client_fd, server_fd;
};

static void middle_open(struct middle *middle)
{
    fixture_open(&middle->fixture);
    int left[2], right[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, left), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, right), 0);
    open_end(&middle->fixture, &middle->fixture.client, left[0], KEY, 0);
    open_end(&middle->fixture, &middle->fixture.server, right[0], NULL, 0);
    middle->client_fd = left[1];
    middle->server_fd = right[1];
    struct error error = {0};
    char bytes[4096];
    while (!middle->fixture.client.is_open || !middle->fixture.server.is_open) {
        ASSERT_OK(loop_step(middle->fixture.loop, 1, &error));
        assert_false(middle->fixture.client.is_closed || middle->fixture.server.is_closed);
        ssize_t size = read(middle->client_fd, bytes, sizeof(bytes));
        if (size > 0)
            assert_int_equal(write(middle->server_fd, bytes, (size_t)size), size);
        size = read(middle->server_fd, bytes, sizeof(bytes));
        if (size > 0)
            assert_int_equal(write(middle->client_fd, bytes, (size_t)size), size);
    }
}

/* The client's next record of one packet. */
static size_t middle_take_record(struct middle *middle, uint8_t bytes[256])
{
    struct error error = {0};
    assert_true(put(&middle->fixture.client, 'x', 100));
    packet_link_flush(middle->fixture.client.link);
    ASSERT_OK(loop_step(middle->fixture.loop, 0, &error));
    const ssize_t size = read(middle->client_fd, bytes, 256);
    assert_int_equal(size, 100 + SEAL_OVERHEAD);
    return (size_t)size;
}

static void middle_send(struct middle *middle, const uint8_t *bytes, size_t size)
{
    assert_int_equal(write(middle->server_fd, bytes, size), size);
}

static void middle_expect_end(struct middle *middle, enum error_code code, int records)
{
    while (!middle->fixture.server.is_closed)
        step(&middle->fixture);
    assert_int_equal(middle->fixture.server.reason.code, code);
    assert_int_equal(middle->fixture.server.records, records);
    close(middle->client_fd);
    close(middle->server_fd);
    fixture_close(&middle->fixture);
}

TEST(changed_record_ends_the_link)
{
    struct middle middle;
    middle_open(&middle);
    uint8_t bytes[256];
    const size_t size = middle_take_record(&middle, bytes);
    bytes[50] ^= 1;
    middle_send(&middle, bytes, size);
    middle_expect_end(&middle, ERROR_CORRUPT, 0);
}

TEST(repeated_record_ends_the_link)
{
    struct middle middle;
    middle_open(&middle);
    uint8_t bytes[256];
    const size_t size = middle_take_record(&middle, bytes);
    middle_send(&middle, bytes, size);
    middle_send(&middle, bytes, size);
    middle_expect_end(&middle, ERROR_CORRUPT, 1);
}

TEST(left_out_record_ends_the_link)
{
    struct middle middle;
    middle_open(&middle);
    uint8_t bytes[256];
    size_t size = middle_take_record(&middle, bytes);
    size = middle_take_record(&middle, bytes);
    middle_send(&middle, bytes, size);
    middle_expect_end(&middle, ERROR_CORRUPT, 0);
}

TEST(record_too_large_or_empty_ends_the_link_before_it_is_stored)
{
    static const uint8_t headers[][4] = {{0xff, 0xff, 0xff, 0x7f}, {0, 0, 0, 0}};
    for (size_t i = 0; i < 2; i++) {
        struct middle middle;
        middle_open(&middle);
        middle_send(&middle, headers[i], 4);
        middle_expect_end(&middle, ERROR_CORRUPT, 0);
    }
}

TEST(end_inside_a_record_is_told)
{
    struct middle middle;
    middle_open(&middle);
    uint8_t bytes[256];
    const size_t size = middle_take_record(&middle, bytes);
    middle_send(&middle, bytes, size - 1);
    assert_int_equal(shutdown(middle.server_fd, SHUT_WR), 0);
    middle_expect_end(&middle, ERROR_CORRUPT, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_of_one_flush_come_as_one_record),
        cmocka_unit_test(full_link_has_no_room_until_it_says_so_and_nothing_is_lost),
        cmocka_unit_test(keys_change_on_the_way_without_a_word),
        cmocka_unit_test(wrong_key_is_refused_by_both_ends),
        cmocka_unit_test(silent_peer_is_given_up),
        cmocka_unit_test(end_between_records_is_a_good_one),
        cmocka_unit_test(link_may_be_freed_in_its_own_callback),
        cmocka_unit_test(changed_record_ends_the_link),
        cmocka_unit_test(repeated_record_ends_the_link),
        cmocka_unit_test(left_out_record_ends_the_link),
        cmocka_unit_test(record_too_large_or_empty_ends_the_link_before_it_is_stored),
        cmocka_unit_test(end_inside_a_record_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
