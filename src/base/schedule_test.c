/* covers schedule_expand.c, schedule_grid.c */
#include "base/date.h"
#include "base/schedule.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

static const char *canonical(const char *text)
{
    static char out[SCHEDULE_TEXT_SIZE];
    struct error error = {0};
    struct schedule schedule;
    ASSERT_OK(schedule_parse(text_of(text), &schedule, &error));
    return schedule_format(&schedule, out);
}

static const char *refusal(const char *text)
{
    static struct error error;
    struct schedule schedule;
    ASSERT_FAILS(schedule_parse(text_of(text), &schedule, &error), ERROR_INVALID);
    return error.message;
}

static int64_t utc_ms(int year, int month, int day, int hour, int minute)
{
    return (date_to_days((struct date){year, month, day}) * 86400 + hour * INT64_C(3600) +
            minute * INT64_C(60)) *
           1000;
}

struct expanded {
    struct span spans[SCHEDULE_SPAN_MAX];
    size_t count;
};

static struct expanded expand(const char *text, const char *zone_name, int64_t now_ms)
{
    struct expanded expanded = {0};
    struct error error = {0};
    struct schedule schedule;
    AUTO(zone) struct zone *zone = NULL;
    ASSERT_OK(schedule_parse(text_of(text), &schedule, &error));
    ASSERT_OK(zone_open(ZONE_FOLDER, text_of(zone_name), &zone, &error));
    ASSERT_OK(schedule_expand(&schedule, zone, now_ms, expanded.spans, &expanded.count, &error));
    return expanded;
}

#define assert_span(span, from, until)                                                             \
    do {                                                                                           \
        assert_int_equal((span).open_ms, (from));                                                  \
        assert_int_equal((span).close_ms, (until));                                                \
    } while (0)

TEST(words_are_read_and_written_in_one_way)
{
    assert_string_equal(canonical("now"), "always");
    assert_string_equal(canonical(" Always "), "always");
    assert_string_equal(canonical("Mon-Fri 18:00-08:00"), "Mon-Fri 18:00-08:00");
    assert_string_equal(canonical("monday - friday 18-8"), "Mon-Fri 18:00-08:00");
    assert_string_equal(canonical("Mon,Wed 9-17; Sat-Sun 00:00-24:00"),
                        "Mon,Wed 09:00-17:00; Sat-Sun 00:00-24:00");
    assert_string_equal(canonical("Tue 9-12, 13:30-17"), "Tue 09:00-12:00; Tue 13:30-17:00");
    assert_string_equal(canonical("Fri-Mon 0-24"), "Mon,Fri-Sun 00:00-24:00");
    assert_string_equal(canonical("daily 22-6"), "Mon-Sun 22:00-06:00");
    assert_string_equal(canonical("Mon 9:00:00-9:00:30"), "Mon 09:00-09:00:30");
    assert_string_equal(canonical("2026-11-20T18:00-2026-11-21 8"),
                        "2026-11-20 18:00 - 2026-11-21 08:00");
    assert_string_equal(canonical("Mon-Fri 18-8 Europe/Berlin"),
                        "Mon-Fri 18:00-08:00 Europe/Berlin");
    assert_string_equal(canonical("2026-12-31 18:00 - 2026-12-31 24:00 America/New_York"),
                        "2026-12-31 18:00 - 2027-01-01 00:00 America/New_York");
}

TEST(mistakes_are_named_with_their_place_and_the_nearest_word)
{
    assert_string_equal(refusal("Mon-Fry 18:00-08:00"),
                        "at character 5 of the schedule: \"Fry\" is not a day of the week; did you "
                        "mean \"Fri\"?");
    assert_string_equal(refusal("alwais"),
                        "at character 1 of the schedule: \"alwais\" is not a day of the week; did "
                        "you mean \"always\"?");
    assert_string_equal(refusal("Mon 25:00-08:00"),
                        "at character 5 of the schedule: \"25:00\" where a time such as 18:00 is "
                        "expected");
    assert_string_equal(refusal("Mon 18:60-20"),
                        "at character 5 of the schedule: \"18:60\" where a time such as 18:00 is "
                        "expected");
    assert_string_equal(refusal("Mon 9:-20"),
                        "at character 5 of the schedule: \"9:\" where a time such as 18:00 is "
                        "expected");
    assert_string_equal(refusal("Mon 24:30-20"),
                        "at character 5 of the schedule: \"24:30\" where a time such as 18:00 is "
                        "expected");
    assert_string_equal(refusal("Mon 18:00"),
                        "the schedule ends where the - of a span such as 18:00-08:00 is missing");
    assert_string_equal(refusal("Mon"), "the schedule ends where a time such as 18:00 is missing");
    assert_string_equal(refusal(""),
                        "the schedule is empty; write always, or like Mon-Fri 18:00-08:00");
    assert_string_equal(refusal("2026-02-30 10:00 - 2026-03-01 10:00"),
                        "at character 1 of the schedule: 2026-02-30 is no day");
    assert_string_equal(refusal("2026-11-20 10:00 - 2026-13-01 10:00"),
                        "at character 20 of the schedule: 2026-13-01 is no day");
    assert_string_equal(refusal("2026-1x-30 10:00 - 2026-03-01 10:00"),
                        "at character 1 of the schedule: \"2026\" where a date such as 2026-11-20 "
                        "is expected");
    assert_string_equal(refusal("Mon 9-17 |"),
                        "at character 10 of the schedule: \"|\" where ; or the end is expected");
    assert_string_equal(refusal("Mon 9-17 ../../etc/passwd"),
                        "at character 10 of the schedule: \".\" where ; or the end is expected");
    assert_string_equal(refusal("Mon 9-17 Europe/../Berlin"),
                        "at character 10 of the schedule: \"Europe/../Berlin\" is not a time zone; "
                        "write it like Europe/Berlin or UTC");
}

