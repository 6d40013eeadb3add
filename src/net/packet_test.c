#include "net/packet.h"
#include "testing/testing.h"

#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <string.h>

enum { RANKS = 4, SIZE = PACKET_HEADER_SIZE + 60 };

struct sample {
    uint8_t bytes[SIZE];
};

static void put_be32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A TCP packet of 60 bytes from rank 1 to rank 2, behind a header of zeroes. */
static struct sample tcp_sample(void)
{
    struct sample sample = {0};
    uint8_t *ip = sample.bytes + PACKET_HEADER_SIZE;
    ip[0] = 0x45;
    ip[3] = 60;
    ip[9] = IPPROTO_TCP;
    put_be32(ip + 12, packet_address(1));
    put_be32(ip + 16, packet_address(2));
    ip[20 + 12] = 5 << 4;
    return sample;
}

static void set_kernel(struct sample *sample, struct virtio_net_hdr header)
{
    memcpy(sample->bytes, &header, sizeof(header));
}

static enum packet_verdict from_tun(struct sample *sample)
{
    struct packet_route route;
    return packet_from_tun(sample->bytes, SIZE, RANKS, &route);
}

/* As a peer would send it. */
static struct sample sent_sample(void)
{
    struct sample sample = tcp_sample();
    sample.bytes[0] = 60;
    return sample;
}

static enum packet_verdict to_tun(struct sample *sample)
{
    struct packet_route route;
    size_t size;
    return packet_to_tun(sample->bytes, SIZE, RANKS, &route, &size);
}

TEST(ranks_have_addresses_from_one_on)
{
    assert_int_equal(packet_address(0), 0x0a4d0001);
    assert_int_equal(packet_address(299), 0x0a4d012c);
}

TEST(packet_between_ranks_passes_and_names_them)
{
    struct sample sample = tcp_sample();
    struct packet_route route = {0};
    assert_int_equal(packet_from_tun(sample.bytes, SIZE, RANKS, &route), PACKET_PASSES);
    assert_int_equal(route.from_rank, 1);
    assert_int_equal(route.to_rank, 2);
    const uint8_t header[PACKET_HEADER_SIZE] = {60};
    assert_memory_equal(sample.bytes, header, sizeof(header));
}

TEST(headers_survive_the_way_there)
{
    struct sample sample = tcp_sample();
    const struct virtio_net_hdr kernel = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                          .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
                                          .hdr_len = 40,
                                          .gso_size = 1400,
                                          .csum_start = 20,
                                          .csum_offset = 16};
    set_kernel(&sample, kernel);
    assert_int_equal(from_tun(&sample), PACKET_PASSES);
    struct packet_route route;
    size_t size = 0;
    assert_int_equal(packet_to_tun(sample.bytes, SIZE, RANKS, &route, &size), PACKET_PASSES);
    assert_int_equal(size, SIZE);
    assert_int_equal(route.from_rank, 1);
    assert_int_equal(route.to_rank, 2);
    assert_memory_equal(sample.bytes, &kernel, sizeof(kernel));
}

TEST(addresses_outside_the_job_are_refused)
{
    static const uint32_t outside[] = {
        0x7f000001,             /* localhost */
        0xc0a80001,             /* a home */
        0xa9fea9fe,             /* metadata */
        0x08080808,             /* the Internet */
        0x0a4d0000,             /* the network's own address */
        0x0a4d0005,             /* the rank after the last */
        0x0a4dffff,             /* broadcast */
        0xe0000001,             /* multicast */
        0xffffffff, 0x0a4d0002, /* the sender itself */
    };
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        struct sample sample = tcp_sample();
        put_be32(sample.bytes + PACKET_HEADER_SIZE + 16, outside[i]);
        assert_int_equal(from_tun(&sample), PACKET_FOREIGN);
        sample = sent_sample();
        put_be32(sample.bytes + PACKET_HEADER_SIZE + 16, outside[i]);
        assert_int_equal(to_tun(&sample), PACKET_FOREIGN);
    }
    struct sample sample = tcp_sample();
    put_be32(sample.bytes + PACKET_HEADER_SIZE + 12, 0x7f000001);
    assert_int_equal(from_tun(&sample), PACKET_SPOOFED);
}

