/*
 * Links whose frames travel in sealed records; covers link_in.c, link_out.c
 *
 * Most tests stand between the two ends, see every byte and change some.
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "net/link.h"
#include "net/link_tls_internal.h"
#include "net/seal.h"
#include "testing/testing.h"
#include "wire/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAYLOAD_MAX = 32 << 20, LARGE = 100000, BULK_SIZE = 20 << 20 };

static const uint8_t KEY[LINK_KEY_SIZE] = "0123456789abcdef0123456789abcde";

struct end {
    struct link *link;
    bool is_open, is_closed;
    struct error reason; /* code NONE: in good order */
    int frames;
    int drained;
    struct buffer received;
};

struct fixture {
    struct loop *loop;
    struct end client, server;
    int client_side, server_side; /* what lies between; -1: nothing does */
};

static void on_open(struct link *link __attribute__((unused)),
                    struct text identity __attribute__((unused)), void *context)
{
    ((struct end *)context)->is_open = true;
}

static void on_frame(struct link *link __attribute__((unused)),
                     uint16_t type __attribute__((unused)), struct text payload, void *context)
{
    struct end *end = context;
    end->frames++;
    buffer_append_text(&end->received, payload);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    struct end *end = context;
    assert_false(end->is_closed);
    end->is_closed = true;
    if (reason)
        end->reason = *reason;
    link_free(link);
    end->link = NULL;
}

static void on_drained(struct link *link __attribute__((unused)), void *context)
{
    ((struct end *)context)->drained++;
}

static int find_key(void *context __attribute__((unused)),
                    struct text identity __attribute__((unused)), uint8_t out_key[LINK_KEY_SIZE])
{
    memcpy(out_key, KEY, LINK_KEY_SIZE);
    return 0;
}

static struct link_options options_of(struct fixture *fixture, struct end *end)
{
    return (struct link_options){
        .loop = fixture->loop,
        .is_server = end == &fixture->server,
        .identity = "lease:7:1",
        .key = KEY,
        .find_key = find_key,
        .payload_max = PAYLOAD_MAX,
        .is_bulk = true,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = end,
    };
}

static void fixture_open(struct fixture *fixture)
{
    struct error error;
    *fixture = (struct fixture){.client_side = -1, .server_side = -1};
    buffer_init(&fixture->client.received, 64 << 20);
    buffer_init(&fixture->server.received, 64 << 20);
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
}

static void fixture_close(struct fixture *fixture)
{
    link_free(fixture->client.link);
    link_free(fixture->server.link);
    buffer_done(&fixture->client.received);
    buffer_done(&fixture->server.received);
    loop_free(fixture->loop);
    if (fixture->client_side >= 0)
        close(fixture->client_side);
    if (fixture->server_side >= 0)
        close(fixture->server_side);
}

static void step(struct fixture *fixture, int64_t wait_ms)
{
    struct error error;
    ASSERT_OK(loop_step(fixture->loop, wait_ms, &error));
}

/* Opens both ends on one socket pair and waits until they stand or fall. */
static void open_ends(struct fixture *fixture, const struct link_options *client,
                      const struct link_options *server)
{
    struct error error;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ASSERT_OK(link_open_take(client, fds[0], &fixture->client.link, &error));
    ASSERT_OK(link_open_take(server, fds[1], &fixture->server.link, &error));
    while ((!fixture->client.is_open && !fixture->client.is_closed) ||
           (!fixture->server.is_open && !fixture->server.is_closed))
        step(fixture, -1);
}

static void open_pair(struct fixture *fixture)
{
    fixture_open(fixture);
    const struct link_options client = options_of(fixture, &fixture->client);
    const struct link_options server = options_of(fixture, &fixture->server);
    open_ends(fixture, &client, &server);
}

static char *make_bulk(size_t size)
{
    char *bulk = malloc(size);
    assert_non_null(bulk);
    for (size_t i = 0; i < size; i++)
        bulk[i] = (char)(i * 2654435761U >> 13);
    return bulk;
}

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

/* --- somebody in between --- */

/* Moves what is there; returns whether anything was. */
static bool carry(int from, int to)
{
    char bytes[65536];
    const ssize_t got = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0)
        return false;
    assert_int_equal(send(to, bytes, (size_t)got, MSG_NOSIGNAL), got);
    return true;
}

