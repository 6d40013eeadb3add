/* covers zone_rule.c */
#include "base/date.h"
#include "base/zone.h"
#include "base/zone_values.h"
#include "testing/testing.h"

static struct zone *open_zone(const char *name)
{
    struct error error = {0};
    struct zone *zone = NULL;
    ASSERT_OK(zone_open(ZONE_FOLDER, text_of(name), &zone, &error));
    return zone;
}

static int64_t wall(int year, int month, int day, int hour, int minute)
{
    return date_to_days((struct date){year, month, day}) * 86400 + hour * INT64_C(3600) +
           minute * INT64_C(60);
}

TEST(offsets_are_those_of_the_reference)
{
    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        AUTO(zone) struct zone *zone = open_zone(offsets[i].zone);
        const int64_t offset_s = zone_offset_s(zone, offsets[i].utc_s);
        if (offset_s != offsets[i].offset_s)
            fail_msg("%s at %lld: %lld", offsets[i].zone, (long long)offsets[i].utc_s,
                     (long long)offset_s);
    }
}

TEST(wall_times_in_gaps_and_overlaps_are_those_of_the_reference)
{
    for (size_t i = 0; i < sizeof(walls) / sizeof(*walls); i++) {
        AUTO(zone) struct zone *zone = open_zone(walls[i].zone);
        const int64_t first_s = zone_instant_s(zone, walls[i].wall_s, ZONE_PICK_FIRST);
        const int64_t last_s = zone_instant_s(zone, walls[i].wall_s, ZONE_PICK_LAST);
        if (first_s != walls[i].first_s || last_s != walls[i].last_s)
            fail_msg("%s at wall time %lld: %lld and %lld", walls[i].zone,
                     (long long)walls[i].wall_s, (long long)first_s, (long long)last_s);
    }
}

TEST(a_gap_ends_at_the_change_and_an_overlap_has_two_instants)
{
    AUTO(zone) struct zone *berlin = open_zone("Europe/Berlin");
    const int64_t spring_s = wall(2027, 3, 28, 1, 0), autumn_s = wall(2026, 10, 25, 0, 30);
    assert_int_equal(zone_instant_s(berlin, wall(2027, 3, 28, 2, 30), ZONE_PICK_FIRST), spring_s);
    assert_int_equal(zone_instant_s(berlin, wall(2027, 3, 28, 2, 30), ZONE_PICK_LAST), spring_s);
    assert_int_equal(zone_instant_s(berlin, wall(2026, 10, 25, 2, 30), ZONE_PICK_FIRST), autumn_s);
    assert_int_equal(zone_instant_s(berlin, wall(2026, 10, 25, 2, 30), ZONE_PICK_LAST),
                     autumn_s + 3600);
}

TEST(the_next_change_comes_from_the_table_and_then_from_the_rule)
{
    AUTO(zone) struct zone *berlin = open_zone("Europe/Berlin");
    AUTO(zone) struct zone *utc = open_zone("UTC");
    int64_t at_s = 0;
    assert_true(zone_next_change(berlin, wall(2026, 11, 15, 0, 0), &at_s));
    assert_int_equal(at_s, wall(2027, 3, 28, 1, 0));
    assert_true(zone_next_change(berlin, wall(2199, 7, 1, 0, 0), &at_s));
    assert_int_equal(at_s, wall(2199, 10, 27, 1, 0));
    assert_true(zone_next_change(berlin, at_s, &at_s));
    assert_int_equal(at_s, wall(2200, 3, 30, 1, 0));
    assert_false(zone_next_change(utc, 0, &at_s));
}

TEST(names_that_lead_out_of_the_folder_are_refused)
{
    static const char *const names[] = {
        "",
        "../../../etc/passwd",
        "/etc/localtime",
        "Europe/../Europe/Berlin",
        "./UTC",
        "Europe//Berlin",
        "Europe/",
        "zone.tab",
        "UTC\n",
        "Europe/Ber lin",
        "-",
        "Europe/.hidden",
        "AVeryLongNameThatNoFolderOfTimeZonesHasEverHeldInAllTheYearsOfItsLife",
    };
    struct error error = {0};
    struct zone *zone = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        ASSERT_FAILS(zone_open(ZONE_FOLDER, text_of(names[i]), &zone, &error), ERROR_INVALID);
    ASSERT_FAILS(zone_open(ZONE_FOLDER, (struct text){"UTC\0/..", 7}, &zone, &error),
                 ERROR_INVALID);
}