TEST(other_kinds_are_refused)
{
    struct sample sample = tcp_sample();
    sample.bytes[PACKET_HEADER_SIZE] = 0x60;
    assert_int_equal(from_tun(&sample), PACKET_OTHER_KIND);
    sample = tcp_sample();
    sample.bytes[PACKET_HEADER_SIZE + 9] = 47; /* GRE */
    assert_int_equal(from_tun(&sample), PACKET_OTHER_KIND);
}

TEST(sizes_that_do_not_agree_are_malformed)
{
    struct packet_route route;
    size_t size;
    struct sample sample = tcp_sample();
    assert_int_equal(packet_from_tun(sample.bytes, SIZE - 1, RANKS, &route), PACKET_MALFORMED);
    assert_int_equal(packet_from_tun(sample.bytes, PACKET_HEADER_SIZE, RANKS, &route),
                     PACKET_MALFORMED);
    assert_int_equal(packet_from_tun(sample.bytes, 3, RANKS, &route), PACKET_MALFORMED);
    sample.bytes[PACKET_HEADER_SIZE] = 0x44; /* a header shorter than the least */
    assert_int_equal(from_tun(&sample), PACKET_MALFORMED);
    sample = tcp_sample();
    sample.bytes[PACKET_HEADER_SIZE + 3] = 30;
    sample.bytes[PACKET_HEADER_SIZE] = 0x4f; /* longer than the packet */
    assert_int_equal(packet_from_tun(sample.bytes, PACKET_HEADER_SIZE + 30, RANKS, &route),
                     PACKET_MALFORMED);
    sample = sent_sample();
    assert_int_equal(packet_to_tun(sample.bytes, SIZE - 1, RANKS, &route, &size), PACKET_MALFORMED);
    assert_int_equal(packet_to_tun(sample.bytes, 9, RANKS, &route, &size), PACKET_MALFORMED);
    sample.bytes[7] = 1; /* reserved */
    assert_int_equal(to_tun(&sample), PACKET_MALFORMED);
}

TEST(offload_that_the_packet_has_no_place_for_is_refused)
{
    struct sample sample = sent_sample();
    sample.bytes[2] = 100; /* segments without a checksum to complete */
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = sent_sample();
    sample.bytes[2] = PACKET_SEGMENT_MIN - 1;
    sample.bytes[4] = 1;
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = sent_sample();
    sample.bytes[2] = 100;
    sample.bytes[4] = 1;
    sample.bytes[PACKET_HEADER_SIZE + 9] = IPPROTO_UDP;
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = sent_sample();
    sample.bytes[4] = 1;
    sample.bytes[PACKET_HEADER_SIZE + 9] = IPPROTO_ICMP;
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = sent_sample();
    sample.bytes[4] = 1;
    sample.bytes[PACKET_HEADER_SIZE + 7] = 1; /* a later fragment has no TCP header */
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = sent_sample();
    sample.bytes[2] = 100;
    sample.bytes[4] = 1;
    sample.bytes[PACKET_HEADER_SIZE + 20 + 12] = 15 << 4; /* a TCP header past the end */
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = sent_sample();
    sample.bytes[2] = 100;
    sample.bytes[4] = 1;
    sample.bytes[PACKET_HEADER_SIZE + 20 + 12] = 10 << 4; /* all header, nothing to cut */
    assert_int_equal(to_tun(&sample), PACKET_BAD_OFFLOAD);
}

TEST(kernel_header_that_points_elsewhere_is_refused)
{
    struct sample sample = tcp_sample();
    set_kernel(&sample, (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                                .csum_start = 24,
                                                .csum_offset = 16});
    assert_int_equal(from_tun(&sample), PACKET_BAD_OFFLOAD);
    sample = tcp_sample();
    set_kernel(&sample,
               (struct virtio_net_hdr){.gso_type = VIRTIO_NET_HDR_GSO_UDP, .gso_size = 99});
    assert_int_equal(from_tun(&sample), PACKET_BAD_OFFLOAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_have_addresses_from_one_on),
        cmocka_unit_test(packet_between_ranks_passes_and_names_them),
        cmocka_unit_test(headers_survive_the_way_there),
        cmocka_unit_test(addresses_outside_the_job_are_refused),
        cmocka_unit_test(other_kinds_are_refused),
        cmocka_unit_test(sizes_that_do_not_agree_are_malformed),
        cmocka_unit_test(offload_that_the_packet_has_no_place_for_is_refused),
        cmocka_unit_test(kernel_header_that_points_elsewhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
