#include "net/fence.h"
#include "testing/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { SIZE = 60 };
#define SOMEWHERE UINT32_C(0x5db8d822) /* 93.184.216.34 */

struct sample {
    uint8_t bytes[FENCE_PACKET_MAX + 8];
    size_t size;
};

static void put_be16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put_be32(uint8_t *at, uint32_t value)
{
    put_be16(at, value >> 16);
    put_be16(at + 2, value & 0xffff);
}

/* 60 bytes from port 1000 to port 80, with whole headers. */
static struct sample sample_of(uint8_t protocol, uint32_t from, uint32_t to)
{
    struct sample sample = {.size = SIZE};
    uint8_t *ip = sample.bytes;
    ip[0] = 0x45;
    put_be16(ip + 2, SIZE);
    ip[9] = protocol;
    put_be32(ip + 12, from);
    put_be32(ip + 16, to);
    put_be16(ip + 20, 1000);
    put_be16(ip + 22, 80);
    if (protocol == IPPROTO_TCP)
        ip[32] = 5 << 4;
    if (protocol == IPPROTO_UDP)
        put_be16(ip + 24, SIZE - 20);
    if (protocol == IPPROTO_ICMP) {
        ip[20] = 8;
        put_be16(ip + 24, 77);
    }
    return sample;
}

static struct fence open_fence(void)
{
    struct fence fence;
    fence_init(&fence);
    fence_open(&fence);
    return fence;
}

static enum fence_verdict out(const struct fence *fence, const struct sample *sample)
{
    struct fence_flow flow;
    return fence_check_out(fence, sample->bytes, sample->size, &flow);
}

static enum fence_verdict out_to(const struct fence *fence, uint32_t address)
{
    const struct sample sample = sample_of(IPPROTO_TCP, FENCE_JOB_ADDRESS, address);
    return out(fence, &sample);
}

static uint32_t address_of(const char *text)
{
    struct in_addr address;
    assert_int_equal(inet_pton(AF_INET, text, &address), 1);
    return ntohl(address.s_addr);
}

TEST(a_public_address_is_reached_by_tcp_udp_and_echo)
{
    const struct fence fence = open_fence();
    static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP};
    for (size_t i = 0; i < sizeof(protocols); i++) {
        struct fence_flow flow;
        const struct sample sample = sample_of(protocols[i], FENCE_JOB_ADDRESS, SOMEWHERE);
        assert_int_equal(fence_check_out(&fence, sample.bytes, sample.size, &flow), FENCE_PASSES);
        assert_int_equal(flow.protocol, protocols[i]);
        assert_int_equal(flow.remote, SOMEWHERE);
        assert_int_equal(flow.job_port, protocols[i] == IPPROTO_ICMP ? 77 : 1000);
        assert_int_equal(flow.remote_port, protocols[i] == IPPROTO_ICMP ? 77 : 80);
    }
}

TEST(mail_is_sent_by_nobody)
{
    const struct fence fence = open_fence();
    struct sample sample = sample_of(IPPROTO_TCP, FENCE_JOB_ADDRESS, SOMEWHERE);
    put_be16(sample.bytes + 22, 25);
    assert_int_equal(out(&fence, &sample), FENCE_MAIL);
    put_be16(sample.bytes + 22, 587); /* there one has to say who one is */
    assert_int_equal(out(&fence, &sample), FENCE_PASSES);
    put_be16(sample.bytes + 20, 25);
    assert_int_equal(out(&fence, &sample), FENCE_PASSES);
    sample = sample_of(IPPROTO_UDP, FENCE_JOB_ADDRESS, SOMEWHERE);
    put_be16(sample.bytes + 22, 25);
    assert_int_equal(out(&fence, &sample), FENCE_PASSES);
}

