/* What a lease prints, read over real links from a logbook. covers door.c */
#include "net/address.h"
#include "peer/log_server.h"
#include "runtime/log_link.h"
#include "testing/testing.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE = 7, READER = 99, READER_COUNT = 6 };

struct end {
    struct scene *scene;
    struct tcp_connect *connect;
    struct link *link;
    char identity[LOG_LINK_IDENTITY_SIZE];
    uint8_t key[LINK_KEY_SIZE];
    uint64_t wanted;
    bool asks;
    bool is_open, is_closed, has_end;
    uint64_t first, next; /* offsets of what came */
    struct buffer bytes;
};

struct scene {
    struct loop *loop;
    struct logbook book;
    struct log_server *server;
    uint8_t key[LINK_KEY_SIZE];
    struct end ends[READER_COUNT];
};

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct error error;
    ASSERT_OK(loop_open(&clock_system, &scene->loop, &error));
    logbook_init(&scene->book);
    memset(scene->key, 5, sizeof(scene->key));
    const struct log_server_options options = {
        .loop = scene->loop, .book = &scene->book, .lease = LEASE};
    ASSERT_OK(log_server_open(&options, &scene->server, &error));
    log_server_allow(scene->server, READER, scene->key);
    for (size_t i = 0; i < READER_COUNT; i++) {
        struct end *end = &scene->ends[i];
        end->scene = scene;
        end->asks = true;
        buffer_init(&end->bytes, 16 << 20);
        memcpy(end->key, scene->key, sizeof(end->key));
        log_link_identity(LEASE, READER, end->identity);
    }
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    for (size_t i = 0; i < READER_COUNT; i++) {
        tcp_connect_free(scene->ends[i].connect);
        link_free(scene->ends[i].link);
        buffer_done(&scene->ends[i].bytes);
    }
    log_server_free(scene->server);
    logbook_done(&scene->book);
    loop_free(scene->loop);
    free(scene);
    return 0;
}

static void on_open(struct link *link, struct text identity, void *context)
{
    struct end *end = context;
    struct error error;
    (void)identity;
    end->is_open = true;
    if (!end->asks)
        return;
    struct buffer want AUTO_BUFFER;
    buffer_init(&want, LOG_LINK_OFFSET_SIZE);
    wire_put_u64(&want, end->wanted);
    ASSERT_OK(link_send_text(link, LOG_LINK_WANT, buffer_text(&want), &error));
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct end *end = context;
    struct wire_reader reader;
    (void)link;
    assert_true(payload.size >= LOG_LINK_OFFSET_SIZE);
    wire_reader_init(&reader, payload);
    const uint64_t offset = wire_get_u64(&reader);
    if (end->bytes.size == 0)
        end->first = end->next = offset;
    assert_int_equal(offset, end->next);
    if (type == LOG_LINK_END) {
        end->has_end = true;
        return;
    }
    assert_int_equal(type, LOG_LINK_DATA);
    const size_t size = payload.size - LOG_LINK_OFFSET_SIZE;
    buffer_append(&end->bytes, payload.data + LOG_LINK_OFFSET_SIZE, size);
    end->next += size;
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)reason;
    ((struct end *)context)->is_closed = true;
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct end *end = context;
    struct error error;
    assert_null(reason);
    const struct link_options options = {
        .loop = end->scene->loop,
        .identity = end->identity,
        .key = end->key,
        .payload_max = LOG_LINK_PAYLOAD_MAX,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = end};
    ASSERT_OK(link_open_take(&options, fd, &end->link, &error));
}

static void dial(struct end *end)
{
    const struct host_port target = {.host = "127.0.0.1",
                                     .port = log_server_port(end->scene->server)};
    end->connect = tcp_connect_start(end->scene->loop, &target, HUNG_MS, on_connected, end);
}

static void wait_for(struct scene *scene, const bool *flag)
{
    const int64_t until = clock_monotonic_ns(&clock_system) + HUNG_MS * INT64_C(1000000);
    struct error error;
    while (!*flag) {
        assert_true(clock_monotonic_ns(&clock_system) < until);
        ASSERT_OK(loop_step(scene->loop, 50, &error));
    }
}

static void wait_for_bytes(struct scene *scene, const struct end *end, uint64_t next)
{
    const int64_t until = clock_monotonic_ns(&clock_system) + HUNG_MS * INT64_C(1000000);
    struct error error;
    while (end->next < next || end->bytes.size == 0) {
        assert_true(clock_monotonic_ns(&clock_system) < until && !end->is_closed);
        ASSERT_OK(loop_step(scene->loop, 50, &error));
    }
}

static void print(struct scene *scene, struct text bytes)
{
    logbook_add(&scene->book, bytes);
    log_server_pump(scene->server);
}

