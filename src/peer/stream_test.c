/* A stream against a port that is there, comes later, or goes away. */
#include "peer/stream.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURN_MS = 20, TURNS_MAX = 500, LINE_SIZE = 12 + 2 * LEASE_TICKET_SIZE + 1 };

struct fixture {
    struct loop *loop;
    int listen_fd;
    uint16_t port;
    int inner_fd;
    bool is_done;
    bool has_failed;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error error = {0};
    struct address any;
    fixture->inner_fd = -1;
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    ASSERT_OK(tcp_listen(&any, "--link", &fixture->listen_fd, &fixture->port, &error));
    assert_int_equal(fcntl(fixture->listen_fd, F_SETFL, 0), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->inner_fd >= 0)
        close(fixture->inner_fd);
    if (fixture->listen_fd >= 0)
        close(fixture->listen_fd);
    loop_free(fixture->loop);
    free(fixture);
    return 0;
}

static void on_ready(struct stream *stream, int fd, void *context)
{
    struct fixture *fixture = context;
    (void)stream;
    assert_int_equal(fixture->inner_fd, -1);
    fixture->inner_fd = fd;
}

static void on_done(struct stream *stream, const struct error *reason, void *context)
{
    struct fixture *fixture = context;
    (void)stream;
    assert_false(fixture->is_done);
    fixture->is_done = true;
    fixture->has_failed = reason != NULL;
}

static struct stream *start(struct fixture *fixture)
{
    struct stream_options options = {.loop = fixture->loop,
                                     .target = {.host = "127.0.0.1", .port = fixture->port},
                                     .ticket = {0xab, 0xcd},
                                     .seed = 1,
                                     .on_ready = on_ready,
                                     .on_done = on_done,
                                     .context = fixture};
    struct stream *stream = stream_start(&options);
    assert_int_equal(fixture->inner_fd, -1);
    return stream;
}

static void turn(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(loop_step(fixture->loop, TURN_MS, &error));
}

static void wait_until_ready(struct fixture *fixture)
{
    for (int i = 0; i < TURNS_MAX && fixture->inner_fd < 0; i++)
        turn(fixture);
    assert_true(fixture->inner_fd >= 0);
}

/* The market's end, once the stream has named itself. */
static int accept_stream(struct fixture *fixture)
{
    char line[LINE_SIZE + 1] = "";
    const int fd = accept4(fixture->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(recv(fd, line, LINE_SIZE, MSG_WAITALL), LINE_SIZE);
    assert_memory_equal(line, "SOUK-STREAM abcd0000", 20);
    assert_int_equal(line[LINE_SIZE - 1], '\n');
    return fd;
}

static void expect(struct fixture *fixture, int fd, const char *words)
{
    char bytes[64];
    ssize_t size = -1;
    for (int i = 0; i < TURNS_MAX && size < 0; i++) {
        turn(fixture);
        size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    }
    assert_int_equal(size, strlen(words));
    assert_memory_equal(bytes, words, strlen(words));
}

static void bytes_go_both_ways_and_are_counted(void **state)
{
    struct fixture *fixture = *state;
    AUTO(stream) struct stream *stream = start(fixture);
    wait_until_ready(fixture);
    AUTO_FD int market = accept_stream(fixture);
    assert_int_equal(send(market, "come in", 7, 0), 7);
    expect(fixture, fixture->inner_fd, "come in");
    assert_int_equal(send(fixture->inner_fd, "gradients", 9, 0), 9);
    expect(fixture, market, "gradients");
    const struct stream_counts counts = stream_counts(stream);
    assert_int_equal(counts.bytes_in, 7);
    assert_int_equal(counts.bytes_out, 9);
}

/* What the sandbox gets is no socket of the network's, which it could dial elsewhere with. */
static void sandbox_gets_a_local_socket(void **state)
{
    struct fixture *fixture = *state;
    AUTO(stream) struct stream *stream = start(fixture);
    wait_until_ready(fixture);
    int domain = 0;
    socklen_t size = sizeof(domain);
    assert_int_equal(getsockopt(fixture->inner_fd, SOL_SOCKET, SO_DOMAIN, &domain, &size), 0);
    assert_int_equal(domain, AF_UNIX);
}

static void market_that_comes_later_is_dialled_until_it_is_there(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct address same;
    close(fixture->listen_fd);
    fixture->listen_fd = -1;
    AUTO(stream) struct stream *stream = start(fixture);
    for (int i = 0; i < 10; i++)
        turn(fixture);
    assert_int_equal(fixture->inner_fd, -1);
    assert_int_equal(stream_counts(stream).bytes_in, 0);
    const struct host_port target = {.host = "127.0.0.1", .port = fixture->port};
    ASSERT_OK(address_resolve(&target, &same, &error));
    ASSERT_OK(tcp_listen(&same, "--link", &fixture->listen_fd, &fixture->port, &error));
    assert_int_equal(fcntl(fixture->listen_fd, F_SETFL, 0), 0);
    wait_until_ready(fixture);
    close(accept_stream(fixture));
}

static void end_of_either_side_is_told_once(void **state)
{
    struct fixture *fixture = *state;
    AUTO(stream) struct stream *stream = start(fixture);
    wait_until_ready(fixture);
    close(accept_stream(fixture));
    close(TAKE_FD(fixture->inner_fd));
    for (int i = 0; i < TURNS_MAX && !fixture->is_done; i++)
        turn(fixture);
    assert_true(fixture->is_done);
    for (int i = 0; i < 5; i++)
        turn(fixture);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(bytes_go_both_ways_and_are_counted),
        STREAM_TEST(sandbox_gets_a_local_socket),
        STREAM_TEST(market_that_comes_later_is_dialled_until_it_is_there),
        STREAM_TEST(end_of_either_side_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
