#include "server/client_address.h"
#include "testing/testing.h"

static struct client_address numeric(const char *text)
{
    struct error error;
    struct host_port host_port = {.port = 1};
    struct address address;
    snprintf(host_port.host, sizeof(host_port.host), "%s", text);
    ASSERT_OK(address_resolve(&host_port, &address, &error));
    return client_address_of(&address);
}

TEST(a_block_is_a_24_of_ipv4_and_a_64_of_ipv6)
{
    assert_int_equal(numeric("203.0.113.1").block, numeric("203.0.113.254").block);
    assert_int_not_equal(numeric("203.0.113.1").block, numeric("203.0.114.1").block);
    assert_int_equal(numeric("2001:db8:1:2::1").block, numeric("2001:db8:1:2:ffff::9").block);
    assert_int_not_equal(numeric("2001:db8:1:2::1").block, numeric("2001:db8:1:3::1").block);
    assert_int_equal(numeric("::ffff:203.0.113.9").block, numeric("203.0.113.1").block);
}

TEST(an_operator_may_take_wider_blocks_of_ipv6)
{
    const struct client_address one = numeric("2001:db8:1:2::1"), next = numeric("2001:db8:1:3::1"),
                                other = numeric("2001:db8:2:2::1"), v4 = numeric("203.0.113.7");
    assert_int_equal(client_address_block(&one, 64), one.block);
    assert_true(client_address_block(&one, 64) != client_address_block(&next, 64));
    assert_int_equal(client_address_block(&one, 63), client_address_block(&next, 63));
    assert_int_equal(client_address_block(&one, 48), client_address_block(&next, 48));
    assert_true(client_address_block(&one, 48) != client_address_block(&other, 48));
    assert_int_equal(client_address_block(&v4, 48), v4.block);
}

TEST(a_site_is_a_24_of_ipv4_and_a_48_of_ipv6)
{
    assert_int_equal(numeric("203.0.113.1").site, numeric("203.0.113.1").block);
    assert_int_equal(numeric("2001:db8:1:2::1").site, numeric("2001:db8:1:fff3::1").site);
    assert_int_not_equal(numeric("2001:db8:1:2::1").site, numeric("2001:db8:2:2::1").site);
}

TEST(private_and_loopback_addresses_are_not_public)
{
    const char *const inside[] = {"127.0.0.1",  "::1",         "10.1.2.3",
                                  "172.16.0.1", "192.168.7.7", "169.254.1.1",
                                  "fd00::1",    "fe80::1",     "::ffff:10.0.0.1"};
    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
        assert_false(numeric(inside[i]).is_public);
    assert_true(numeric("203.0.113.1").is_public);
    assert_true(numeric("172.32.0.1").is_public);
    assert_true(numeric("2001:db8::1").is_public);
    assert_true(numeric("127.9.9.9").is_loopback);
    assert_true(numeric("::ffff:127.0.0.1").is_loopback);
    assert_false(numeric("10.1.2.3").is_loopback);
}

static struct client_address forwarded(const char *header, uint64_t proxy_count)
{
    struct error error;
    const struct host_port proxy = {.host = "10.0.0.9", .port = 1};
    struct address connection;
    ASSERT_OK(address_resolve(&proxy, &connection, &error));
    return client_address_forwarded(&connection, text_of(header), proxy_count);
}

TEST(only_what_our_own_proxies_wrote_is_believed)
{
    const uint64_t client = numeric("203.0.113.7").block;
    assert_int_equal(forwarded("203.0.113.7", 1).block, client);
    assert_int_equal(forwarded("8.8.8.8, 203.0.113.7", 1).block, client);
    assert_int_equal(forwarded("8.8.8.8,1.1.1.1 , 203.0.113.7, 198.51.100.3", 2).block, client);
    assert_int_equal(forwarded("203.0.113.7", 3).block, client); /* fewer than expected */
    assert_int_equal(forwarded("203.0.113.7:5123", 1).block, client);
    assert_int_equal(forwarded("[2001:db8:1:2::1]:443", 1).block, numeric("2001:db8:1:2::1").block);
    assert_int_equal(forwarded("2001:db8:1:2::1", 1).block, numeric("2001:db8:1:2::1").block);
}

TEST(a_header_makes_nobody_this_machine)
{
    assert_true(numeric("127.0.0.1").is_loopback);
    assert_false(forwarded("127.0.0.1", 1).is_loopback);
    assert_false(forwarded("::1", 1).is_loopback);
    /* Nor does a header that a proxy on this machine left out or spoilt. */
    struct error error;
    const struct host_port local = {.host = "127.0.0.1", .port = 1};
    struct address connection;
    ASSERT_OK(address_resolve(&local, &connection, &error));
    assert_false(client_address_forwarded(&connection, TEXT(""), 1).is_loopback);
    assert_false(client_address_forwarded(&connection, TEXT("unix:"), 1).is_loopback);
    assert_true(client_address_forwarded(&connection, TEXT("203.0.113.7"), 0).is_loopback);
}

TEST(what_cannot_be_read_is_the_connection_itself)
{
    const uint64_t proxy = numeric("10.0.0.9").block;
    const char *const bad[] = {"",
                               "unknown",
                               ",",
                               "203.0.113.7,",
                               "[2001:db8::1",
                               "999.1.1.1",
                               "203.0.113.7 extra",
                               "0000000000000000000000000000000000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(forwarded(bad[i], 1).block, proxy);
    assert_int_equal(forwarded("203.0.113.7", 0).block, proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_a_24_of_ipv4_and_a_64_of_ipv6),
        cmocka_unit_test(an_operator_may_take_wider_blocks_of_ipv6),
        cmocka_unit_test(a_site_is_a_24_of_ipv4_and_a_48_of_ipv6),
        cmocka_unit_test(private_and_loopback_addresses_are_not_public),
        cmocka_unit_test(only_what_our_own_proxies_wrote_is_believed),
        cmocka_unit_test(a_header_makes_nobody_this_machine),
        cmocka_unit_test(what_cannot_be_read_is_the_connection_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
