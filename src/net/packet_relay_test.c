#include "net/packet_relay.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PACKETS = 2000 };

struct fixture {
    struct virtual_clock clock;
    struct loop *loop;
    int left[2], right[2]; /* the test's end, the relay's end */
    struct packet_relay *relay;
};

static void fixture_open(struct fixture *fixture, struct packet_path path, uint64_t seed)
{
    struct error error = {0};
    virtual_clock_init(&fixture->clock, 0);
    ASSERT_OK(loop_open(&fixture->clock.clock, &fixture->loop, &error));
    const int kind = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
    assert_int_equal(socketpair(AF_UNIX, kind, 0, fixture->left), 0);
    assert_int_equal(socketpair(AF_UNIX, kind, 0, fixture->right), 0);
    const struct packet_relay_options options = {.loop = fixture->loop,
                                                 .fds = {fixture->left[1], fixture->right[1]},
                                                 .paths = {path},
                                                 .seed = seed};
    ASSERT_OK(packet_relay_open(&options, &fixture->relay, &error));
}

static void fixture_close(struct fixture *fixture)
{
    packet_relay_free(fixture->relay);
    loop_free(fixture->loop);
    for (int i = 0; i < 2; i++) {
        close(fixture->left[i]);
        close(fixture->right[i]);
    }
}

static void step(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(loop_step(fixture->loop, 0, &error));
}

static void pass(struct fixture *fixture, int64_t span_ms)
{
    virtual_clock_advance(&fixture->clock, span_ms * 1000000);
    step(fixture);
}

static void send_packet(struct fixture *fixture, const void *bytes, size_t size)
{
    assert_int_equal(send(fixture->left[0], bytes, size, 0), size);
    step(fixture);
}

/* Size of the next packet that came out; -1: none is there. */
static ssize_t take_packet(struct fixture *fixture, char out[2048])
{
    return recv(fixture->right[0], out, 2048, 0);
}

TEST(plain_path_passes_on_at_once_and_both_ways)
{
    struct fixture fixture;
    char out[2048];
    fixture_open(&fixture, (struct packet_path){0}, 1);
    send_packet(&fixture, "hello", 5);
    assert_int_equal(take_packet(&fixture, out), 5);
    assert_memory_equal(out, "hello", 5);
    assert_int_equal(send(fixture.right[0], "back", 4, 0), 4);
    step(&fixture);
    assert_int_equal(recv(fixture.left[0], out, sizeof(out), 0), 4);
    assert_int_equal(packet_relay_counts(fixture.relay, 0).bytes, 5);
    assert_int_equal(packet_relay_counts(fixture.relay, 1).packets, 1);
    fixture_close(&fixture);
}

TEST(delay_holds_every_packet_so_long_and_keeps_the_order)
{
    struct fixture fixture;
    char out[2048];
    fixture_open(&fixture, (struct packet_path){.delay_ms = 30}, 1);
    send_packet(&fixture, "a", 1);
    pass(&fixture, 10);
    send_packet(&fixture, "b", 1);
    pass(&fixture, 19);
    assert_int_equal(take_packet(&fixture, out), -1);
    pass(&fixture, 1);
    assert_int_equal(take_packet(&fixture, out), 1);
    assert_int_equal(out[0], 'a');
    assert_int_equal(take_packet(&fixture, out), -1);
    pass(&fixture, 10);
    assert_int_equal(take_packet(&fixture, out), 1);
    assert_int_equal(out[0], 'b');
    fixture_close(&fixture);
}

TEST(rate_spreads_packets_and_the_queue_is_bounded)
{
    struct fixture fixture;
    char packet[1000] = "", out[2048];
    /* 800 kbit/s: 10 ms each. */
    fixture_open(&fixture, (struct packet_path){.rate_kbit = 800, .queue_bytes = 3000}, 1);
    for (int i = 0; i < 5; i++)
        send_packet(&fixture, packet, sizeof(packet));
    assert_int_equal(packet_relay_counts(fixture.relay, 0).dropped, 2);
    for (int i = 0; i < 3; i++) {
        pass(&fixture, 9);
        assert_int_equal(take_packet(&fixture, out), -1);
        pass(&fixture, 1);
        assert_int_equal(take_packet(&fixture, out), sizeof(packet));
    }
    pass(&fixture, 100);
    assert_int_equal(take_packet(&fixture, out), -1);
    fixture_close(&fixture);
}

static uint64_t count_lost(uint64_t seed, uint32_t loss_ppm)
{
    struct fixture fixture;
    char out[2048];
    fixture_open(&fixture, (struct packet_path){.loss_ppm = loss_ppm}, seed);
    uint64_t arrived = 0;
    for (int i = 0; i < PACKETS; i++) {
        send_packet(&fixture, "x", 1);
        arrived += take_packet(&fixture, out) == 1;
    }
    const uint64_t lost = packet_relay_counts(fixture.relay, 0).lost;
    assert_int_equal(arrived + lost, PACKETS);
    fixture_close(&fixture);
    return lost;
}

TEST(losses_are_as_many_as_asked_and_repeat_with_the_seed)
{
    const uint64_t lost = count_lost(7, 100000);
    assert_in_range(lost, PACKETS / 10 - 50, PACKETS / 10 + 50);
    assert_int_equal(count_lost(7, 100000), lost);
    assert_int_equal(count_lost(7, 0), 0);
    assert_int_equal(count_lost(7, 1000000), PACKETS);
}

TEST(path_can_change_under_way_and_nothing_is_overtaken)
{
    struct fixture fixture;
    char out[2048];
    fixture_open(&fixture, (struct packet_path){.delay_ms = 50}, 1);
    send_packet(&fixture, "a", 1);
    packet_relay_set_path(fixture.relay, 0, &(struct packet_path){0});
    send_packet(&fixture, "b", 1);
    assert_int_equal(take_packet(&fixture, out), -1);
    pass(&fixture, 50);
    assert_int_equal(take_packet(&fixture, out), 1);
    assert_int_equal(out[0], 'a');
    assert_int_equal(take_packet(&fixture, out), 1);
    assert_int_equal(out[0], 'b');
    send_packet(&fixture, "c", 1);
    assert_int_equal(take_packet(&fixture, out), 1);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_path_passes_on_at_once_and_both_ways),
        cmocka_unit_test(delay_holds_every_packet_so_long_and_keeps_the_order),
        cmocka_unit_test(rate_spreads_packets_and_the_queue_is_bounded),
        cmocka_unit_test(losses_are_as_many_as_asked_and_repeat_with_the_seed),
        cmocka_unit_test(path_can_change_under_way_and_nothing_is_overtaken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