/* Two ends that stand, whose bytes now go nowhere but by this hand. */
static void open_between(struct fixture *fixture)
{
    struct error error;
    int left[2], right[2];
    fixture_open(fixture);
    const struct link_options client = options_of(fixture, &fixture->client);
    const struct link_options server = options_of(fixture, &fixture->server);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, left), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, right), 0);
    fixture->client_side = left[1];
    fixture->server_side = right[1];
    ASSERT_OK(link_open_take(&client, left[0], &fixture->client.link, &error));
    ASSERT_OK(link_open_take(&server, right[0], &fixture->server.link, &error));
    while (!fixture->client.is_open || !fixture->server.is_open) {
        step(fixture, 0);
        carry(left[1], right[1]);
        carry(right[1], left[1]);
    }
}

struct records {
    uint8_t bytes[3][4096];
    size_t sizes[3];
};

/* One record of one frame from the client, taken off the wire. */
static void take_record(struct fixture *fixture, struct text payload, struct records *records,
                        int index)
{
    struct error error;
    ASSERT_OK(link_send_text(fixture->client.link, 1, payload, &error));
    while (link_queued_bytes(fixture->client.link) > 0)
        step(fixture, -1);
    const size_t size = FRAME_HEADER_SIZE + payload.size + SEAL_OVERHEAD;
    assert_int_equal(recv(fixture->client_side, records->bytes[index], size, MSG_WAITALL), size);
    assert_int_equal(seal_content_size(records->bytes[index]), FRAME_HEADER_SIZE + payload.size);
    records->sizes[index] = size;
}

static void open_with_records(struct fixture *fixture, struct records *records)
{
    open_between(fixture);
    take_record(fixture, TEXT("the first secret"), records, 0);
    take_record(fixture, TEXT("the second secret"), records, 1);
    take_record(fixture, TEXT("the third one"), records, 2);
}

static void put(const struct fixture *fixture, const struct records *records, int index)
{
    assert_int_equal(
        send(fixture->server_side, records->bytes[index], records->sizes[index], MSG_NOSIGNAL),
        records->sizes[index]);
}

static void expect_end(struct fixture *fixture, enum error_code code, int frames)
{
    while (!fixture->server.is_closed)
        step(fixture, -1);
    assert_int_equal(fixture->server.reason.code, code);
    assert_int_equal(fixture->server.frames, frames);
    fixture_close(fixture);
}

TEST(nothing_of_a_frame_can_be_read_on_the_way)
{
    struct fixture fixture;
    struct records records;
    open_with_records(&fixture, &records);
    assert_null(memmem(records.bytes[0], records.sizes[0], "first", 5));
    assert_null(memmem(records.bytes[1], records.sizes[1], "secret", 6));
    for (int i = 0; i < 3; i++)
        put(&fixture, &records, i);
    while (fixture.server.frames < 3)
        step(&fixture, -1);
    assert_true(text_equal(buffer_text(&fixture.server.received),
                           TEXT("the first secretthe second secretthe third one")));
    fixture_close(&fixture);
}

TEST(a_changed_byte_anywhere_in_a_record_ends_the_link)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    const size_t size = records.sizes[0];
    fixture_close(&fixture);
    /* Of the header only the lowest byte: with a larger size the record is not whole yet. */
    for (size_t at = 0; at < size; at = at == 0 ? SEAL_HEADER_SIZE : at + 1) {
        open_with_records(&fixture, &records);
        records.bytes[0][at] ^= at == 0 ? 1 : 0x10;
        put(&fixture, &records, 0);
        put(&fixture, &records, 1);
        expect_end(&fixture, ERROR_CORRUPT, 0);
    }
}

TEST(a_record_that_announces_more_than_a_frame_may_have_ends_the_link)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    records.bytes[0][3] = 0x7f;
    put(&fixture, &records, 0);
    expect_end(&fixture, ERROR_CORRUPT, 0);
    open_with_records(&fixture, &records);
    memset(records.bytes[0], 0, SEAL_HEADER_SIZE);
    put(&fixture, &records, 0);
    expect_end(&fixture, ERROR_CORRUPT, 0);
}