TEST(spans_that_never_open_are_refused)
{
    assert_string_equal(refusal("Mon 18:00-18:00"),
                        "at character 5 of the schedule: a span that never opens; a whole day is "
                        "00:00-24:00");
    assert_string_equal(refusal("Mon 24:00-08:00"),
                        "at character 5 of the schedule: a span that never opens; a whole day is "
                        "00:00-24:00");
    assert_string_equal(refusal("2026-11-21 18:00 - 2026-11-20 08:00"),
                        "at character 1 of the schedule: a span that ends before it begins");
    struct error error = {0};
    struct schedule schedule;
    struct span spans[SCHEDULE_SPAN_MAX];
    size_t count;
    AUTO(zone) struct zone *zone = NULL;
    ASSERT_OK(zone_open(ZONE_FOLDER, TEXT("UTC"), &zone, &error));
    ASSERT_OK(schedule_parse(TEXT("2025-01-01 10:00 - 2025-01-02 10:00"), &schedule, &error));
    ASSERT_FAILS(schedule_expand(&schedule, zone, utc_ms(2026, 1, 1, 0, 0), spans, &count, &error),
                 ERROR_INVALID);
    assert_string_equal(error.message, "the schedule never opens: all of it is past");
}

TEST(more_parts_than_fit_are_refused)
{
    assert_string_equal(refusal("Mon 1-2,3-4,5-6,7-8,9-10,11-12,13-14,15-16,17-18"),
                        "at character 44 of the schedule: more than 8 spans of time");
}

TEST(the_longest_schedule_can_be_written)
{
    char text[1024] = "";
    size_t size = 0;
    for (int i = 0; i < SCHEDULE_PART_MAX; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size,
                                 "%s2026-11-20 18:00:01 - 2026-11-21 08:00:01", i ? "; " : "");
    snprintf(text + size, sizeof(text) - size, " %s",
             "ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFG");
    assert_string_equal(canonical(text), text);
}

TEST(nights_of_the_week_belong_to_the_day_they_start_on)
{
    /* 2026-11-15 is a Sunday; Berlin is an hour ahead. */
    const struct expanded nights =
        expand("Mon-Fri 18:00-08:00", "Europe/Berlin", utc_ms(2026, 11, 15, 12, 0));
    assert_int_equal(nights.count, 40);
    assert_span(nights.spans[0], utc_ms(2026, 11, 16, 17, 0), utc_ms(2026, 11, 17, 7, 0));
    assert_span(nights.spans[4], utc_ms(2026, 11, 20, 17, 0), utc_ms(2026, 11, 21, 7, 0));
    assert_span(nights.spans[5], utc_ms(2026, 11, 23, 17, 0), utc_ms(2026, 11, 24, 7, 0));
    /* On Saturday morning Friday's night is still open. */
    const struct expanded saturday =
        expand("Mon-Fri 18:00-08:00", "Europe/Berlin", utc_ms(2026, 11, 21, 6, 59));
    assert_span(saturday.spans[0], utc_ms(2026, 11, 21, 6, 59), utc_ms(2026, 11, 21, 7, 0));
    const struct expanded later =
        expand("Mon-Fri 18:00-08:00", "Europe/Berlin", utc_ms(2026, 11, 21, 7, 0));
    assert_span(later.spans[0], utc_ms(2026, 11, 23, 17, 0), utc_ms(2026, 11, 24, 7, 0));
}

