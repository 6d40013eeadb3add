/* Which addresses a path dials; how it finds its way is tested with the network around it. */
#include "peer/path.h"
#include "testing/testing.h"

static bool may_dial(const char *text, bool has_loopback_only)
{
    struct error error;
    struct host_port target;
    ASSERT_OK(host_port_parse(text_of(text), &target, &error));
    return address_may_dial(&target, has_loopback_only);
}

TEST(a_machine_at_home_or_in_the_world_is_dialled)
{
    assert_true(may_dial("192.168.1.20:41000", false));
    assert_true(may_dial("10.0.0.7:1024", false));
    assert_true(may_dial("203.0.113.9:65535", false));
}

TEST(nobody_has_us_knock_at_services_or_metadata)
{
    static const char *const refused[] = {
        "192.168.1.1:80",  "10.0.0.7:22",          "169.254.169.254:8080",
        "224.0.0.1:41000", "255.255.255.255:4100", "0.0.0.0:41000",
        ":41000",          "localhost:41000",      "[::ffff:169.254.169.254]:8080",
        "[::1]:41000",     "printer.local:9100",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        assert_false(may_dial(refused[i], false));
        assert_false(may_dial(refused[i], true));
    }
}

TEST(loopback_is_dialled_only_where_there_is_nothing_else)
{
    assert_false(may_dial("127.0.0.1:41000", false));
    assert_true(may_dial("127.0.0.1:41000", true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_at_home_or_in_the_world_is_dialled),
        cmocka_unit_test(nobody_has_us_knock_at_services_or_metadata),
        cmocka_unit_test(loopback_is_dialled_only_where_there_is_nothing_else),
    };
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