TEST(a_record_that_comes_twice_ends_the_link)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    put(&fixture, &records, 0);
    put(&fixture, &records, 0);
    expect_end(&fixture, ERROR_CORRUPT, 1);
}

TEST(records_in_another_order_end_the_link)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    put(&fixture, &records, 0);
    put(&fixture, &records, 2);
    put(&fixture, &records, 1);
    expect_end(&fixture, ERROR_CORRUPT, 1);
}

TEST(a_record_left_out_ends_the_link)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    put(&fixture, &records, 1);
    expect_end(&fixture, ERROR_CORRUPT, 0);
}

TEST(a_record_of_another_link_ends_the_link)
{
    struct records records;
    struct fixture other, fixture;
    open_with_records(&other, &records);
    open_between(&fixture);
    put(&fixture, &records, 0);
    expect_end(&fixture, ERROR_CORRUPT, 0);
    fixture_close(&other);
}

TEST(a_record_sent_back_to_its_sender_ends_the_link)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    assert_int_equal(send(fixture.client_side, records.bytes[0], records.sizes[0], MSG_NOSIGNAL),
                     records.sizes[0]);
    while (!fixture.client.is_closed)
        step(&fixture, -1);
    assert_int_equal(fixture.client.reason.code, ERROR_CORRUPT);
    assert_int_equal(fixture.client.frames, 0);
    fixture_close(&fixture);
}

TEST(an_end_between_two_records_without_a_farewell_is_told)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    put(&fixture, &records, 0);
    assert_int_equal(shutdown(fixture.server_side, SHUT_WR), 0);
    expect_end(&fixture, ERROR_UNAVAILABLE, 1);
}

TEST(an_end_inside_a_record_is_told)
{
    struct records records;
    struct fixture fixture;
    open_with_records(&fixture, &records);
    records.sizes[0]--;
    put(&fixture, &records, 0);
    assert_int_equal(shutdown(fixture.server_side, SHUT_WR), 0);
    while (!fixture.server.is_closed)
        step(&fixture, -1);
    assert_non_null(strstr(fixture.server.reason.message, "inside a frame"));
    expect_end(&fixture, ERROR_UNAVAILABLE, 0);
}

/* The farewell on the wire, whose place in the order is `before` frames in. */
static size_t take_farewell(struct fixture *fixture, uint8_t out[64])
{
    link_finish(fixture->client.link);
    size_t size = 0;
    for (ssize_t got = 1; got != 0;) {
        step(fixture, 0);
        got = recv(fixture->client_side, out + size, 64 - size, MSG_DONTWAIT);
        assert_true(got >= 0 || errno == EAGAIN);
        size += got > 0 ? (size_t)got : 0;
    }
    return size;
}

TEST(a_farewell_between_frames_is_in_good_order)
{
    struct records records;
    struct fixture fixture;
    uint8_t farewell[64];
    open_with_records(&fixture, &records);
    const size_t size = take_farewell(&fixture, farewell);
    assert_int_equal(size, SEAL_OVERHEAD + 1);
    for (int i = 0; i < 3; i++)
        put(&fixture, &records, i);
    assert_int_equal(send(fixture.server_side, farewell, size, MSG_NOSIGNAL), size);
    expect_end(&fixture, ERROR_NONE, 3);
}

TEST(a_farewell_brought_forward_or_made_up_is_none)
{
    struct records records;
    struct fixture fixture;
    uint8_t farewell[64];
    open_with_records(&fixture, &records);
    size_t size = take_farewell(&fixture, farewell);
    put(&fixture, &records, 0);
    assert_int_equal(send(fixture.server_side, farewell, size, MSG_NOSIGNAL), size);
    expect_end(&fixture, ERROR_CORRUPT, 1);
    open_between(&fixture);
    memset(farewell, 0, sizeof(farewell));
    farewell[0] = 1;
    size = SEAL_OVERHEAD + 1;
    assert_int_equal(send(fixture.server_side, farewell, size, MSG_NOSIGNAL), size);
    expect_end(&fixture, ERROR_CORRUPT, 0);
}

/* --- a peer that holds the key and does not keep to the rules --- */