TEST(a_reader_gets_what_there_is_then_what_comes_then_the_end)
{
    struct scene *scene = *state;
    struct end *end = &scene->ends[0];
    print(scene, TEXT("one\ntwo\n"));
    end->wanted = 4;
    dial(end);
    wait_for_bytes(scene, end, 8);
    print(scene, TEXT("three\n"));
    wait_for_bytes(scene, end, 14);
    logbook_end(&scene->book);
    log_server_pump(scene->server);
    wait_for(scene, &end->is_closed);
    assert_true(end->has_end);
    assert_int_equal(end->first, 4);
    assert_true(text_equal(buffer_text(&end->bytes), TEXT("two\nthree\n")));
}

TEST(what_the_market_keeps_is_not_sent_again)
{
    struct scene *scene = *state;
    struct end *end = &scene->ends[0];
    print(scene, TEXT("one\ntwo\n"));
    logbook_kept(&scene->book, 4);
    dial(end);
    wait_for_bytes(scene, end, 8);
    assert_int_equal(end->first, 4);
    assert_true(text_equal(buffer_text(&end->bytes), TEXT("two\n")));
}

TEST(a_wrong_key_another_lease_and_an_unknown_reader_are_refused)
{
    struct scene *scene = *state;
    print(scene, TEXT("secret\n"));
    memset(scene->ends[0].key, 6, sizeof(scene->ends[0].key));
    log_link_identity(LEASE + 1, READER, scene->ends[1].identity);
    log_link_identity(LEASE, READER + 1, scene->ends[2].identity);
    log_link_identity(LEASE, 0, scene->ends[3].identity);
    memset(scene->ends[3].key, 0, sizeof(scene->ends[3].key));
    for (size_t i = 0; i < 4; i++) {
        dial(&scene->ends[i]);
        wait_for(scene, &scene->ends[i].is_closed);
        assert_false(scene->ends[i].is_open);
        assert_int_equal(scene->ends[i].bytes.size, 0);
    }
}

TEST(nothing_else_can_be_said)
{
    struct scene *scene = *state;
    struct end *end = &scene->ends[0];
    struct error error;
    print(scene, TEXT("secret\n"));
    end->asks = false;
    dial(end);
    wait_for(scene, &end->is_open);
    ASSERT_OK(link_send_text(end->link, 17, TEXT("12345678"), &error));
    wait_for(scene, &end->is_closed);
    assert_int_equal(end->bytes.size, 0);
    end = &scene->ends[1];
    end->wanted = 1000; /* what nobody printed */
    dial(end);
    wait_for(scene, &end->is_closed);
    assert_int_equal(end->bytes.size, 0);
}

TEST(a_lease_has_four_readers_at_most)
{
    struct scene *scene = *state;
    print(scene, TEXT("x\n"));
    for (size_t i = 0; i < LOG_SERVER_LINKS_MAX; i++) {
        dial(&scene->ends[i]);
        wait_for_bytes(scene, &scene->ends[i], 2);
    }
    assert_int_equal(log_server_link_count(scene->server), LOG_SERVER_LINKS_MAX);
    dial(&scene->ends[4]);
    wait_for(scene, &scene->ends[4].is_closed);
    assert_int_equal(scene->ends[4].bytes.size, 0);
}

/* The book goes on as if nobody read: what the market keeps goes, and the reader with it. */
TEST(a_reader_that_does_not_read_is_dropped_and_holds_nothing_up)
{
    struct scene *scene = *state;
    struct end *slow = &scene->ends[0], *quick = &scene->ends[1];
    static char flood[64 << 10];
    uint64_t printed = 0;
    memset(flood, 'x', sizeof(flood));
    dial(slow);
    wait_for(scene, &slow->is_open);
    dial(quick);
    wait_for(scene, &quick->is_open);
    link_set_paused(slow->link, true);
    for (int i = 0; i < 160; i++) { /* 10 MiB: more than the sockets between them hold */
        print(scene, (struct text){flood, sizeof(flood)});
        printed += sizeof(flood);
        assert_true(logbook_has_room(&scene->book));
        wait_for_bytes(scene, quick, printed);
        log_server_pump(scene->server);
        logbook_kept(&scene->book, printed);
    }
    log_server_pump(scene->server);
    assert_int_equal(log_server_link_count(scene->server), 1);
    link_set_paused(slow->link, false);
    wait_for(scene, &slow->is_closed);
    assert_true(slow->next < printed && !slow->has_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_gets_what_there_is_then_what_comes_then_the_end,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_market_keeps_is_not_sent_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_key_another_lease_and_an_unknown_reader_are_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_else_can_be_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lease_has_four_readers_at_most, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_that_does_not_read_is_dropped_and_holds_nothing_up,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
