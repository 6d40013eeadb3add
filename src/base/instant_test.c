#include "base/instant.h"
#include "testing/testing.h"

static int64_t parse(const char *text)
{
    struct error error;
    int64_t ms = 0;
    ASSERT_OK(instant_parse(text_of(text), &ms, &error));
    return ms;
}

TEST(instants_are_read_in_any_zone)
{
    assert_int_equal(parse("1970-01-01T00:00Z"), 0);
    assert_int_equal(parse("2026-11-20T18:00Z"), INT64_C(1795197600000));
    assert_int_equal(parse(" 2026-11-20T18:00:30Z "), INT64_C(1795197630000));
    assert_int_equal(parse("2026-11-20 18:00:30.25Z"), INT64_C(1795197630250));
    assert_int_equal(parse("2026-11-20T19:00+01:00"), INT64_C(1795197600000));
    assert_int_equal(parse("2026-11-20T12:30-05:30"), INT64_C(1795197600000));
    assert_int_equal(parse("2024-02-29T00:00Z"), INT64_C(1709164800000));
}

TEST(what_is_no_instant_is_refused_with_an_example)
{
    static const char *const wrong[] = {
        "",
        "tomorrow",
        "2026-11-20",
        "2026-11-20T18:00",
        "2026-1-20T18:00Z",
        "2026-13-20T18:00Z",
        "2026-02-29T18:00Z",
        "2026-11-20T24:00Z",
        "2026-11-20T18:60Z",
        "2026-11-20T18:00:61Z",
        "2026-11-20T18:00+1:00",
        "2026-11-20T18:00Zulu",
        "1969-12-31T23:59Z",
        "9999-01-01T00:00Z",
        "2026-11-20T18:00:00.0001Z",
        "2026-11-20T18:00:00.Z",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct error error;
        int64_t ms = 7;
        ASSERT_FAILS(instant_parse(text_of(wrong[i]), &ms, &error), ERROR_INVALID);
        assert_non_null(strstr(error.message, "write it like 2026-11-20T18:00Z"));
        assert_int_equal(ms, 7);
    }
}

TEST(what_is_shown_reads_back)
{
    char out[INSTANT_TEXT_SIZE];
    assert_string_equal(instant_format(INT64_C(1795197600000), out), "2026-11-20T18:00:00Z");
    assert_string_equal(instant_format(INT64_C(1795197630250), out), "2026-11-20T18:00:30.250Z");
    assert_int_equal(parse(instant_format(INT64_C(1795197630250), out)), INT64_C(1795197630250));
    assert_string_equal(instant_format(-1, out), "1969-12-31T23:59:59.999Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_are_read_in_any_zone),
        cmocka_unit_test(what_is_no_instant_is_refused_with_an_example),
        cmocka_unit_test(what_is_shown_reads_back),
    };
    return cmocka_run_group_tests_name("instant", tests, NULL, NULL);
}
