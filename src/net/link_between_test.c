/*
 * Links whose frames travel in sealed records, with somebody in between who sees every byte and
 * changes some, or a peer that does not keep to the rules; covers link_in.c, seal.c
 */
#include "base/assert.h"
#include "net/link_bulk_fixture_internal.h"
#include "net/link_tls_internal.h"
#include "net/seal.h"
#include "wire/frame.h"

#include <errno.h>
#include <pthread.h>

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
        assert_false(fixture->client.is_closed || fixture->server.is_closed);
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

/* Into its place, too: only what is proved is told of. */
TEST(a_changed_byte_of_a_frame_with_a_place_ends_the_link)
{
    static const size_t places[] = {SEAL_HEADER_SIZE, SEAL_HEADER_SIZE + FRAME_HEADER_SIZE,
                                    SEAL_HEADER_SIZE + FRAME_HEADER_SIZE + LINK_HEAD_SIZE, 50000,
                                    FRAME_HEADER_SIZE + LARGE + SEAL_OVERHEAD - 1};
    enum { SIZE = FRAME_HEADER_SIZE + LARGE + SEAL_OVERHEAD };
    struct error error;
    char *bulk = make_bulk(LARGE);
    uint8_t *record = malloc(SIZE);
    assert_non_null(record);
    for (size_t i = 0; i <= sizeof(places) / sizeof(*places); i++) {
        const bool is_changed = i < sizeof(places) / sizeof(*places);
        struct fixture fixture;
        open_between(&fixture);
        fixture.server.place = malloc(PLACE_SIZE);
        assert_non_null(fixture.server.place);
        ASSERT_OK(
            link_send_text(fixture.client.link, PLACED_TYPE, (struct text){bulk, LARGE}, &error));
        for (size_t got = 0; got < SIZE;) {
            step(&fixture, 0);
            const ssize_t more = recv(fixture.client_side, record + got, SIZE - got, MSG_DONTWAIT);
            got += more > 0 ? (size_t)more : 0;
        }
        if (is_changed)
            record[places[i]] ^= 0x10;
        for (size_t put = 0; put < SIZE;) {
            const ssize_t more =
                send(fixture.server_side, record + put, SIZE - put, MSG_NOSIGNAL | MSG_DONTWAIT);
            put += more > 0 ? (size_t)more : 0;
            step(&fixture, 0);
        }
        while (fixture.server.placed == 0 && !fixture.server.is_closed)
            step(&fixture, -1);
        assert_int_equal(fixture.server.placed, !is_changed);
        if (is_changed)
            expect_end(&fixture, ERROR_CORRUPT, 0);
        else
            fixture_close(&fixture);
    }
    free(record);
    free(bulk);
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
        cmocka_unit_test(a_changed_byte_of_a_frame_with_a_place_ends_the_link),
        cmocka_unit_test(a_record_must_hold_whole_frames_within_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