TEST(private_local_and_special_addresses_are_inside)
{
    static const char *const inside[] = {
        "0.0.0.0",         "0.1.2.3",         "10.0.0.1",        "10.77.0.1",
        "10.78.0.2",       "10.78.0.3",       "10.255.255.255",  "100.64.0.1",
        "100.100.100.200", "100.127.255.255", "127.0.0.1",       "127.255.255.254",
        "169.254.169.254", "169.254.0.1",     "172.16.0.1",      "172.31.255.255",
        "192.0.0.192",     "192.0.2.1",       "192.88.99.1",     "192.168.0.1",
        "192.168.255.255", "198.18.0.1",      "198.19.255.255",  "198.51.100.7",
        "203.0.113.9",     "224.0.0.1",       "239.255.255.250", "240.0.0.1",
        "255.255.255.255", "168.63.129.16"};
    static const char *const outside[] = {
        "1.1.1.1",         "9.255.255.255",   "11.0.0.0",        "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.0",       "169.253.255.255", "169.255.0.0",    "172.15.255.255",
        "172.32.0.0",      "192.0.1.0",       "192.167.255.255", "192.169.0.0",    "198.17.255.255",
        "198.20.0.0",      "223.255.255.255", "168.63.129.17"};
    const struct fence fence = open_fence();
    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
        assert_int_equal(out_to(&fence, address_of(inside[i])), FENCE_INSIDE);
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++)
        assert_int_equal(out_to(&fence, address_of(outside[i])), FENCE_PASSES);
}

TEST(added_networks_are_inside_to_their_last_address)
{
    struct fence fence = open_fence();
    struct fence_network network;
    struct error error;
    ASSERT_OK(fence_network_parse(TEXT("130.75.0.0/16"), &network, &error));
    fence_add(&fence, network);
    ASSERT_OK(fence_network_parse(TEXT("8.8.8.8"), &network, &error));
    fence_add(&fence, network);
    assert_int_equal(out_to(&fence, address_of("130.75.255.255")), FENCE_INSIDE);
    assert_int_equal(out_to(&fence, address_of("130.76.0.0")), FENCE_PASSES);
    assert_int_equal(out_to(&fence, address_of("8.8.8.8")), FENCE_INSIDE);
    assert_int_equal(out_to(&fence, address_of("8.8.8.9")), FENCE_PASSES);
    fence_add(&fence, (struct fence_network){0, 0});
    assert_int_equal(out_to(&fence, address_of("8.8.8.9")), FENCE_INSIDE);
}

TEST(a_fence_that_does_not_know_lets_nothing_pass)
{
    struct fence fence;
    fence_init(&fence);
    assert_int_equal(out_to(&fence, SOMEWHERE), FENCE_INSIDE);
    fence_open(&fence);
    for (uint32_t i = 0; i < FENCE_NETWORKS_MAX; i++) {
        fence_add(&fence, (struct fence_network){UINT32_C(0x01000000) + i, 32});
        fence_add(&fence, (struct fence_network){UINT32_C(0x01000000) + i, 32}); /* the same */
    }
    assert_int_equal(out_to(&fence, SOMEWHERE), FENCE_PASSES);
    fence_add(&fence, (struct fence_network){UINT32_C(0x02000000), 32});
    assert_int_equal(out_to(&fence, SOMEWHERE), FENCE_INSIDE);
}

TEST(what_is_no_network_is_said_so)
{
    static const char *const wrong[] = {"",
                                        "1.2.3",
                                        "1.2.3.4/33",
                                        "1.2.3.4/",
                                        "::1",
                                        "1.2.3.4/-1",
                                        "1.2.3.256",
                                        "name",
                                        "1.2.3.4 ",
                                        "1.2.3.4/8/8",
                                        "1.2.3.4.5.6.7.8.9.10.11.12"};
    struct fence_network network;
    struct error error;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(fence_network_parse(text_of(wrong[i]), &network, &error), -1);
}

