/* Sockets that keep packets apart stand in for the devices; peer/job_network_test.c has real ones.
 */
#include "base/assert.h"
#include "net/packet_switch.h"
#include "testing/testing.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RANKS = 3, PACKET_SIZE = 60 };

static const uint8_t KEY[LINK_KEY_SIZE] = "0123456789abcdef0123456789abcde";

struct member {
    struct packet_switch *packet_switch;
    int device; /* what the job would see */
    int detached;
};

/* One end of a link until a switch takes it; or a peer that sends what it likes. */
struct loose_end {
    struct packet_link *link;
    bool is_open, is_closed;
};

struct fixture {
    struct loop *loop;
    struct member members[RANKS];
};

static void step(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(loop_step(fixture->loop, 5000, &error));
}

static void on_detached(struct packet_switch *packet_switch, uint32_t rank,
                        const struct error *reason, void *context)
{
    struct member *member = context;
    (void)reason;
    assert_ptr_equal(packet_switch, member->packet_switch);
    assert_false(packet_switch_is_attached(packet_switch, rank));
    member->detached++;
}

static void fixture_open(struct fixture *fixture)
{
    struct error error = {0};
    *fixture = (struct fixture){0};
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
                         0);
        struct member *member = &fixture->members[rank];
        member->device = fds[0];
        const struct packet_switch_options options = {.loop = fixture->loop,
                                                      .tun_fd = fds[1],
                                                      .rank = rank,
                                                      .rank_count = RANKS,
                                                      .on_detached = on_detached,
                                                      .context = member};
        ASSERT_OK(packet_switch_open_take(&options, &member->packet_switch, &error));
    }
}

static void fixture_close(struct fixture *fixture)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        packet_switch_free(fixture->members[rank].packet_switch);
        close(fixture->members[rank].device);
    }
    loop_free(fixture->loop);
}

static void on_open(struct packet_link *link, void *context)
{
    (void)link;
    ((struct loose_end *)context)->is_open = true;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the callback's type
static void on_record(struct packet_link *link, uint8_t *bytes, size_t size, void *context)
{
    (void)link, (void)bytes, (void)size, (void)context;
}

static void on_close(struct packet_link *link, const struct error *reason, void *context)
{
    struct loose_end *end = context;
    (void)reason;
    end->is_closed = true;
    packet_link_free(link);
    end->link = NULL;
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    memcpy(out_key, KEY, LINK_KEY_SIZE);
    return 0;
}

/* `far` is the loop of the second end. */
static void link_pair_on(struct fixture *fixture, struct loop *far, struct loose_end ends[2])
{
    struct error error = {0};
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct loose_end){0};
        const struct packet_link_options options = {
            .loop = i == 0 ? fixture->loop : far,
            .is_server = i == 1,
            .identity = "x",
            .key = KEY,
            .find_key = find_key,
            .callbacks = {.on_open = on_open, .on_record = on_record, .on_close = on_close},
            .context = &ends[i]};
        ASSERT_OK(packet_link_open_take(&options, fds[i], &ends[i].link, &error));
    }
    while (!ends[0].is_open || !ends[1].is_open) {
        ASSERT_OK(loop_step(fixture->loop, 1, &error));
        ASSERT_OK(loop_step(far, 1, &error));
        assert_false(ends[0].is_closed || ends[1].is_closed);
    }
}

static void link_pair(struct fixture *fixture, struct loose_end ends[2])
{
    link_pair_on(fixture, fixture->loop, ends);
}

static void connect_members(struct fixture *fixture, uint32_t a, uint32_t b)
{
    struct loose_end ends[2];
    link_pair(fixture, ends);
    packet_switch_attach_take(fixture->members[a].packet_switch, b, ends[0].link);
    packet_switch_attach_take(fixture->members[b].packet_switch, a, ends[1].link);
}

