#include "peer/channel.h"
#include "runtime/lease_message.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <sys/socket.h>

struct end {
    struct channel *channel;
    uint16_t types[64];
    size_t sizes[64];
    char last[64];
    size_t count;
    int drained_count, closed_count;
};

static void on_message(struct channel *channel, uint16_t type, struct text payload, void *context)
{
    struct end *end = context;
    (void)channel;
    assert_true(end->count < 64);
    end->types[end->count] = type;
    end->sizes[end->count++] = payload.size;
    snprintf(end->last, sizeof(end->last), TEXT_FORMAT,
             (int)(payload.size < 60 ? payload.size : 60), payload.data);
}

static void on_close(struct channel *channel, void *context)
{
    struct end *end = context;
    end->closed_count++;
    channel_free(channel);
    end->channel = NULL;
}

static void on_drained(struct channel *channel, void *context)
{
    (void)channel;
    ((struct end *)context)->drained_count++;
}

static void end_open(struct end *end, struct loop *loop, int fd)
{
    struct error error = {0};
    const struct channel_options options = {
        .loop = loop,
        .queue_max_bytes = 1 << 20,
        .callbacks = {.on_message = on_message, .on_close = on_close, .on_drained = on_drained},
        .context = end};
    ASSERT_OK(channel_open_take(&options, fd, &end->channel, &error));
}

struct fixture {
    struct loop *loop;
    struct end left, right;
};

static int set_up(void **state)
{
    struct error error = {0};
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int pair[2];
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    ASSERT_OK(channel_pair(pair, &error));
    end_open(&fixture->left, fixture->loop, pair[0]);
    end_open(&fixture->right, fixture->loop, pair[1]);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    channel_free(fixture->left.channel);
    channel_free(fixture->right.channel);
    loop_free(fixture->loop);
    free(fixture);
    return 0;
}

static void run(struct fixture *fixture)
{
    struct error error = {0};
    for (int i = 0; i < 20; i++)
        ASSERT_OK(loop_step(fixture->loop, 2, &error));
}

static void messages_arrive_whole_and_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    ASSERT_OK(channel_send(fixture->left.channel, 7, TEXT("lamp"), &error));
    ASSERT_OK(channel_send(fixture->left.channel, 300, (struct text){0}, &error));
    run(fixture);
    assert_int_equal(fixture->right.count, 2);
    assert_int_equal(fixture->right.types[0], 7);
    assert_int_equal(fixture->right.sizes[0], 4);
    assert_int_equal(fixture->right.types[1], 300);
    assert_int_equal(fixture->right.sizes[1], 0);
}

static void slow_reader_fills_the_queue_and_gets_all_of_it_later(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    static char bytes[256 << 10]; /* as large as a report may be */
    const struct text payload = {bytes, sizeof(bytes)};
    channel_set_paused(fixture->right.channel, true);
    size_t sent = 0;
    while (sent < 64 && channel_send(fixture->left.channel, 5, payload, &error) == 0)
        sent++;
    assert_in_range(sent, 4, 32);
    assert_int_equal(error.code, ERROR_EXHAUSTED);
    run(fixture);
    assert_int_equal(fixture->right.count, 0);
    channel_set_paused(fixture->right.channel, false);
    run(fixture);
    assert_int_equal(fixture->right.count, sent);
    assert_int_equal(fixture->left.drained_count, 1);
    ASSERT_OK(channel_send(fixture->left.channel, 5, payload, &error));
}

static void last_words_are_heard_before_the_end(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    ASSERT_OK(channel_send(fixture->right.channel, 1, TEXT("never read"), &error));
    ASSERT_OK(channel_send(fixture->left.channel, 2, TEXT("good-bye"), &error));
    channel_free(TAKE(fixture->left.channel));
    run(fixture);
    assert_string_equal(fixture->right.last, "good-bye");
    assert_int_equal(fixture->right.closed_count, 1);
}

static void sending_to_nobody_closes(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    channel_free(TAKE(fixture->left.channel));
    ASSERT_OK(channel_send(fixture->right.channel, 1, TEXT("x"), &error));
    run(fixture);
    assert_int_equal(fixture->right.closed_count, 1);
}

static void packet_without_a_type_closes(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    int pair[2];
    ASSERT_OK(channel_pair(pair, &error));
    channel_free(fixture->right.channel);
    end_open(&fixture->right, fixture->loop, pair[1]);
    assert_int_equal(send(pair[0], "x", 1, 0), 1);
    run(fixture);
    assert_int_equal(fixture->right.closed_count, 1);
    assert_int_equal(fixture->right.count, 0);
    close(pair[0]);
}

static void socket_is_found_however_long_its_path_is(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    char folder[256] = "/tmp/souk-channel-test-XXXXXX", inner[512];
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof(inner), "%s/%0150d", folder, 1);
    ASSERT_OK(folder_make(inner, 0700, &error));
    int listen_fd = -1, accepted_fd = -1, connected_fd = -1;
    pid_t pid = 0;
    ASSERT_FAILS(channel_connect(inner, &connected_fd, &pid, &error), ERROR_UNAVAILABLE);
    ASSERT_OK(channel_listen(inner, &listen_fd, &error));
    ASSERT_FAILS(channel_accept(listen_fd, &accepted_fd, &error), ERROR_UNAVAILABLE);
    ASSERT_OK(channel_connect(inner, &connected_fd, &pid, &error));
    assert_int_equal(pid, getpid());
    ASSERT_OK(channel_accept(listen_fd, &accepted_fd, &error));
    struct end left = {0}, right = {0};
    end_open(&left, fixture->loop, connected_fd);
    end_open(&right, fixture->loop, accepted_fd);
    ASSERT_OK(channel_send(left.channel, 9, TEXT("hello"), &error));
    run(fixture);
    assert_string_equal(right.last, "hello");
    channel_free(left.channel);
    channel_free(right.channel);
    close(listen_fd);
    ASSERT_FAILS(channel_connect(inner, &connected_fd, &pid, &error), ERROR_UNAVAILABLE);
    ASSERT_OK(folder_remove(folder, &error));
}

int main(void)
{
#define CHANNEL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CHANNEL_TEST(messages_arrive_whole_and_in_order),
        CHANNEL_TEST(slow_reader_fills_the_queue_and_gets_all_of_it_later),
        CHANNEL_TEST(last_words_are_heard_before_the_end),
        CHANNEL_TEST(sending_to_nobody_closes),
        CHANNEL_TEST(packet_without_a_type_closes),
        CHANNEL_TEST(socket_is_found_however_long_its_path_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