TEST(the_wall_clock_stays_while_utc_moves_with_daylight_saving)
{
    const struct expanded nights =
        expand("Sat-Sun 18:00-08:00", "Europe/Berlin", utc_ms(2027, 3, 26, 12, 0));
    /* The night to 2027-03-28 has 13 hours. */
    assert_span(nights.spans[0], utc_ms(2027, 3, 27, 17, 0), utc_ms(2027, 3, 28, 6, 0));
    assert_span(nights.spans[1], utc_ms(2027, 3, 28, 16, 0), utc_ms(2027, 3, 29, 6, 0));
}

TEST(days_have_23_and_25_hours)
{
    const struct expanded spring = expand("Sun 0-24", "Europe/Berlin", utc_ms(2027, 3, 27, 12, 0));
    assert_span(spring.spans[0], utc_ms(2027, 3, 27, 23, 0), utc_ms(2027, 3, 28, 22, 0));
    const struct expanded autumn =
        expand("Sun 0-24", "America/New_York", utc_ms(2026, 11, 1, 1, 0));
    assert_span(autumn.spans[0], utc_ms(2026, 11, 1, 4, 0), utc_ms(2026, 11, 2, 5, 0));
    const struct expanded half_hour =
        expand("Sun 0-24", "Australia/Lord_Howe", utc_ms(2027, 4, 2, 0, 0));
    assert_int_equal(half_hour.spans[0].close_ms - half_hour.spans[0].open_ms,
                     (24 * 60 + 30) * 60000);
}

TEST(a_time_in_a_gap_moves_to_its_end)
{
    const struct expanded opens =
        expand("Sun 02:30-04:00", "Europe/Berlin", utc_ms(2027, 3, 28, 0, 0));
    assert_span(opens.spans[0], utc_ms(2027, 3, 28, 1, 0), utc_ms(2027, 3, 28, 2, 0));
    const struct expanded closes =
        expand("Sun 01:00-02:30", "Europe/Berlin", utc_ms(2027, 3, 28, 0, 0));
    assert_span(closes.spans[0], utc_ms(2027, 3, 28, 0, 0), utc_ms(2027, 3, 28, 1, 0));
    /* Wholly inside, it does not open on that day, and the next week it does. */
    const struct expanded inside =
        expand("Sun 02:10-02:50", "Europe/Berlin", utc_ms(2027, 3, 28, 0, 0));
    assert_span(inside.spans[0], utc_ms(2027, 4, 4, 0, 10), utc_ms(2027, 4, 4, 0, 50));
}

TEST(a_time_that_comes_twice_opens_at_the_first_and_closes_at_the_second)
{
    const struct expanded opens =
        expand("Sun 02:30-04:00", "Europe/Berlin", utc_ms(2026, 10, 24, 0, 0));
    assert_span(opens.spans[0], utc_ms(2026, 10, 25, 0, 30), utc_ms(2026, 10, 25, 3, 0));
    const struct expanded closes =
        expand("Sun 01:00-02:30", "Europe/Berlin", utc_ms(2026, 10, 24, 0, 0));
    assert_span(closes.spans[0], utc_ms(2026, 10, 24, 23, 0), utc_ms(2026, 10, 25, 1, 30));
}

TEST(spans_that_touch_or_overlap_are_joined)
{
    const struct expanded always =
        expand("daily 0-24", "Europe/Berlin", utc_ms(2026, 11, 15, 12, 0));
    assert_int_equal(always.count, 1);
    assert_span(always.spans[0], utc_ms(2026, 11, 15, 12, 0), utc_ms(2027, 1, 10, 23, 0));
    const struct expanded day = expand("Mon 9-17; Mon 12-20; 2026-11-16 19:00 - 2026-11-16 21:00",
                                       "UTC", utc_ms(2026, 11, 15, 12, 0));
    assert_span(day.spans[0], utc_ms(2026, 11, 16, 9, 0), utc_ms(2026, 11, 16, 21, 0));
    assert_int_equal(day.count, 8);
}

TEST(always_has_no_spans_and_a_single_span_may_lie_far_ahead)
{
    assert_int_equal(expand("always", "UTC", 0).count, 0);
    const struct expanded once =
        expand("2031-07-01 08:00 - 2031-07-02 08:00", "Asia/Kolkata", utc_ms(2026, 11, 15, 0, 0));
    assert_int_equal(once.count, 1);
    assert_span(once.spans[0], utc_ms(2031, 7, 1, 2, 30), utc_ms(2031, 7, 2, 2, 30));
}

TEST(the_most_parts_give_no_more_spans_than_there_is_room_for)
{
    const struct expanded expanded =
        expand("daily 0-1,2-3,4-5,6-7,8-9,10-11,12-13,14-15", "UTC", utc_ms(2026, 11, 15, 0, 0));
    assert_int_equal(expanded.count, 8 * 57);
}