static void put_be32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A UDP packet behind ten zeroes, as the kernel gives it. */
static void make_packet(uint8_t out[PACKET_HEADER_SIZE + PACKET_SIZE], uint32_t from, uint32_t to)
{
    memset(out, 0, PACKET_HEADER_SIZE + PACKET_SIZE);
    uint8_t *ip = out + PACKET_HEADER_SIZE;
    ip[0] = 0x45;
    ip[3] = PACKET_SIZE;
    ip[9] = IPPROTO_UDP;
    put_be32(ip + 12, packet_address(from));
    put_be32(ip + 16, packet_address(to));
    ip[PACKET_SIZE - 1] = 'x';
}

/* The device of rank `at` sends. */
static void send_packet(struct fixture *fixture, uint32_t at, uint32_t from, uint32_t to)
{
    uint8_t packet[PACKET_HEADER_SIZE + PACKET_SIZE];
    make_packet(packet, from, to);
    assert_int_equal(send(fixture->members[at].device, packet, sizeof(packet), 0), sizeof(packet));
}

static bool receive_packet(struct fixture *fixture, uint32_t at, uint8_t out[256])
{
    return recv(fixture->members[at].device, out, 256, 0) == PACKET_HEADER_SIZE + PACKET_SIZE;
}

static const struct packet_switch_counts *counts(struct fixture *fixture, uint32_t rank)
{
    return packet_switch_counts(fixture->members[rank].packet_switch);
}

TEST(packets_reach_the_rank_they_are_for_and_no_other)
{
    struct fixture fixture;
    uint8_t bytes[256];
    fixture_open(&fixture);
    connect_members(&fixture, 0, 1);
    connect_members(&fixture, 0, 2);
    send_packet(&fixture, 0, 0, 1);
    send_packet(&fixture, 0, 0, 2);
    send_packet(&fixture, 0, 0, 1);
    while (counts(&fixture, 1)->packets_in < 2 || counts(&fixture, 2)->packets_in < 1)
        step(&fixture);
    assert_true(receive_packet(&fixture, 1, bytes));
    assert_int_equal(bytes[PACKET_HEADER_SIZE + PACKET_SIZE - 1], 'x');
    assert_int_equal(counts(&fixture, 0)->bytes_out, 3 * PACKET_SIZE);
    assert_int_equal(counts(&fixture, 1)->bytes_in, 2 * PACKET_SIZE);
    assert_int_equal(counts(&fixture, 2)->bytes_in, PACKET_SIZE);
    fixture_close(&fixture);
}

TEST(job_can_send_from_its_own_address_only)
{
    struct fixture fixture;
    fixture_open(&fixture);
    connect_members(&fixture, 0, 1);
    send_packet(&fixture, 0, 2, 1);
    send_packet(&fixture, 0, 0, 1);
    while (counts(&fixture, 1)->packets_in < 1)
        step(&fixture);
    assert_int_equal(counts(&fixture, 0)->dropped_out[PACKET_SPOOFED], 1);
    assert_int_equal(counts(&fixture, 0)->packets_out, 1);
    fixture_close(&fixture);
}

TEST(packet_to_a_rank_without_a_link_is_dropped_and_counted)
{
    struct fixture fixture;
    fixture_open(&fixture);
    send_packet(&fixture, 0, 0, 1);
    send_packet(&fixture, 0, 0, 77);
    while (counts(&fixture, 0)->no_link + counts(&fixture, 0)->dropped_out[PACKET_FOREIGN] < 2)
        step(&fixture);
    assert_int_equal(counts(&fixture, 0)->no_link, 1);
    fixture_close(&fixture);
}

/* Rank 0's peer under the name of rank 1, which sends what it likes. */
static void send_raw(struct loose_end *end, const uint8_t *bytes, size_t size)
{
    uint8_t *room = packet_link_room(end->link);
    assert_non_null(room);
    memcpy(room, bytes, size);
    packet_link_add(end->link, size);
    packet_link_flush(end->link);
}

