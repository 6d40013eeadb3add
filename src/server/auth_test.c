#include "server/auth.h"
#include "testing/testing.h"

TEST(only_the_pages_of_this_host_are_of_the_same_origin)
{
    const struct text host = TEXT("market.example:7600");
    assert_true(auth_is_same_origin(TEXT("https://market.example:7600"), host));
    assert_true(auth_is_same_origin(TEXT("http://market.example:7600"), host));
    assert_false(auth_is_same_origin(TEXT("https://market.example"), host));
    assert_false(auth_is_same_origin(TEXT("https://evil.example:7600"), host));
    assert_false(auth_is_same_origin(TEXT("https://market.example:7600.evil"), host));
    assert_false(auth_is_same_origin(TEXT("null"), host));
    assert_false(auth_is_same_origin(TEXT(""), host));
    assert_false(auth_is_same_origin(TEXT("http://"), TEXT("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_pages_of_this_host_are_of_the_same_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
