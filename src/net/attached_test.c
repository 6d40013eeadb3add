#include "net/attached.h"
#include "testing/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct answer {
    uint8_t bytes[512];
    size_t size;
};

static void put(struct answer *answer, const void *data, size_t size)
{
    memcpy(answer->bytes + answer->size, data, size);
    answer->size = NLMSG_ALIGN(answer->size + size);
}

static size_t begin(struct answer *answer, uint16_t type, uint16_t flags)
{
    const size_t at = answer->size;
    const struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = flags};
    put(answer, &header, sizeof(header));
    return at;
}

static void end(struct answer *answer, size_t at)
{
    const uint32_t size = (uint32_t)(answer->size - at);
    memcpy(answer->bytes + at, &size, sizeof(size));
}

static void put_address(struct answer *answer, uint16_t type, uint32_t address)
{
    const struct rtattr header = {.rta_len = RTA_LENGTH(4), .rta_type = type};
    const uint32_t value = htonl(address);
    put(answer, &header, sizeof(header));
    put(answer, &value, sizeof(value));
}

static void put_route(struct answer *answer, uint8_t bits, uint32_t to, uint32_t gateway)
{
    const struct rtmsg message = {.rtm_family = AF_INET, .rtm_dst_len = bits};
    const size_t at = begin(answer, RTM_NEWROUTE, NLM_F_MULTI);
    put(answer, &message, sizeof(message));
    if (bits > 0)
        put_address(answer, RTA_DST, to);
    if (gateway)
        put_address(answer, RTA_GATEWAY, gateway);
    end(answer, at);
}

static struct fence open_fence(void)
{
    struct fence fence;
    fence_init(&fence);
    fence_open(&fence);
    return fence;
}

static int parse(const struct answer *answer, struct fence *fence, bool *is_done, bool *is_torn)
{
    struct error error;
    *is_done = *is_torn = false;
    return attached_parse(answer->bytes, answer->size, fence, is_done, is_torn, &error);
}

TEST(routes_and_their_gateways_are_fenced_off_and_the_default_is_not)
{
    struct answer answer = {0};
    struct fence fence = open_fence();
    bool is_done, is_torn;
    put_route(&answer, 0, 0, UINT32_C(0x05060708));          /* the router, by a public address */
    put_route(&answer, 1, UINT32_C(0x80000000), 0);          /* half of everything: a VPN */
    put_route(&answer, 16, UINT32_C(0x824b0000), 0);         /* the campus */
    put_route(&answer, 8, UINT32_C(0x0b000000), 0x08080404); /* an office behind a VPN */
    const size_t at = begin(&answer, NLMSG_DONE, 0);
    end(&answer, at);
    assert_int_equal(parse(&answer, &fence, &is_done, &is_torn), 0);
    assert_true(is_done);
    assert_false(is_torn);
    assert_false(fence_has_outside(&fence, UINT32_C(0x05060708)));
    assert_true(fence_has_outside(&fence, UINT32_C(0x05060709)));
    assert_true(fence_has_outside(&fence, UINT32_C(0x81000000)));
    assert_false(fence_has_outside(&fence, UINT32_C(0x824b0101)));
    assert_false(fence_has_outside(&fence, UINT32_C(0x0b010101)));
    assert_false(fence_has_outside(&fence, UINT32_C(0x08080404)));
}

TEST(addresses_are_fenced_off_with_their_network)
{
    struct answer answer = {0};
    struct fence fence = open_fence();
    bool is_done, is_torn;
    const struct ifaddrmsg message = {.ifa_family = AF_INET, .ifa_prefixlen = 24};
    const size_t at = begin(&answer, RTM_NEWADDR, NLM_F_MULTI | NLM_F_DUMP_INTR);
    put(&answer, &message, sizeof(message));
    put_address(&answer, IFA_ADDRESS, UINT32_C(0x51020301));
    put_address(&answer, IFA_LOCAL, UINT32_C(0x52020301));
    end(&answer, at);
    assert_int_equal(parse(&answer, &fence, &is_done, &is_torn), 0);
    assert_false(is_done);
    assert_true(is_torn);
    assert_false(fence_has_outside(&fence, UINT32_C(0x510203ff)));
    assert_false(fence_has_outside(&fence, UINT32_C(0x52020301)));
    assert_true(fence_has_outside(&fence, UINT32_C(0x52020302)));
}

TEST(an_answer_that_is_cut_off_or_an_error_is_a_failure)
{
    struct answer answer = {0};
    struct fence fence = open_fence();
    struct error error;
    bool is_done, is_torn;
    put_route(&answer, 16, UINT32_C(0x824b0000), 0);
    const size_t whole = answer.size;
    for (answer.size = sizeof(struct nlmsghdr); answer.size < whole; answer.size++)
        assert_int_equal(parse(&answer, &fence, &is_done, &is_torn), -1);
    answer.size = 0;
    const size_t at = begin(&answer, NLMSG_ERROR, 0);
    const struct nlmsgerr failure = {.error = -EPERM};
    put(&answer, &failure, sizeof(failure));
    end(&answer, at);
    is_done = is_torn = false;
    assert_int_equal(attached_parse(answer.bytes, answer.size, &fence, &is_done, &is_torn, &error),
                     -1);
}

TEST(this_machine_is_fenced_off)
{
    AUTO(attached) struct attached *attached = NULL;
    struct fence fence = open_fence();
    struct error error;
    ASSERT_OK(attached_open(&attached, &error));
    ASSERT_OK(attached_read(attached, &fence, &error));
    assert_true(fence.count > 0 && !fence.is_shut); /* its loopback at least */
    bool has_loopback = false;
    for (size_t i = 0; i < fence.count; i++)
        has_loopback |= fence.networks[i].address == INADDR_LOOPBACK;
    assert_true(has_loopback);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_and_their_gateways_are_fenced_off_and_the_default_is_not),
        cmocka_unit_test(addresses_are_fenced_off_with_their_network),
        cmocka_unit_test(an_answer_that_is_cut_off_or_an_error_is_a_failure),
        cmocka_unit_test(this_machine_is_fenced_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