struct rogue {
    int fd;
    const uint8_t *content;
    size_t size;
    struct link_tls_keys keys;
    void *no_context;
};

static void *run_rogue(void *context)
{
    struct rogue *rogue = context;
    struct error error;
    SSL *ssl = NULL;
    struct seal *seal = NULL;
    uint8_t record[256];
    ASSERT(link_tls_new(false, rogue->fd, &rogue->keys, &ssl, &error) == 0);
    ASSERT(SSL_do_handshake(ssl) == 1 && link_tls_is_agreed(ssl, &rogue->keys));
    const struct seal_options options = {.tls = ssl, .is_from_client = true};
    ASSERT(seal_new(&options, &seal, &error) == 0);
    memcpy(record + SEAL_HEADER_SIZE, rogue->content, rogue->size);
    ASSERT(seal_close(seal, record, rogue->size, &error) == 0);
    ASSERT(send(rogue->fd, record, rogue->size + SEAL_OVERHEAD, MSG_NOSIGNAL) > 0);
    char rest[256];
    while (read(rogue->fd, rest, sizeof(rest)) > 0)
        continue;
    seal_free(seal);
    SSL_free(ssl);
    close(rogue->fd);
    return NULL;
}

static struct end end_after(const uint8_t *content, size_t size)
{
    struct error error;
    struct fixture fixture;
    fixture_open(&fixture);
    struct link_options server = options_of(&fixture, &fixture.server);
    server.payload_max = 100;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct rogue rogue = {.fd = fds[0], .content = content, .size = size};
    rogue.keys.context = &rogue.no_context;
    rogue.keys.protocol = "souk-sealed/1";
    memcpy(rogue.keys.key, KEY, LINK_KEY_SIZE);
    memcpy(rogue.keys.identity, "lease:7:1", 10);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_rogue, &rogue), 0);
    ASSERT_OK(link_open_take(&server, fds[1], &fixture.server.link, &error));
    while (!fixture.server.is_closed)
        step(&fixture, -1);
    pthread_join(thread, NULL);
    const struct end end = fixture.server;
    fixture_close(&fixture);
    return end;
}

TEST(a_record_must_hold_whole_frames_within_the_maximum)
{
    uint8_t content[200] = {0};
    frame_header_encode(0, 3, content);
    frame_header_encode(6, 1, content + FRAME_HEADER_SIZE);
    struct end end = end_after(content, 2 * FRAME_HEADER_SIZE + 5);
    assert_int_equal(end.frames, 1);
    assert_int_equal(end.reason.code, ERROR_CORRUPT);
    assert_non_null(strstr(end.reason.message, "ends inside a frame"));
    frame_header_encode(101, 1, content);
    end = end_after(content, FRAME_HEADER_SIZE + 101);
    assert_int_equal(end.frames, 0);
    assert_int_equal(end.reason.code, ERROR_CORRUPT);
    assert_non_null(strstr(end.reason.message, "over the maximum"));
    content[0] = 1;
    end = end_after(content, 1); /* one byte, and not the farewell's */
    assert_int_equal(end.reason.code, ERROR_CORRUPT);
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
        cmocka_unit_test(nothing_of_a_frame_can_be_read_on_the_way),
        cmocka_unit_test(a_changed_byte_anywhere_in_a_record_ends_the_link),
        cmocka_unit_test(a_record_that_announces_more_than_a_frame_may_have_ends_the_link),
        cmocka_unit_test(a_record_that_comes_twice_ends_the_link),
        cmocka_unit_test(records_in_another_order_end_the_link),
        cmocka_unit_test(a_record_left_out_ends_the_link),
        cmocka_unit_test(a_record_of_another_link_ends_the_link),
        cmocka_unit_test(a_record_sent_back_to_its_sender_ends_the_link),
        cmocka_unit_test(an_end_between_two_records_without_a_farewell_is_told),
        cmocka_unit_test(an_end_inside_a_record_is_told),
        cmocka_unit_test(a_farewell_between_frames_is_in_good_order),
        cmocka_unit_test(a_farewell_brought_forward_or_made_up_is_none),
        cmocka_unit_test(a_record_must_hold_whole_frames_within_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
