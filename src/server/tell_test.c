#include "server/tell.h"
#include "testing/testing.h"

static bool may(const char *asked_at, const char *told_at, const char *address)
{
    return tell_may(asked_at, told_at, text_of(address));
}

static void what_the_market_sees_is_told(void **state)
{
    (void)state;
    assert_true(may("198.51.100.1", "203.0.113.7", "203.0.113.7:5000"));
    assert_true(may("198.51.100.1", "::ffff:203.0.113.7", "203.0.113.7:5000"));
    assert_true(may("10.0.0.1", "10.0.0.2", "10.0.0.2:1024"));
}

static void a_third_is_not_told(void **state)
{
    (void)state;
    assert_false(may("198.51.100.1", "203.0.113.7", "203.0.113.8:5000"));
    assert_false(may("203.0.113.7", "203.0.113.7", "203.0.113.8:5000"));
    assert_false(may("198.51.100.1", "203.0.113.7", "192.168.1.2:5000"));
    assert_false(may("198.51.100.1", "2001:db8::1", "192.168.1.2:5000"));
}

static void private_ones_are_told_behind_the_same_address(void **state)
{
    (void)state;
    assert_true(may("203.0.113.7", "203.0.113.7", "192.168.1.2:5000"));
    assert_true(may("203.0.113.7", "203.0.113.7", "10.9.8.7:5000"));
    assert_false(may("203.0.113.7", "203.0.113.7", "127.0.0.1:5000"));
}

static void on_the_markets_own_machine_all_its_addresses_are(void **state)
{
    (void)state;
    assert_true(may("127.0.0.1", "127.0.0.1", "127.0.0.1:5000"));
    assert_true(may("127.0.0.1", "127.0.0.1", "192.0.2.2:5000"));
    assert_false(may("10.0.0.1", "127.0.0.1", "127.0.0.1:5000"));
    assert_false(may("10.0.0.1", "127.0.0.1", "192.0.2.2:5000"));
}

static void what_no_machine_dials_is_not_told(void **state)
{
    (void)state;
    static const char *const never[] = {
        "169.254.169.254:8000", "10.1.2.3:22", "0.0.0.0:5000", "224.0.0.1:5000",
        "[::1]:5000",           "a.name:5000", "10.1.2.3",     ""};
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
        assert_false(may("127.0.0.1", "127.0.0.1", never[i]));
        assert_false(may("10.1.2.3", "10.1.2.3", never[i]));
    }
    assert_false(may("169.254.169.254", "169.254.169.254", "169.254.169.254:8000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_market_sees_is_told),
        cmocka_unit_test(a_third_is_not_told),
        cmocka_unit_test(private_ones_are_told_behind_the_same_address),
        cmocka_unit_test(on_the_markets_own_machine_all_its_addresses_are),
        cmocka_unit_test(what_no_machine_dials_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
