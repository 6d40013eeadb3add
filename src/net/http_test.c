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

TEST(codings_are_accepted_by_name_unless_forbidden)
{
    assert_true(http_accepts_coding(TEXT("zstd"), TEXT("zstd")));
    assert_true(http_accepts_coding(TEXT("gzip, br;q=0.5 , zstd;q=0.1"), TEXT("zstd")));
    assert_false(http_accepts_coding(TEXT("gzip, zstd;q=0"), TEXT("zstd")));
    assert_false(http_accepts_coding(TEXT("gzip"), TEXT("zstd")));
    assert_false(http_accepts_coding(TEXT("zstd;q=x"), TEXT("zstd")));
    assert_false(http_accepts_coding((struct text){0}, TEXT("zstd")));
    assert_false(http_accepts_coding(TEXT(",,;"), TEXT("zstd")));
}

TEST(a_range_is_a_part_outside_or_not_understood)
{
    struct http_range range = {0};
    assert_int_equal(http_range_read(TEXT("bytes=7-"), 10, &range), HTTP_RANGE_PART);
    assert_int_equal(range.first, 7);
    assert_int_equal(range.size, 3);
    assert_int_equal(http_range_read(TEXT("bytes=2-4"), 10, &range), HTTP_RANGE_PART);
    assert_int_equal(range.first, 2);
    assert_int_equal(range.size, 3);
    assert_int_equal(http_range_read(TEXT("bytes=0-18446744073709551615"), 10, &range),
                     HTTP_RANGE_PART);
    assert_int_equal(range.size, 10);
    assert_int_equal(http_range_read(TEXT("bytes=10-"), 10, &range), HTTP_RANGE_OUTSIDE);
    assert_int_equal(http_range_read(TEXT("bytes=0-"), 0, &range), HTTP_RANGE_OUTSIDE);
    static const char *const others[] = {"bytes=-5", "bytes=4-2", "bytes=1-2,4-5",
                                         "lines=1-", "bytes=x-",  "bytes="};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(http_range_read(text_of(others[i]), 10, &range), HTTP_RANGE_WHOLE);
    assert_int_equal(http_content_range_first(TEXT("bytes 7-9/10")), 7);
    assert_int_equal(http_content_range_first(TEXT("bytes */10")), -1);
    assert_int_equal(http_content_range_first((struct text){0}), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_problem_names_status_title_and_code),
        cmocka_unit_test(percent_escapes_are_decoded),
        cmocka_unit_test(broken_escapes_and_zero_bytes_are_refused),
        cmocka_unit_test(codings_are_accepted_by_name_unless_forbidden),
        cmocka_unit_test(a_range_is_a_part_outside_or_not_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
