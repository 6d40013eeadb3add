#include "net/relay.h"
#include "testing/testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BULK_SIZE = 5 << 20 };

struct fixture {
    struct loop *loop;
    struct relay *relay;
    int left, right; /* the ends outside */
    struct relay_options options;
    bool is_done;
    struct error reason;
    struct relay_counts counts;
};

static void note_done(struct relay *relay, const struct error *reason, void *context)
{
    struct fixture *fixture = context;
    assert_false(fixture->is_done);
    fixture->is_done = true;
    if (reason)
        fixture->reason = *reason;
    fixture->counts = relay_counts(relay);
    relay_free(relay);
    fixture->relay = NULL;
}

static void fixture_open(struct fixture *fixture, const struct clock *clock)
{
    struct error error = {0};
    *fixture = (struct fixture){0};
    ASSERT_OK(loop_open(clock, &fixture->loop, &error));
    int left[2];
    int right[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, left), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, right), 0);
    fixture->left = left[0];
    fixture->right = right[0];
    fixture->options = (struct relay_options){.loop = fixture->loop,
                                              .left_fd = left[1],
                                              .right_fd = right[1],
                                              .on_done = note_done,
                                              .context = fixture};
}

static void fixture_start(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(relay_open_take(&fixture->options, &fixture->relay, &error));
}

static void fixture_close(struct fixture *fixture)
{
    relay_free(fixture->relay);
    loop_free(fixture->loop);
    if (fixture->left >= 0)
        close(fixture->left);
    if (fixture->right >= 0)
        close(fixture->right);
}

static void run_until_done(struct fixture *fixture)
{
    struct error error = {0};
    while (!fixture->is_done)
        ASSERT_OK(loop_step(fixture->loop, -1, &error));
}

struct copier {
    int fd;
    char *received;
    size_t received_size;
};

static char pattern(size_t i)
{
    return (char)(i * 2654435761U >> 11);
}

static void *write_then_read(void *context)
{
    struct copier *copier = context;
    char piece[8192];
    for (size_t done = 0; done < BULK_SIZE; done += sizeof(piece)) {
        for (size_t i = 0; i < sizeof(piece); i++)
            piece[i] = pattern(done + i);
        for (size_t sent = 0; sent < sizeof(piece);) {
            const ssize_t n = write(copier->fd, piece + sent, sizeof(piece) - sent);
            if (n <= 0)
                return NULL;
            sent += (size_t)n;
        }
    }
    shutdown(copier->fd, SHUT_WR);
    ssize_t got;
    while ((got = read(copier->fd, copier->received + copier->received_size,
                       BULK_SIZE + 1 - copier->received_size)) > 0)
        copier->received_size += (size_t)got;
    return NULL;
}

static void *read_then_write(void *context)
{
    struct copier *copier = context;
    ssize_t got;
    while ((got = read(copier->fd, copier->received + copier->received_size,
                       BULK_SIZE + 1 - copier->received_size)) > 0)
        copier->received_size += (size_t)got;
    for (size_t sent = 0; sent < copier->received_size;) {
        const ssize_t n = write(copier->fd, copier->received + sent, copier->received_size - sent);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    shutdown(copier->fd, SHUT_WR);
    return NULL;
}

TEST(bytes_go_both_ways_and_the_end_of_one_way_leaves_the_other_open)
{
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    fixture.options.buffer_bytes = 10000;
    fixture_start(&fixture);
    struct copier left = {.fd = fixture.left, .received = malloc(BULK_SIZE + 1)};
    struct copier right = {.fd = fixture.right, .received = malloc(BULK_SIZE + 1)};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, write_then_read, &left), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, read_then_write, &right), 0);
    run_until_done(&fixture);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(fixture.reason.code, ERROR_NONE);
    assert_int_equal(fixture.counts.left_to_right_bytes, BULK_SIZE);
    assert_int_equal(fixture.counts.right_to_left_bytes, BULK_SIZE);
    assert_int_equal(right.received_size, BULK_SIZE);
    assert_int_equal(left.received_size, BULK_SIZE);
    for (size_t i = 0; i < BULK_SIZE; i++)
        if (left.received[i] != pattern(i))
            fail_msg("byte %zu differs", i);
    free(left.received);
    free(right.received);
    fixture_close(&fixture);
}

TEST(bytes_read_before_the_relay_go_first)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    fixture.options.left_pending = "first ";
    fixture.options.left_pending_size = 6;
    fixture.options.right_pending = "hello";
    fixture.options.right_pending_size = 5;
    fixture_start(&fixture);
    assert_int_equal(write(fixture.left, "second", 6), 6);
    shutdown(fixture.left, SHUT_WR);
    shutdown(fixture.right, SHUT_WR);
    run_until_done(&fixture);
    char text[32] = {0};
    assert_int_equal(recv(fixture.right, text, 12, MSG_WAITALL), 12);
    assert_string_equal(text, "first second");
    memset(text, 0, sizeof(text));
    assert_int_equal(recv(fixture.left, text, 5, MSG_WAITALL), 5);
    assert_string_equal(text, "hello");
    fixture.options.left_pending_size = 1 << 30;
    ASSERT_FAILS(relay_open_take(&fixture.options, &fixture.relay, &error), ERROR_INVALID);
    fixture_close(&fixture);
}

TEST(a_reader_that_stops_stops_its_writer)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    fixture.options.buffer_bytes = 4096;
    fixture_start(&fixture);
    char piece[4096] = {0};
    size_t sent = 0;
    /* Until neither the socket nor the relay has room: it is bounded. */
    for (int silent = 0; silent < 3;) {
        const ssize_t n = send(fixture.left, piece, sizeof(piece), MSG_DONTWAIT);
        silent = n < 0 ? silent + 1 : 0;
        sent += n > 0 ? (size_t)n : 0;
        assert_true(sent < 64 << 20);
        ASSERT_OK(loop_step(fixture.loop, 0, &error));
    }
    assert_false(fixture.is_done);
    fixture_close(&fixture);
}

TEST(a_side_that_vanishes_ends_the_relay_with_a_reason)
{
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    fixture_start(&fixture);
    close(fixture.right);
    fixture.right = -1;
    assert_int_equal(write(fixture.left, "x", 1), 1);
    run_until_done(&fixture);
    assert_int_equal(fixture.reason.code, ERROR_UNAVAILABLE);
    char byte;
    assert_int_equal(read(fixture.left, &byte, 1), 0);
    fixture_close(&fixture);
}

TEST(a_silent_relay_ends_after_its_idle_time)
{
    struct error error = {0};
    struct virtual_clock clock;
    virtual_clock_init(&clock, 0);
    struct fixture fixture;
    fixture_open(&fixture, &clock.clock);
    fixture.options.idle_timeout_ms = 1000;
    fixture_start(&fixture);
    assert_int_equal(write(fixture.left, "x", 1), 1);
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    virtual_clock_advance(&clock, 1001000000);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_false(fixture.is_done);
    virtual_clock_advance(&clock, 1001000000);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_true(fixture.is_done);
    assert_int_equal(fixture.reason.code, ERROR_UNAVAILABLE);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways_and_the_end_of_one_way_leaves_the_other_open),
        cmocka_unit_test(bytes_read_before_the_relay_go_first),
        cmocka_unit_test(a_reader_that_stops_stops_its_writer),
        cmocka_unit_test(a_side_that_vanishes_ends_the_relay_with_a_reason),
        cmocka_unit_test(a_silent_relay_ends_after_its_idle_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
