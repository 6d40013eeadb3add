#include "server/auth.h"
#include "testing/testing.h"

TEST(only_the_pages_of_this_host_are_of_the_same_origin)
{
    const struct text https = TEXT("https"), http = TEXT("http");
    const struct text host = TEXT("market.example:7600");
    assert_true(auth_is_same_origin(TEXT("https://market.example:7600"), https, host));
    assert_true(auth_is_same_origin(TEXT("http://market.example:7600"), http, host));
    assert_false(auth_is_same_origin(TEXT("http://market.example:7600"), https, host));
    assert_false(auth_is_same_origin(TEXT("https://market.example:7600"), http, host));
    assert_false(auth_is_same_origin(TEXT("https://market.example"), https, host));
    assert_false(auth_is_same_origin(TEXT("https://evil.example:7600"), https, host));
    assert_false(auth_is_same_origin(TEXT("https://market.example:7600.evil"), https, host));
    assert_false(auth_is_same_origin(TEXT("null"), https, host));
    assert_false(auth_is_same_origin(TEXT(""), https, host));
    assert_false(auth_is_same_origin(TEXT("http://"), http, TEXT("")));
}

TEST(behind_a_proxy_only_the_public_address_is_the_origin)
{
    const struct text url = TEXT("https://market.example/");
    assert_true(auth_is_origin_of(TEXT("https://market.example"), url));
    assert_true(auth_is_origin_of(TEXT("https://market.example"), TEXT("https://market.example")));
    assert_false(auth_is_origin_of(TEXT("http://market.example"), url));
    assert_false(auth_is_origin_of(TEXT("https://market.exam"), url));
    assert_false(auth_is_origin_of(TEXT("https://market.example:8443"), url));
    assert_false(auth_is_origin_of(TEXT("https:"), url));
    assert_false(auth_is_origin_of(TEXT("https:/"), url));
    assert_false(auth_is_origin_of(TEXT(""), url));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_pages_of_this_host_are_of_the_same_origin),
        cmocka_unit_test(behind_a_proxy_only_the_public_address_is_the_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
