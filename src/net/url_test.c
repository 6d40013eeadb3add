#include "net/url.h"
#include "testing/testing.h"

TEST(the_host_is_what_stands_between_slashes)
{
    assert_true(text_is(url_host(TEXT("http://127.0.0.1:8080/simple")), "127.0.0.1:8080"));
    assert_true(text_is(url_host(TEXT("https://a.example?x")), "a.example"));
    assert_true(text_is(url_host(TEXT("https://[::1]:9#y")), "[::1]:9"));
    assert_int_equal(url_host(TEXT("127.0.0.1")).size, 0);
    assert_int_equal(url_host(TEXT("http:///path")).size, 0);
    assert_int_equal(url_host(TEXT("")).size, 0);
}

TEST(this_machine_has_few_names)
{
    assert_true(url_is_own(TEXT("http://127.0.0.1")));
    assert_true(url_is_own(TEXT("http://127.8.9.1:80/x")));
    assert_true(url_is_own(TEXT("http://localhost:9001")));
    assert_true(url_is_own(TEXT("http://[::1]:9001/")));
    assert_false(url_is_own(TEXT("http://10.0.0.5:9001")));
    assert_false(url_is_own(TEXT("http://localhost.example")));
    assert_false(url_is_own(TEXT("http://127.0.0.1.example")));
    assert_false(url_is_own(TEXT("http://127.0.0.1@10.0.0.5/")));
    assert_false(url_is_own(TEXT("http://[::2]/")));
    assert_false(url_is_own(TEXT("http://")));
}

TEST(what_goes_by_https_or_stays_here_is_private)
{
    assert_true(url_is_private(TEXT("https://10.0.0.5:9001")));
    assert_true(url_is_private(TEXT("http://127.0.0.1:9001")));
    assert_false(url_is_private(TEXT("http://10.0.0.5:9001")));
    assert_false(url_is_private(TEXT("ftp://127.0.0.1")));
    assert_false(url_is_private(TEXT("127.0.0.1:9001")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_is_what_stands_between_slashes),
        cmocka_unit_test(this_machine_has_few_names),
        cmocka_unit_test(what_goes_by_https_or_stays_here_is_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