TEST(peer_cannot_speak_for_another_rank_or_to_another_address)
{
    struct fixture fixture;
    struct loose_end ends[2];
    uint8_t bytes[256];
    uint8_t packet[PACKET_HEADER_SIZE + PACKET_SIZE];
    fixture_open(&fixture);
    link_pair(&fixture, ends);
    packet_switch_attach_take(fixture.members[0].packet_switch, 1, ends[0].link);
    make_packet(packet, 2, 0);
    packet[0] = PACKET_SIZE;
    send_raw(&ends[1], packet, sizeof(packet));
    make_packet(packet, 1, 2);
    packet[0] = PACKET_SIZE;
    send_raw(&ends[1], packet, sizeof(packet));
    packet[0] = PACKET_SIZE + 1; /* more than there is */
    send_raw(&ends[1], packet, sizeof(packet));
    make_packet(packet, 1, 0);
    packet[0] = PACKET_SIZE;
    send_raw(&ends[1], packet, sizeof(packet));
    while (counts(&fixture, 0)->packets_in < 1)
        step(&fixture);
    assert_int_equal(counts(&fixture, 0)->dropped_in[PACKET_SPOOFED], 1);
    assert_int_equal(counts(&fixture, 0)->dropped_in[PACKET_FOREIGN], 1);
    assert_int_equal(counts(&fixture, 0)->dropped_in[PACKET_MALFORMED], 1);
    assert_true(receive_packet(&fixture, 0, bytes));
    assert_false(receive_packet(&fixture, 0, bytes));
    packet_link_free(ends[1].link);
    fixture_close(&fixture);
}

TEST(link_that_ends_is_told_and_can_be_replaced)
{
    struct fixture fixture;
    fixture_open(&fixture);
    connect_members(&fixture, 0, 1);
    connect_members(&fixture, 0, 1); /* the old ends go without a word */
    assert_int_equal(fixture.members[0].detached, 0);
    packet_switch_free(TAKE(fixture.members[1].packet_switch));
    while (fixture.members[0].detached < 1)
        step(&fixture);
    fixture_close(&fixture);
}

/* More than all queues on the way to `to` hold. */
static void fill(struct fixture *fixture, uint32_t to, int count)
{
    struct error error = {0};
    static uint8_t packet[PACKET_HEADER_SIZE + 60000];
    memset(packet, 0, sizeof(packet));
    make_packet(packet, 0, to);
    packet[PACKET_HEADER_SIZE + 2] = 60000 >> 8;
    packet[PACKET_HEADER_SIZE + 3] = 60000 & 0xff;
    for (int i = 0; i < count; i++) {
        (void)send(fixture->members[0].device, packet, sizeof(packet), 0);
        ASSERT_OK(loop_step(fixture->loop, 1, &error));
    }
}

TEST(rank_that_does_not_listen_does_not_hold_up_the_others)
{
    struct fixture fixture;
    struct loose_end ends[2];
    struct error error = {0};
    struct loop *deaf; /* runs no further than the handshake */
    fixture_open(&fixture);
    ASSERT_OK(loop_open(&clock_system, &deaf, &error));
    link_pair_on(&fixture, deaf, ends);
    packet_switch_attach_take(fixture.members[0].packet_switch, 1, ends[0].link);
    connect_members(&fixture, 0, 2);
    fill(&fixture, 1, 200);
    assert_true(counts(&fixture, 0)->no_room > 0);
    send_packet(&fixture, 0, 0, 2);
    while (counts(&fixture, 2)->packets_in < 1)
        step(&fixture);
    packet_link_free(ends[1].link);
    loop_free(deaf);
    fixture_close(&fixture);
}

TEST(rank_out_of_range_is_refused)
{
    struct error error = {0};
    struct packet_switch *packet_switch;
    const struct packet_switch_options options = {.rank = 3, .rank_count = 3};
    ASSERT_FAILS(packet_switch_open_take(&options, &packet_switch, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_reach_the_rank_they_are_for_and_no_other),
        cmocka_unit_test(job_can_send_from_its_own_address_only),
        cmocka_unit_test(packet_to_a_rank_without_a_link_is_dropped_and_counted),
        cmocka_unit_test(peer_cannot_speak_for_another_rank_or_to_another_address),
        cmocka_unit_test(link_that_ends_is_told_and_can_be_replaced),
        cmocka_unit_test(rank_that_does_not_listen_does_not_hold_up_the_others),
        cmocka_unit_test(rank_out_of_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
