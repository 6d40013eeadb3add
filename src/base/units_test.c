#include "base/units.h"
#include "testing/testing.h"

static int64_t share(const char *text)
{
    struct error error = {0};
    int64_t value = -1;
    ASSERT_OK(units_parse_share(text_of(text), &value, &error));
    return value;
}

static int64_t bytes(const char *text)
{
    struct error error = {0};
    int64_t value = -1;
    ASSERT_OK(units_parse_bytes(text_of(text), &value, &error));
    return value;
}

static int64_t duration(const char *text)
{
    struct error error = {0};
    int64_t value = -1;
    ASSERT_OK(units_parse_duration(text_of(text), &value, &error));
    return value;
}

static int64_t credits(const char *text)
{
    struct error error = {0};
    int64_t value = -1;
    ASSERT_OK(units_parse_credits(text_of(text), &value, &error));
    return value;
}

TEST(shares_are_read_as_percent_or_fraction)
{
    assert_int_equal(share("50%"), 500);
    assert_int_equal(share("0.5"), 500);
    assert_int_equal(share("12.5 %"), 125);
    assert_int_equal(share("1"), 1000);
}

TEST(sizes_know_both_families_of_units)
{
    assert_int_equal(bytes("2GiB"), 2147483648);
    assert_int_equal(bytes("1.5 MiB"), 1572864);
    assert_int_equal(bytes("4kB"), 4000);
    assert_int_equal(bytes("4096"), 4096);
}

TEST(spans_of_time_may_have_several_parts)
{
    assert_int_equal(duration("30s"), 30000);
    assert_int_equal(duration("250ms"), 250);
    assert_int_equal(duration("1h30m"), 5400000);
    assert_int_equal(duration("1.5"), 1500);
    assert_int_equal(duration("2d"), 172800000);
}

TEST(credits_are_exact_to_the_sixth_digit)
{
    assert_int_equal(credits("1.5 credits"), 1500000);
    assert_int_equal(credits("0.000001"), 1);
    assert_int_equal(credits("-2"), -2000000);
    assert_int_equal(credits("0.1234560"), 123456);
}

TEST(bandwidths_are_megabits_unless_they_say)
{
    struct error error;
    int64_t value;
    ASSERT_OK(units_parse_bandwidth(TEXT("20"), &value, &error));
    assert_int_equal(value, 20000);
    ASSERT_OK(units_parse_bandwidth(TEXT("1.5 Gbit"), &value, &error));
    assert_int_equal(value, 1500000);
    ASSERT_OK(units_parse_bandwidth(TEXT("256kbit/s"), &value, &error));
    assert_int_equal(value, 256);
    ASSERT_FAILS(units_parse_bandwidth(TEXT("20MB"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_bandwidth(TEXT("-1"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_bandwidth(TEXT("9223372036854Gbit"), &value, &error), ERROR_INVALID);
}

TEST(factors_may_pass_one)
{
    struct error error;
    int64_t value;
    ASSERT_OK(units_parse_factor(TEXT("1.25"), &value, &error));
    assert_int_equal(value, 1250);
    ASSERT_OK(units_parse_factor(TEXT("90%"), &value, &error));
    assert_int_equal(value, 900);
    ASSERT_FAILS(units_parse_factor(TEXT("-0.5"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_factor(TEXT("fast"), &value, &error), ERROR_INVALID);
}

TEST(what_is_not_an_amount_is_refused_with_an_example)
{
    struct error error = {0};
    int64_t value = 7;
    ASSERT_FAILS(units_parse_share(TEXT("150%"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_bytes(TEXT("2 gigs"), &value, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "write it like"));
    ASSERT_FAILS(units_parse_bytes(TEXT("-1"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_bytes(TEXT("9999999999TiB"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_duration(TEXT("5 fortnights"), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_duration(TEXT(""), &value, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_credits(TEXT("1.0000001"), &value, &error), ERROR_INVALID);
    assert_string_equal(error.message,
                        "\"1.0000001\" is too fine: credits have at most six decimals");
    ASSERT_FAILS(units_parse_credits(TEXT("99999999999999"), &value, &error), ERROR_INVALID);
    assert_string_equal(error.message, "\"99999999999999\" is too large for an amount of credits");
    ASSERT_FAILS(units_parse_credits(TEXT("many"), &value, &error), ERROR_INVALID);
    assert_string_equal(error.message,
                        "\"many\" is not an amount of credits; write it like 1.5 credits");
    ASSERT_FAILS(units_parse_cores(TEXT("0"), &value, &error), ERROR_INVALID);
    assert_int_equal(value, 7);
}

TEST(spans_may_carry_a_sign)
{
    struct error error;
    int64_t ms;
    ASSERT_OK(units_parse_signed_duration(TEXT(" -5h30m"), &ms, &error));
    assert_int_equal(ms, -19800000);
    ASSERT_OK(units_parse_signed_duration(TEXT("+2h"), &ms, &error));
    assert_int_equal(ms, 7200000);
    ASSERT_FAILS(units_parse_signed_duration(TEXT("--2h"), &ms, &error), ERROR_INVALID);
    ASSERT_FAILS(units_parse_signed_duration(TEXT("-"), &ms, &error), ERROR_INVALID);
}

TEST(amounts_are_shown_short)
{
    char out[UNITS_TEXT_SIZE];
    assert_string_equal(units_format_bytes(1536, out), "1.5 KiB");
    assert_string_equal(units_format_bytes(17, out), "17 B");
    assert_string_equal(units_format_duration(950, out), "950 ms");
    assert_string_equal(units_format_duration(61000, out), "1m 1s");
    assert_string_equal(units_format_duration(600000, out), "10m");
    assert_string_equal(units_format_duration(600001, out), "10m 0s");
    assert_string_equal(units_format_duration(86400000, out), "24h");
    assert_string_equal(units_format_duration(INT64_C(180) * 86400000, out), "180d");
    assert_string_equal(units_format_duration(INT64_C(51) * 3600000, out), "2d 3h");
    assert_string_equal(units_format_duration(-19800000, out), "-5h 30m");
    assert_string_equal(units_format_credits(-583, out), "-0.000583 credits");
    assert_string_equal(units_format_credits(INT64_MIN, out), "-9223372036854.775808 credits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_read_as_percent_or_fraction),
        cmocka_unit_test(sizes_know_both_families_of_units),
        cmocka_unit_test(spans_of_time_may_have_several_parts),
        cmocka_unit_test(credits_are_exact_to_the_sixth_digit),
        cmocka_unit_test(bandwidths_are_megabits_unless_they_say),
        cmocka_unit_test(factors_may_pass_one),
        cmocka_unit_test(what_is_not_an_amount_is_refused_with_an_example),
        cmocka_unit_test(spans_may_carry_a_sign),
        cmocka_unit_test(amounts_are_shown_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
