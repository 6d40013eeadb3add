#include "peer/open_terms.h"
#include "testing/testing.h"

#include <string.h>

TEST(resolvers_are_public_and_replace_those_by_default)
{
    struct open_terms terms;
    struct error error;
    char text[OPEN_RESOLV_CONF_SIZE];
    open_terms_init(&terms);
    open_terms_write_resolv_conf(&terms, text);
    assert_string_equal(text, "nameserver 9.9.9.9\nnameserver 1.1.1.1\n");
    static const char *const own[] = {"208.67.222.222"};
    ASSERT_OK(open_terms_set_resolvers(&terms, own, 1, &error));
    open_terms_write_resolv_conf(&terms, text);
    assert_string_equal(text, "nameserver 208.67.222.222\n");
    static const char *const longest[] = {"208.167.222.222", "208.167.222.223", "208.167.222.224",
                                          "208.167.222.225"};
    ASSERT_OK(open_terms_set_resolvers(&terms, longest, 3, &error));
    open_terms_write_resolv_conf(&terms, text);
    assert_non_null(strstr(text, "nameserver 208.167.222.224\n"));
    assert_int_equal(open_terms_set_resolvers(&terms, longest, 4, &error), -1);
    static const char *const wrong[] = {"192.168.1.1", "127.0.0.53", "9.9.9.0/24", "::1", "dns"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(open_terms_set_resolvers(&terms, &wrong[i], 1, &error), -1);
}

TEST(closed_networks_are_networks)
{
    struct open_terms terms;
    struct error error;
    open_terms_init(&terms);
    static const char *const networks[] = {"130.75.0.0/16", "8.8.8.8"};
    ASSERT_OK(open_terms_set_closed(&terms, networks, 2, &error));
    assert_int_equal(terms.closed_count, 2);
    assert_int_equal(terms.closed[1].bits, 32);
    static const char *const wrong[] = {"2001:db8::/32"};
    assert_int_equal(open_terms_set_closed(&terms, wrong, 1, &error), -1);
    assert_non_null(strstr(error.message, "--closed-networks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolvers_are_public_and_replace_those_by_default),
        cmocka_unit_test(closed_networks_are_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
