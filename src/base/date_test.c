#include "base/date.h"
#include "testing/testing.h"

static int64_t days(int year, int month, int day)
{
    return date_to_days((struct date){year, month, day});
}

TEST(days_count_from_1970)
{
    assert_int_equal(days(1970, 1, 1), 0);
    assert_int_equal(days(1969, 12, 31), -1);
    assert_int_equal(days(2000, 2, 29), 11016);
    assert_int_equal(days(2026, 11, 15), 20772);
    assert_int_equal(days(1, 1, 1), -719162);
    assert_int_equal(days(9999, 12, 31), 2932896);
}

TEST(every_day_of_the_calendar_goes_there_and_back)
{
    struct date expected = {DATE_YEAR_MIN, 1, 1};
    for (int64_t day = days(1, 1, 1); day <= days(9999, 12, 31); day++) {
        const struct date date = date_of_days(day);
        if (date.year != expected.year || date.month != expected.month || date.day != expected.day)
            fail_msg("day %lld came out as %d-%d-%d", (long long)day, date.year, date.month,
                     date.day);
        assert_true(date_is_valid(date));
        if (++expected.day > date_days_in_month(expected.year, expected.month)) {
            expected.day = 1;
            if (++expected.month > 12) {
                expected.month = 1;
                expected.year++;
            }
        }
        if (date_to_days(date) != day)
            fail_msg("%d-%d-%d is not day %lld", date.year, date.month, date.day, (long long)day);
    }
}

TEST(weeks_begin_on_monday)
{
    assert_int_equal(date_weekday(0), 3);
    assert_int_equal(date_weekday(days(2026, 11, 16)), 0);
    assert_int_equal(date_weekday(days(2026, 11, 15)), 6);
    assert_int_equal(date_weekday(days(1969, 12, 29)), 0);
}

TEST(days_that_do_not_exist_are_not_valid)
{
    assert_true(date_is_valid((struct date){2024, 2, 29}));
    assert_false(date_is_valid((struct date){2023, 2, 29}));
    assert_false(date_is_valid((struct date){1900, 2, 29}));
    assert_false(date_is_valid((struct date){2026, 4, 31}));
    assert_false(date_is_valid((struct date){2026, 13, 1}));
    assert_false(date_is_valid((struct date){0, 1, 1}));
    assert_false(date_is_valid((struct date){10000, 1, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_count_from_1970),
        cmocka_unit_test(every_day_of_the_calendar_goes_there_and_back),
        cmocka_unit_test(weeks_begin_on_monday),
        cmocka_unit_test(days_that_do_not_exist_are_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
