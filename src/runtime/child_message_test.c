/* Packets over a real socket pair: what is sent arrives, what breaks the rules is refused. */
#include "base/buffer.h"
#include "base/scope.h"
#include "runtime/child_message.h"
#include "testing/testing.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair {
    int parent, child;
    struct arena *arena;
};

static void pair_open(struct pair *pair)
{
    struct error error;
    int sockets[2];
    ASSERT_OK(child_socket_pair(sockets, &error));
    *pair = (struct pair){sockets[0], sockets[1], arena_new(0)};
}

static void pair_close(struct pair *pair)
{
    if (pair->parent >= 0)
        close(pair->parent);
    if (pair->child >= 0)
        close(pair->child);
    arena_free(pair->arena);
}

#define AUTO_PAIR __attribute__((cleanup(pair_close)))

static void receive(struct pair *pair, int socket, struct child_message *out)
{
    struct error error;
    bool has_ended;
    ASSERT_OK(child_message_receive(socket, pair->arena, out, &has_ended, &error));
}

TEST(the_largest_config_arrives_whole)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    static char json[CHILD_LEASE_JSON_MAX];
    memset(json, 'j', sizeof json);
    static struct child_peer peers[CHILD_PEER_MAX];
    for (uint32_t i = 0; i < CHILD_PEER_MAX; i++) {
        peers[i].lease = i + 1;
        peers[i].fence = i + 7;
        peers[i].role = i % 2 ? LEASE_ROLE_SERVER : LEASE_ROLE_WORKER;
        peers[i].rank = i;
        peers[i].key[31] = (uint8_t)i;
    }
    struct child_message sent = {.kind = CHILD_CONFIG};
    sent.config.lease_json = (struct text){json, sizeof json};
    sent.config.key[0] = 7;
    sent.config.peers = peers;
    sent.config.peer_count = CHILD_PEER_MAX;
    ASSERT_OK(child_message_send(pair.parent, &sent, 0, &error));

    struct child_message got;
    receive(&pair, pair.child, &got);
    assert_int_equal(got.kind, CHILD_CONFIG);
    assert_true(text_equal(got.config.lease_json, sent.config.lease_json));
    assert_int_equal(got.config.key[0], 7);
    assert_int_equal(got.config.peer_count, CHILD_PEER_MAX);
    assert_memory_equal(got.config.peers, peers, sizeof peers);
}

TEST(a_stream_brings_its_descriptor)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    AUTO_FD int kept = ends[0];
    AUTO_FD int handed = ends[1];
    const struct child_message sent = {.kind = CHILD_STREAM,
                                       .stream = {.peer_lease = 42,
                                                  .peer_fence = 7,
                                                  .peer_role = LEASE_ROLE_SERVER,
                                                  .peer_rank = 3,
                                                  .fd = handed}};
    ASSERT_OK(child_message_send(pair.parent, &sent, 0, &error));
    struct child_message got;
    receive(&pair, pair.child, &got);
    AUTO_FD int arrived = got.stream.fd;
    assert_int_equal(got.stream.peer_lease, 42);
    assert_int_equal(got.stream.peer_fence, 7);
    assert_int_equal(got.stream.peer_role, LEASE_ROLE_SERVER);
    assert_int_equal(got.stream.peer_rank, 3);
    assert_true(fcntl(arrived, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(arrived, "x", 1), 1);
    char byte = 0;
    assert_int_equal(read(kept, &byte, 1), 1);
    assert_int_equal(byte, 'x');
}

