#include "net/http.h"
#include "testing/testing.h"

TEST(a_problem_names_status_title_and_code)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1024);
    http_problem_write(&buffer, 404, "not_found", "no \"job\"");
    assert_string_equal(buffer_string(&buffer),
                        "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
                        "\"detail\":\"no \\\"job\\\"\",\"code\":\"not_found\"}");
}

TEST(percent_escapes_are_decoded)
{
    struct error error = {0};
    char out[32];
    size_t size;
    ASSERT_OK(http_percent_decode(TEXT("a%2Fb%20%c3%a9"), out, &size, &error));
    assert_string_equal(out, "a/b \xc3\xa9");
    assert_int_equal(size, 6);
}

TEST(broken_escapes_and_zero_bytes_are_refused)
{
    struct error error = {0};
    char out[32];
    size_t size;
    ASSERT_FAILS(http_percent_decode(TEXT("a%2"), out, &size, &error), ERROR_INVALID);
    ASSERT_FAILS(http_percent_decode(TEXT("%"), out, &size, &error), ERROR_INVALID);
    ASSERT_FAILS(http_percent_decode(TEXT("%zz"), out, &size, &error), ERROR_INVALID);
    ASSERT_FAILS(http_percent_decode(TEXT("a%00b"), out, &size, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_problem_names_status_title_and_code),
        cmocka_unit_test(percent_escapes_are_decoded),
        cmocka_unit_test(broken_escapes_and_zero_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