TEST(a_packet_cut_off_anywhere_goes_no_further)
{
    const struct fence fence = open_fence();
    static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP};
    for (size_t i = 0; i < sizeof(protocols); i++) {
        struct sample sample = sample_of(protocols[i], FENCE_JOB_ADDRESS, SOMEWHERE);
        for (sample.size = 0; sample.size < SIZE; sample.size++)
            assert_int_not_equal(out(&fence, &sample), FENCE_PASSES);
        /* Also when the header agrees with the cut, as long as a transport header is not whole. */
        for (sample.size = 20; sample.size < 28; sample.size++) {
            put_be16(sample.bytes + 2, (unsigned)sample.size);
            assert_int_equal(out(&fence, &sample), FENCE_MALFORMED);
        }
    }
    struct sample large = sample_of(IPPROTO_ICMP, FENCE_JOB_ADDRESS, SOMEWHERE);
    large.size = FENCE_PACKET_MAX + 1;
    put_be16(large.bytes + 2, FENCE_PACKET_MAX + 1);
    assert_int_equal(out(&fence, &large), FENCE_MALFORMED);
}

TEST(bad_headers_go_no_further)
{
    const struct fence fence = open_fence();
    const struct sample good = sample_of(IPPROTO_TCP, FENCE_JOB_ADDRESS, SOMEWHERE);
    struct sample bad = good;
    bad.bytes[0] = 0x46; /* with options: source routes */
    assert_int_equal(out(&fence, &bad), FENCE_MALFORMED);
    bad.bytes[0] = 0x44;
    assert_int_equal(out(&fence, &bad), FENCE_MALFORMED);
    bad.bytes[0] = 0x65; /* IPv6 */
    assert_int_equal(out(&fence, &bad), FENCE_OTHER_KIND);
    bad = good;
    bad.bytes[3] = SIZE + 1;
    assert_int_equal(out(&fence, &bad), FENCE_MALFORMED);
    bad = good;
    bad.bytes[32] = 4 << 4; /* a TCP header that is too small, and one beyond the end */
    assert_int_equal(out(&fence, &bad), FENCE_MALFORMED);
    bad.bytes[32] = 15 << 4;
    assert_int_equal(out(&fence, &bad), FENCE_MALFORMED);
    bad = sample_of(IPPROTO_UDP, FENCE_JOB_ADDRESS, SOMEWHERE);
    bad.bytes[25] = SIZE - 21;
    assert_int_equal(out(&fence, &bad), FENCE_MALFORMED);
    bad = good;
    bad.bytes[9] = IPPROTO_GRE;
    assert_int_equal(out(&fence, &bad), FENCE_OTHER_KIND);
    bad = sample_of(IPPROTO_ICMP, FENCE_JOB_ADDRESS, SOMEWHERE);
    bad.bytes[20] = 5; /* a redirect */
    assert_int_equal(out(&fence, &bad), FENCE_OTHER_KIND);
    bad = sample_of(IPPROTO_TCP, FENCE_JOB_ADDRESS + 1, SOMEWHERE);
    assert_int_equal(out(&fence, &bad), FENCE_SPOOFED);
}

TEST(fragments_go_no_further_first_or_later_nor_do_they_come_in)
{
    const struct fence fence = open_fence();
    static const unsigned fields[] = {0x2000, 0x2001, 0x0001, 0x1fff};
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        struct fence_flow flow;
        bool is_error;
        struct sample sample = sample_of(IPPROTO_UDP, FENCE_JOB_ADDRESS, SOMEWHERE);
        put_be16(sample.bytes + 6, fields[i]);
        assert_int_equal(out(&fence, &sample), FENCE_FRAGMENT);
        sample = sample_of(IPPROTO_UDP, SOMEWHERE, FENCE_JOB_ADDRESS);
        put_be16(sample.bytes + 6, fields[i]);
        assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                         FENCE_FRAGMENT);
    }
    struct sample whole = sample_of(IPPROTO_UDP, FENCE_JOB_ADDRESS, SOMEWHERE);
    put_be16(whole.bytes + 6, 0x4000); /* not to be fragmented */
    assert_int_equal(out(&fence, &whole), FENCE_PASSES);
}