TEST(only_weekly_schedules_need_renewing)
{
    struct error error = {0};
    struct schedule schedule;
    const struct span first = {utc_ms(2026, 11, 16, 9, 0), utc_ms(2026, 11, 16, 10, 0)};
    ASSERT_OK(schedule_parse(TEXT("always"), &schedule, &error));
    assert_false(schedule_is_weekly(&schedule));
    assert_int_equal(schedule_renew_ms(&schedule, first), 0);
    ASSERT_OK(schedule_parse(TEXT("2026-11-20 18 - 2026-11-21 8"), &schedule, &error));
    assert_false(schedule_is_weekly(&schedule));
    ASSERT_OK(schedule_parse(TEXT("2026-11-20 18 - 2026-11-21 8; Mon 9-10"), &schedule, &error));
    assert_true(schedule_is_weekly(&schedule));
    assert_int_equal(schedule_renew_ms(&schedule, first), utc_ms(2026, 12, 14, 9, 0));
}

static bool to_grid(const char *words, uint32_t out_hours[SCHEDULE_GRID_DAYS])
{
    struct schedule schedule;
    struct error error;
    ASSERT_OK(schedule_parse(text_of(words), &schedule, &error));
    return schedule_to_grid(&schedule, out_hours);
}

TEST(whole_hours_of_a_week_are_a_grid)
{
    uint32_t hours[SCHEDULE_GRID_DAYS];
    assert_true(to_grid("always", hours));
    assert_int_equal(hours[0], 0xffffff);
    assert_int_equal(hours[6], 0xffffff);
    assert_true(to_grid("Fri-Sun 22:00-02:00; Mon 9-10, 1-3", hours));
    assert_int_equal(hours[0], 1 << 0 | 1 << 1 | 1 << 2 | 1 << 9); /* Sunday's night goes on */
    assert_int_equal(hours[3], 0);
    assert_int_equal(hours[4], 3 << 22);
    assert_int_equal(hours[5], 3 << 22 | 3);
    assert_false(to_grid("Mon 9:30-10", hours));
    assert_false(to_grid("2026-11-20 18:00 - 2026-11-21 08:00", hours));
}

static const char *painted(const char *words, char out[SCHEDULE_TEXT_SIZE])
{
    uint32_t hours[SCHEDULE_GRID_DAYS], again[SCHEDULE_GRID_DAYS];
    struct schedule schedule;
    struct error error;
    assert_true(to_grid(words, hours));
    ASSERT_OK(schedule_of_grid(hours, &schedule, &error));
    assert_true(schedule_to_grid(&schedule, again));
    assert_memory_equal(hours, again, sizeof(hours));
    return schedule_format(&schedule, out);
}

TEST(a_painted_week_is_said_in_few_words)
{
    char words[SCHEDULE_TEXT_SIZE];
    static const char *const same[] = {"always", "Mon-Fri 18:00-08:00", "Mon-Sun 18:00-08:00",
                                       "Sat-Sun 00:00-24:00", "Wed 03:00-04:00"};
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        assert_string_equal(painted(same[i], words), canonical(same[i]));
    /* Nights and whole days: joined they would be four parts. */
    painted("Mon-Fri 18-24, 0-8; Sat-Sun 0-24", words);
    assert_string_equal(words, canonical("Mon-Fri 0-8, 18-24; Sat-Sun 0-24"));
    uint32_t hours[SCHEDULE_GRID_DAYS] = {0};
    struct schedule schedule;
    struct error error;
    ASSERT_FAILS(schedule_of_grid(hours, &schedule, &error), ERROR_INVALID);
    hours[0] = 0x555555; /* every second hour */
    ASSERT_FAILS(schedule_of_grid(hours, &schedule, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "12 stretches"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_and_written_in_one_way),
        cmocka_unit_test(mistakes_are_named_with_their_place_and_the_nearest_word),
        cmocka_unit_test(spans_that_never_open_are_refused),
        cmocka_unit_test(more_parts_than_fit_are_refused),
        cmocka_unit_test(the_longest_schedule_can_be_written),
        cmocka_unit_test(nights_of_the_week_belong_to_the_day_they_start_on),
        cmocka_unit_test(the_wall_clock_stays_while_utc_moves_with_daylight_saving),
        cmocka_unit_test(days_have_23_and_25_hours),
        cmocka_unit_test(a_time_in_a_gap_moves_to_its_end),
        cmocka_unit_test(a_time_that_comes_twice_opens_at_the_first_and_closes_at_the_second),
        cmocka_unit_test(spans_that_touch_or_overlap_are_joined),
        cmocka_unit_test(whole_hours_of_a_week_are_a_grid),
        cmocka_unit_test(a_painted_week_is_said_in_few_words),
        cmocka_unit_test(always_has_no_spans_and_a_single_span_may_lie_far_ahead),
        cmocka_unit_test(the_most_parts_give_no_more_spans_than_there_is_room_for),
        cmocka_unit_test(only_weekly_schedules_need_renewing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
