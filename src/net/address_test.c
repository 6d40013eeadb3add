/* covers address.c, tcp_connect.c */
#include "base/scope.h"
#include "net/address.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct host_port parsed(const char *text)
{
    struct error error = {0};
    struct host_port host_port;
    ASSERT_OK(host_port_parse(text_of(text), &host_port, &error));
    return host_port;
}

static struct address resolved(const char *text)
{
    struct error error = {0};
    const struct host_port host_port = parsed(text);
    struct address address;
    ASSERT_OK(address_resolve(&host_port, &address, &error));
    return address;
}

TEST(addresses_are_read_as_people_write_them)
{
    assert_string_equal(parsed("example.org:80").host, "example.org");
    assert_int_equal(parsed("example.org:80").port, 80);
    assert_string_equal(parsed("[::1]:7600").host, "::1");
    assert_int_equal(parsed("[::1]:7600").port, 7600);
    assert_string_equal(parsed(":7600").host, "");
}

TEST(addresses_without_a_good_port_are_refused)
{
    struct error error = {0};
    struct host_port host_port;
    const char *const wrong[] = {"",         "host",  "host:",   "host:65536", "host:-1",
                                 "host:80x", "[::1]", "[::1]80", "[::1:80",    "::1:80"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(host_port_parse(text_of(wrong[i]), &host_port, &error), ERROR_INVALID);
}

TEST(a_host_that_is_too_long_is_refused)
{
    struct error error = {0};
    char text[ADDRESS_HOST_SIZE + 16];
    memset(text, 'a', sizeof(text));
    memcpy(text + ADDRESS_HOST_SIZE, ":80", 4);
    struct host_port host_port;
    assert_int_equal(host_port_parse(text_of(text), &host_port, &error), -1);
}

TEST(addresses_are_formatted_so_that_they_can_be_read_again)
{
    char text[ADDRESS_TEXT_SIZE];
    struct address address = resolved("127.0.0.1:7600");
    assert_string_equal(address_format(&address, text), "127.0.0.1:7600");
    address = resolved("[fe80::1]:1");
    assert_string_equal(address_format(&address, text), "[fe80::1]:1");
    assert_string_equal(address_format_host(&address, text), "fe80::1");
}

TEST(only_addresses_of_the_internet_are_public)
{
    struct error error = {0};
    static const char *const inside[] = {
        "127.0.0.1:80",
        "10.0.0.1:80",
        "192.168.1.1:80",
        "172.16.0.1:80",
        "169.254.169.254:80",
        "100.64.0.1:80",
        "0.0.0.0:80",
        "224.0.0.1:80",
        "168.63.129.16:80",
        "[::1]:80",
        "[::]:80",
        "[fe80::1]:80",
        "[fd00::1]:80",
        "[::ffff:10.0.0.1]:80",
        "[::ffff:8.8.8.8]:80",
        "[64:ff9b::a00:1]:80",
        "[2001:db8::1]:80",
        "[2002:a00:1::]:80",
        "[2001:0:1::1]:80",
        "[ff02::1]:80",
    };
    static const char *const outside[] = {"8.8.8.8:80", "1.1.1.1:443", "[2606:4700:4700::1111]:443",
                                          "[2001:4860:4860::8888]:80"};
    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
        struct host_port host_port;
        struct address address;
        ASSERT_OK(host_port_parse(text_of(inside[i]), &host_port, &error));
        ASSERT_OK(address_resolve(&host_port, &address, &error));
        if (address_is_public(&address))
            fail_msg("%s is not public", inside[i]);
    }
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        struct host_port host_port;
        struct address address;
        ASSERT_OK(host_port_parse(text_of(outside[i]), &host_port, &error));
        ASSERT_OK(address_resolve(&host_port, &address, &error));
        if (!address_is_public(&address))
            fail_msg("%s is public", outside[i]);
    }
}

TEST(loopback_is_known_in_each_family)
{
    const char *const inside[] = {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1",
                                  "localhost:1"};
    const char *const outside[] = {"10.0.0.1:1", ":1", "[::]:1", "[2001:db8::1]:1",
                                   "[::ffff:10.0.0.1]:1"};
    for (size_t i = 0; i < 5; i++) {
        const struct address in = resolved(inside[i]);
        const struct address out = resolved(outside[i]);
        assert_true(address_is_loopback(&in));
        assert_false(address_is_loopback(&out));
    }
}

TEST(a_port_in_use_is_named_together_with_the_option)
{
    struct error error = {0};
    struct address address = resolved("127.0.0.1:0");
    AUTO_FD int first = -1;
    AUTO_FD int second = -1;
    uint16_t port;
    ASSERT_OK(tcp_listen(&address, "--listen", &first, &port, &error));
    assert_int_not_equal(port, 0);

    char text[ADDRESS_TEXT_SIZE];
    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    address = resolved(text);
    uint16_t other;
    ASSERT_FAILS(tcp_listen(&address, "--listen", &second, &other, &error), ERROR_CONFLICT);
    char expected[128];
    snprintf(expected, sizeof(expected),
             "port %u on 127.0.0.1 is in use; choose another with --listen", port);
    assert_string_equal(error.message, expected);
}

struct outcome {
    bool is_done;
    int fd;
    struct error reason;
};