TEST(answers_are_named_as_the_job_asked_and_only_errors_of_the_gateway_come_unasked)
{
    struct fence fence = open_fence();
    struct fence_flow flow;
    bool is_error = true;
    struct sample sample = sample_of(IPPROTO_TCP, SOMEWHERE, FENCE_JOB_ADDRESS);
    assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                     FENCE_PASSES);
    assert_false(is_error);
    assert_int_equal(flow.remote, SOMEWHERE);
    assert_int_equal(flow.remote_port, 1000);
    assert_int_equal(flow.job_port, 80);
    fence_add(&fence, (struct fence_network){SOMEWHERE, 24}); /* attached meanwhile */
    assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                     FENCE_INSIDE);
    sample = sample_of(IPPROTO_ICMP, FENCE_GATEWAY_ADDRESS, FENCE_JOB_ADDRESS);
    assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                     FENCE_OTHER_KIND);
    sample.bytes[20] = 3;
    assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                     FENCE_PASSES);
    assert_true(is_error);
    put_be32(sample.bytes + 12, UINT32_C(0x01010101));
    assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                     FENCE_OTHER_KIND);
    sample = sample_of(IPPROTO_TCP, SOMEWHERE, FENCE_JOB_ADDRESS + 1);
    assert_int_equal(fence_check_in(&fence, sample.bytes, sample.size, &flow, &is_error),
                     FENCE_SPOOFED);
}

static uint32_t sum_of(const uint8_t *bytes, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i += 2)
        sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

TEST(a_refusal_is_a_whole_icmp_error_about_the_packet)
{
    const struct fence fence = open_fence();
    struct fence_flow flow;
    bool is_error = false;
    uint8_t refusal[FENCE_REFUSAL_SIZE];
    struct sample sample = sample_of(IPPROTO_TCP, FENCE_JOB_ADDRESS, address_of("192.168.1.1"));
    assert_int_equal(fence_write_refusal(sample.bytes, sample.size, refusal), FENCE_REFUSAL_SIZE);
    assert_int_equal(fence_check_in(&fence, refusal, sizeof(refusal), &flow, &is_error),
                     FENCE_PASSES);
    assert_true(is_error);
    assert_int_equal(sum_of(refusal, 20), 0xffff);
    assert_int_equal(sum_of(refusal + 20, sizeof(refusal) - 20), 0xffff);
    assert_memory_equal(refusal + 28, sample.bytes, 28);
    sample = sample_of(IPPROTO_ICMP, FENCE_JOB_ADDRESS, address_of("192.168.1.1"));
    assert_int_equal(fence_write_refusal(sample.bytes, sample.size, refusal), 0);
    sample = sample_of(IPPROTO_TCP, SOMEWHERE, address_of("192.168.1.1"));
    assert_int_equal(fence_write_refusal(sample.bytes, sample.size, refusal), 0);
}

TEST(verdicts_have_names)
{
    for (int i = 0; i < FENCE_VERDICT_COUNT; i++)
        assert_non_null(fence_verdict_name((enum fence_verdict)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_public_address_is_reached_by_tcp_udp_and_echo),
        cmocka_unit_test(mail_is_sent_by_nobody),
        cmocka_unit_test(private_local_and_special_addresses_are_inside),
        cmocka_unit_test(added_networks_are_inside_to_their_last_address),
        cmocka_unit_test(a_fence_that_does_not_know_lets_nothing_pass),
        cmocka_unit_test(what_is_no_network_is_said_so),
        cmocka_unit_test(a_packet_cut_off_anywhere_goes_no_further),
        cmocka_unit_test(bad_headers_go_no_further),
        cmocka_unit_test(fragments_go_no_further_first_or_later_nor_do_they_come_in),
        cmocka_unit_test(
            answers_are_named_as_the_job_asked_and_only_errors_of_the_gateway_come_unasked),
        cmocka_unit_test(a_refusal_is_a_whole_icmp_error_about_the_packet),
        cmocka_unit_test(verdicts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
