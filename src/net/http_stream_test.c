#include "net/http_fixture_internal.h"

static int open_event_client(struct fixture *fixture, struct buffer *reply)
{
    buffer_init(reply, 1 << 20);
    const int fd = client_connect(fixture);
    client_send(fd, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    client_read_until(fd, reply, ":\n\n");
    assert_contains(reply, "Content-Type: text/event-stream");
    return fd;
}

static void send_event(struct fixture *fixture)
{
    for (int i = 0; i < STREAM_MAX; i++) {
        struct error error;
        if (fixture->streams[i] && http_stream_send(fixture->streams[i], TEXT("7"), TEXT("price"),
                                                    TEXT("one\ntwo"), &error) < 0)
            ASSERT(error.code == ERROR_EXHAUSTED || error.code == ERROR_UNAVAILABLE);
    }
}

TEST(events_reach_every_client_in_the_format_of_browsers)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer replies[3];
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = open_event_client(&fixture, &replies[i]);
    on_server(&fixture, send_event);
    on_server(&fixture, send_event);
    for (int i = 0; i < 3; i++) {
        client_read_until(fds[i], &replies[i], "id: 7\nevent: price\ndata: one\ndata: two\n\n");
        close(fds[i]);
        buffer_done(&replies[i]);
    }
    fixture_stop(&fixture);
}

TEST(heartbeats_find_out_that_a_client_is_gone)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.stream_heartbeat_ms = 20;
    fixture_start(&fixture);
    struct buffer stays AUTO_BUFFER;
    struct buffer leaves AUTO_BUFFER;
    const int staying = open_event_client(&fixture, &stays);
    const int leaving = open_event_client(&fixture, &leaves);
    close(leaving);
    wait_for(&fixture, &fixture.closed_stream_count, 1);
    on_server(&fixture, send_event);
    client_read_until(staying, &stays, "data: two");
    close(staying);
    fixture_stop(&fixture);
}

static void send_large_events(struct fixture *fixture)
{
    static char data[8192];
    memset(data, 'e', sizeof(data));
    for (int i = 0; i < STREAM_MAX; i++) {
        struct error error;
        if (fixture->streams[i] &&
            http_stream_send(fixture->streams[i], TEXT(""), TEXT(""),
                             (struct text){data, sizeof(data)}, &error) < 0 &&
            error.code == ERROR_EXHAUSTED)
            atomic_fetch_add(&fixture->dropped_count, 1);
    }
}

TEST(a_slow_client_is_dropped_and_the_others_go_on)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.stream_backlog_max = 65536;
    fixture_start(&fixture);
    struct buffer quick_reply AUTO_BUFFER;
    struct buffer slow_reply AUTO_BUFFER;
    const int slow = open_event_client(&fixture, &slow_reply);
    const int quick = open_event_client(&fixture, &quick_reply);
    uint8_t piece[65536];
    for (int i = 0; atomic_load(&fixture.dropped_count) == 0; i++) {
        assert_true(i < 100000);
        on_server(&fixture, send_large_events);
        /* Takes what has come so far, at least one event. */
        size_t taken = 0;
        while (taken < 8192) {
            const ssize_t got = recv(quick, piece, sizeof(piece), 0);
            assert_true(got > 0);
            taken += (size_t)got;
        }
    }
    wait_for(&fixture, &fixture.closed_stream_count, 1);
    assert_int_equal(atomic_load(&fixture.dropped_count), 1);
    on_server(&fixture, send_event);
    buffer_clear(&quick_reply);
    client_read_until(quick, &quick_reply, "data: two");
    close(quick);
    close(slow);
    fixture_stop(&fixture);
}

static void end_streams(struct fixture *fixture)
{
    for (int i = 0; i < STREAM_MAX; i++) {
        http_stream_free(fixture->streams[i]);
        fixture->streams[i] = NULL;
    }
}

TEST(a_stream_that_its_owner_ends_sends_what_was_queued)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    const int fd = open_event_client(&fixture, &reply);
    on_server(&fixture, send_event);
    on_server(&fixture, end_streams);
    client_read_until(fd, &reply, "data: two");
    client_read_until(fd, &reply, "\r\n0\r\n");
    assert_int_equal(atomic_load(&fixture.closed_stream_count), 0);
    close(fd);
    fixture_stop(&fixture);
}

TEST(open_streams_end_with_the_server)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_start(&fixture);
    struct buffer reply AUTO_BUFFER;
    const int fd = open_event_client(&fixture, &reply);
    fixture_stop(&fixture);
    assert_int_equal(atomic_load(&fixture.closed_stream_count), 1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_reach_every_client_in_the_format_of_browsers),
        cmocka_unit_test(heartbeats_find_out_that_a_client_is_gone),
        cmocka_unit_test(a_slow_client_is_dropped_and_the_others_go_on),
        cmocka_unit_test(a_stream_that_its_owner_ends_sends_what_was_queued),
        cmocka_unit_test(open_streams_end_with_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