TEST(the_other_kinds_arrive_as_sent)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    struct child_message got;
    struct child_message sent = {
        .kind = CHILD_STOP,
        .stop = {.grace_ms = 3000, .is_handover = true, .reason = TEXT("cancelled")}};
    ASSERT_OK(child_message_send(pair.parent, &sent, 0, &error));
    receive(&pair, pair.child, &got);
    assert_int_equal(got.stop.grace_ms, 3000);
    assert_true(got.stop.is_handover);
    assert_true(text_equal(got.stop.reason, TEXT("cancelled")));

    sent = (struct child_message){.kind = CHILD_READY};
    ASSERT_OK(child_message_send(pair.child, &sent, -1, &error));
    receive(&pair, pair.parent, &got);
    assert_int_equal(got.kind, CHILD_READY);

    sent = (struct child_message){.kind = CHILD_ARTIFACT,
                                  .artifact = {.name = TEXT("model.safetensors")}};
    ASSERT_OK(child_message_send(pair.child, &sent, -1, &error));
    receive(&pair, pair.parent, &got);
    assert_true(text_equal(got.artifact.name, TEXT("model.safetensors")));

    sent = (struct child_message){.kind = CHILD_CALL,
                                  .call = {.number = 7, .json = TEXT("{\"job\":\"a\"}")}};
    ASSERT_OK(child_message_send(pair.child, &sent, -1, &error));
    receive(&pair, pair.parent, &got);
    assert_int_equal(got.call.number, 7);
    assert_true(text_equal(got.call.json, TEXT("{\"job\":\"a\"}")));

    sent = (struct child_message){.kind = CHILD_CALLED,
                                  .called = {.number = 7, .is_ok = true, .json = TEXT("{}")}};
    ASSERT_OK(child_message_send(pair.parent, &sent, -1, &error));
    receive(&pair, pair.child, &got);
    assert_int_equal(got.called.number, 7);
    assert_true(got.called.is_ok);
    assert_true(text_equal(got.called.json, TEXT("{}")));

    sent = (struct child_message){.kind = CHILD_DONE,
                                  .done = {.is_ok = true, .message = TEXT("target reached")}};
    ASSERT_OK(child_message_send(pair.child, &sent, -1, &error));
    receive(&pair, pair.parent, &got);
    assert_true(got.done.is_ok);
    assert_true(text_equal(got.done.message, TEXT("target reached")));
}

TEST(a_report_keeps_every_worker)
{
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct server_report_worker workers[2] = {
        {.lease = 5, .fence = 1, .is_member = true, .steps = 10, .accepted_pushes = 3},
        {.lease = 6, .fence = 2, .share = 0.25, .codec = "int8"},
    };
    const struct server_report sent = {.version = 9,
                                       .test_accuracy = 0.5,
                                       .policy = "auto",
                                       .policy_in_force = "pace",
                                       .policy_reason = "pace: \"equal\" time for all",
                                       .workers = {workers, 2}};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, CHILD_REPORT_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &server_report_schema, &sent);
    struct server_report got = {0};
    ASSERT_OK(json_read(arena, buffer_text(&json), &server_report_schema, &got, &error));
    assert_int_equal(got.version, 9);
    assert_string_equal(got.policy, "auto");
    assert_string_equal(got.policy_in_force, "pace");
    assert_string_equal(got.policy_reason, sent.policy_reason);
    assert_int_equal(got.workers.count, 2);
    assert_memory_equal(got.workers.items, workers, sizeof workers);
}

static void assert_refused(struct pair *pair, const void *bytes, size_t size)
{
    struct error error;
    struct child_message got;
    bool has_ended;
    assert_int_equal(send(pair->child, bytes, size, 0), (ssize_t)size);
    ASSERT_FAILS(child_message_receive(pair->parent, pair->arena, &got, &has_ended, &error),
                 ERROR_CORRUPT);
    assert_false(has_ended);
}

TEST(broken_packets_are_refused_and_the_next_is_read)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    assert_refused(&pair, "\x01\x10", 2);         /* version */
    assert_refused(&pair, "\x02\x7f", 2);         /* kind */
    assert_refused(&pair, "\x02\x10y", 3);        /* left over */
    assert_refused(&pair, "\x02\x13\x01\xff", 4); /* cut */
    assert_refused(&pair,
                   "\x02\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                   18);                                        /* no descriptor */
    assert_refused(&pair, "\x02\x12\x04\x00\x00\x00../x", 10); /* name */
    static const char huge[CHILD_PACKET_MAX + 1];
    assert_refused(&pair, huge, sizeof huge);
    ASSERT_OK(
        child_message_send(pair.child, &(struct child_message){.kind = CHILD_READY}, -1, &error));
    struct child_message got;
    receive(&pair, pair.parent, &got);
    assert_int_equal(got.kind, CHILD_READY);
}