TEST(a_mistyped_zone_is_met_with_the_nearest)
{
    struct error error = {0};
    struct zone *zone = NULL;
    ASSERT_FAILS(zone_open(ZONE_FOLDER, TEXT("Europe/Berln"), &zone, &error), ERROR_NOT_FOUND);
    assert_string_equal(error.message, "there is no time zone \"Europe/Berln\"; did you mean "
                                       "\"Europe/Berlin\"?");
    ASSERT_FAILS(zone_open(ZONE_FOLDER, TEXT("Europe"), &zone, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(zone_open(ZONE_FOLDER, TEXT("leapseconds"), &zone, &error), ERROR_CORRUPT);
    ASSERT_FAILS(zone_open("/nonexistent", TEXT("UTC"), &zone, &error), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "tzdata"));
}

TEST(zones_with_leap_seconds_are_refused)
{
    struct error error = {0};
    struct zone *zone = NULL;
    ASSERT_FAILS(zone_open(ZONE_FOLDER, TEXT("right/Europe/Berlin"), &zone, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "leap seconds"));
}

#define PART(version, types)                                                                       \
    "TZif" version "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" types "\0\0\0\0"                                      \
    "\0\0\0\0\0\0"
#define WITH_RULE(rule) TEXT(PART("2", "\1") PART("2", "\1") "\n" rule "\n")

TEST(rules_that_are_not_rules_are_refused)
{
    const struct text files[] = {
        WITH_RULE("CET"),
        WITH_RULE("C1"),
        WITH_RULE("CET-25"),
        WITH_RULE("CET-1CEST"),
        WITH_RULE("CET-1CEST,M3.5.0"),
        WITH_RULE("CET-1CEST,M13.5.0,M10.5.0"),
        WITH_RULE("CET-1CEST,M3.6.0,M10.5.0"),
        WITH_RULE("CET-1CEST,M3.5.7,M10.5.0"),
        WITH_RULE("CET-1CEST,M3.5.0/168,M10.5.0"),
        WITH_RULE("CET-1CEST,J0,J366"),
        WITH_RULE("CET-1CEST,M3.5.0,M10.5.0 "),
        WITH_RULE("<CET-1"),
        TEXT(PART("2", "\1") PART("2", "\1") "\nCET-1"),
        TEXT(PART("2", "\1") PART("2", "\1")),
        TEXT(PART("2", "\1") "TZif2"),
        TEXT(PART("2", "\0") PART("2", "\0") "\n\n"),
        TEXT("TZif"),
        TEXT(""),
    };
    struct error error = {0};
    struct zone *zone = NULL;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (zone_parse(files[i], &zone, &error) == 0 || error.code != ERROR_CORRUPT)
            fail_msg("file %zu was taken", i);
}

TEST(rules_count_days_in_all_three_ways)
{
    struct error error = {0};
    AUTO(zone) struct zone *zone = NULL;
    AUTO(zone) struct zone *julian = NULL;
    AUTO(zone) struct zone *all_year = NULL;
    int64_t at_s = 0;
    ASSERT_OK(zone_parse(WITH_RULE("AAA0BBB,59/0,J60/1"), &zone, &error));
    /* Day 59 from zero is February 29 of a leap year; J60 is always March 1. */
    assert_true(zone_next_change(zone, wall(2028, 1, 9, 0, 0), &at_s));
    assert_int_equal(at_s, wall(2028, 2, 29, 0, 0));
    assert_true(zone_next_change(zone, at_s, &at_s));
    assert_int_equal(at_s, wall(2028, 3, 1, 0, 0));
    ASSERT_OK(zone_parse(WITH_RULE("AAA0BBB,J60/0,J61/1"), &julian, &error));
    assert_true(zone_next_change(julian, wall(2028, 1, 9, 0, 0), &at_s));
    assert_int_equal(at_s, wall(2028, 3, 1, 0, 0));
    ASSERT_OK(zone_parse(WITH_RULE("XXX3EDT4,0/0,J365/23"), &all_year, &error));
    assert_int_equal(zone_offset_s(all_year, wall(2028, 1, 1, 3, 0)), -4 * 3600);
    assert_int_equal(zone_offset_s(all_year, wall(2028, 12, 31, 23, 59)), -4 * 3600);
}

TEST(a_zone_without_changes_or_rule_has_one_offset)
{
    struct error error = {0};
    AUTO(zone) struct zone *zone = NULL;
    int64_t at_s;
    ASSERT_OK(zone_parse(TEXT(PART("\0", "\1")), &zone, &error));
    assert_int_equal(zone_offset_s(zone, wall(2028, 1, 1, 0, 0)), 0);
    assert_int_equal(zone_instant_s(zone, 7, ZONE_PICK_LAST), 7);
    assert_false(zone_next_change(zone, 0, &at_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_those_of_the_reference),
        cmocka_unit_test(wall_times_in_gaps_and_overlaps_are_those_of_the_reference),
        cmocka_unit_test(a_gap_ends_at_the_change_and_an_overlap_has_two_instants),
        cmocka_unit_test(the_next_change_comes_from_the_table_and_then_from_the_rule),
        cmocka_unit_test(names_that_lead_out_of_the_folder_are_refused),
        cmocka_unit_test(a_mistyped_zone_is_met_with_the_nearest),
        cmocka_unit_test(zones_with_leap_seconds_are_refused),
        cmocka_unit_test(rules_that_are_not_rules_are_refused),
        cmocka_unit_test(rules_count_days_in_all_three_ways),
        cmocka_unit_test(a_zone_without_changes_or_rule_has_one_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