static void note_outcome(void *context, int fd, const struct error *reason)
{
    struct outcome *outcome = context;
    outcome->is_done = true;
    outcome->fd = fd;
    if (reason)
        outcome->reason = *reason;
}

static struct outcome connect_to(struct loop *loop, const char *host, uint16_t port,
                                 int64_t timeout_ms)
{
    struct error error = {0};
    struct host_port target = {.port = port};
    snprintf(target.host, sizeof(target.host), "%s", host);
    struct outcome outcome = {.fd = -1};
    AUTO(tcp_connect)
    struct tcp_connect *connecting =
        tcp_connect_start(loop, &target, timeout_ms, note_outcome, &outcome);
    assert_false(outcome.is_done);
    while (!outcome.is_done)
        ASSERT_OK(loop_step(loop, -1, &error));
    return outcome;
}

TEST(a_connection_is_reported_when_it_stands)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    const struct address address = resolved("127.0.0.1:0");
    AUTO_FD int listen_fd = -1;
    uint16_t port;
    ASSERT_OK(tcp_listen(&address, "--listen", &listen_fd, &port, &error));

    AUTO_FD int accepted = -1;
    assert_int_equal(tcp_accept(listen_fd, &accepted, NULL, &error), 0);
    const struct outcome outcome = connect_to(loop, "127.0.0.1", port, 10000);
    AUTO_FD int fd = outcome.fd;
    assert_true(fd >= 0);
    struct address peer;
    assert_int_equal(tcp_accept(listen_fd, &accepted, &peer, &error), 1);
    assert_true(address_is_loopback(&peer));
    assert_int_equal(write(fd, "x", 1), 1);
}

TEST(a_refused_connection_says_where)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    const struct address address = resolved("127.0.0.1:0");
    int listen_fd = -1;
    uint16_t port;
    ASSERT_OK(tcp_listen(&address, "--listen", &listen_fd, &port, &error));
    close(listen_fd);
    const struct outcome outcome = connect_to(loop, "127.0.0.1", port, 10000);
    assert_int_equal(outcome.fd, -1);
    assert_int_equal(outcome.reason.code, ERROR_UNAVAILABLE);
    assert_non_null(strstr(outcome.reason.message, "127.0.0.1"));
}

TEST(a_name_that_does_not_exist_is_reported)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    const struct outcome outcome = connect_to(loop, "no-such-host.invalid", 80, 20000);
    assert_int_equal(outcome.fd, -1);
    assert_true(outcome.reason.code == ERROR_NOT_FOUND || outcome.reason.code == ERROR_UNAVAILABLE);
}

TEST(a_lookup_may_be_given_up)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    const struct host_port target = {.host = "no-such-host.invalid", .port = 80};
    struct outcome outcome = {.fd = -1};
    tcp_connect_free(tcp_connect_start(loop, &target, 1000, note_outcome, &outcome));
    ASSERT_OK(loop_step(loop, 0, &error));
    assert_false(outcome.is_done);
}

TEST(an_attempt_that_is_late_ends_once_at_its_deadline)
{
    struct error error = {0};
    struct virtual_clock clock;
    virtual_clock_init(&clock, 0);
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock.clock, &loop, &error));
    /* A new listener with a backlog of 0 takes one connection and then answers no more. */
    AUTO_FD int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct address address = resolved("127.0.0.1:0");
    assert_int_equal(bind(listen_fd, (struct sockaddr *)&address.storage, address.size), 0);
    assert_int_equal(listen(listen_fd, 0), 0);
    address.size = sizeof(address.storage);
    assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&address.storage, &address.size), 0);
    const struct outcome first = connect_to(loop, "127.0.0.1", address_port(&address), 50);
    AUTO_FD int fd = first.fd;
    assert_true(fd >= 0);

    const struct host_port target = {.host = "127.0.0.1", .port = address_port(&address)};
    struct outcome outcome = {.fd = -1};
    AUTO(tcp_connect)
    struct tcp_connect *connecting = tcp_connect_start(loop, &target, 50, note_outcome, &outcome);
    ASSERT_OK(loop_step(loop, 0, &error));
    assert_false(outcome.is_done);
    virtual_clock_advance(&clock, 51000000);
    ASSERT_OK(loop_step(loop, 0, &error));
    assert_true(outcome.is_done);
    assert_int_equal(outcome.fd, -1);
    assert_non_null(strstr(outcome.reason.message, "no answer in time"));
    outcome.is_done = false;
    ASSERT_OK(loop_step(loop, 0, &error));
    assert_false(outcome.is_done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_as_people_write_them),
        cmocka_unit_test(addresses_without_a_good_port_are_refused),
        cmocka_unit_test(a_host_that_is_too_long_is_refused),
        cmocka_unit_test(addresses_are_formatted_so_that_they_can_be_read_again),
        cmocka_unit_test(only_addresses_of_the_internet_are_public),
        cmocka_unit_test(loopback_is_known_in_each_family),
        cmocka_unit_test(a_port_in_use_is_named_together_with_the_option),
        cmocka_unit_test(a_connection_is_reported_when_it_stands),
        cmocka_unit_test(a_refused_connection_says_where),
        cmocka_unit_test(a_name_that_does_not_exist_is_reported),
        cmocka_unit_test(a_lookup_may_be_given_up),
        cmocka_unit_test(an_attempt_that_is_late_ends_once_at_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