static int open_fd_count(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(a_descriptor_that_belongs_to_nothing_is_closed)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    const int fds[2] = {pair.child, pair.child};
    memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
    char ready[2] = {1, CHILD_READY};
    struct iovec part = {ready, 2};
    const struct msghdr packet = {.msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof control};
    const int before = open_fd_count();
    assert_int_equal(sendmsg(pair.child, &packet, 0), 2);
    struct child_message got;
    bool has_ended;
    ASSERT_FAILS(child_message_receive(pair.parent, pair.arena, &got, &has_ended, &error),
                 ERROR_CORRUPT);
    assert_int_equal(open_fd_count(), before);
}

TEST(an_empty_socket_and_a_closed_one_are_told_apart)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    struct child_message got;
    bool has_ended = true;
    ASSERT_FAILS(child_message_receive(pair.parent, pair.arena, &got, &has_ended, &error),
                 ERROR_UNAVAILABLE);
    assert_false(has_ended);
    close(pair.child);
    pair.child = -1;
    ASSERT_FAILS(child_message_receive(pair.parent, pair.arena, &got, &has_ended, &error),
                 ERROR_UNAVAILABLE);
    assert_true(has_ended);
    const struct child_message ready = {.kind = CHILD_READY};
    ASSERT_FAILS(child_message_send(pair.parent, &ready, 0, &error), ERROR_UNAVAILABLE);
}

TEST(last_words_are_heard_though_the_child_did_not_listen)
{
    struct error error;
    int sockets[2];
    ASSERT_OK(child_socket_pair(sockets, &error));
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct child_message stop = {.kind = CHILD_STOP, .stop = {.reason = TEXT("enough")}};
    const struct child_message done = {.kind = CHILD_DONE,
                                       .done = {.is_ok = true, .message = TEXT("trained")}};
    ASSERT_OK(child_message_send(sockets[0], &stop, 0, &error));
    ASSERT_OK(child_message_send(sockets[1], &done, 0, &error));
    close(sockets[1]);
    struct child_message message;
    bool has_ended = true;
    ASSERT_OK(child_message_receive(sockets[0], arena, &message, &has_ended, &error));
    assert_int_equal(message.kind, CHILD_DONE);
    ASSERT_FAILS(child_message_receive(sockets[0], arena, &message, &has_ended, &error),
                 ERROR_UNAVAILABLE);
    assert_true(has_ended);
    close(sockets[0]);
}

TEST(a_reader_that_does_not_read_does_not_block_the_sender)
{
    struct pair pair AUTO_PAIR;
    pair_open(&pair);
    struct error error;
    static char json[CHILD_REPORT_MAX];
    memset(json, ' ', sizeof json);
    const struct child_message report = {.kind = CHILD_REPORT, .report = {{json, sizeof json}}};
    int sent = 0;
    while (sent < 100 && child_message_send(pair.child, &report, 0, &error) == 0)
        sent++;
    assert_in_range(sent, 1, 99);
    assert_int_equal(error.code, ERROR_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_config_arrives_whole),
        cmocka_unit_test(a_stream_brings_its_descriptor),
        cmocka_unit_test(the_other_kinds_arrive_as_sent),
        cmocka_unit_test(a_report_keeps_every_worker),
        cmocka_unit_test(broken_packets_are_refused_and_the_next_is_read),
        cmocka_unit_test(a_descriptor_that_belongs_to_nothing_is_closed),
        cmocka_unit_test(an_empty_socket_and_a_closed_one_are_told_apart),
        cmocka_unit_test(last_words_are_heard_though_the_child_did_not_listen),
        cmocka_unit_test(a_reader_that_does_not_read_does_not_block_the_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
