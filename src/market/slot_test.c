/* Slots: where they begin, what they are called. */
#include "base/random.h"
#include "market/slot.h"
#include "testing/testing.h"

#define HOUR_MS (INT64_C(3600) * 1000)

TEST(the_first_slot_begins_with_1970)
{
    assert_int_equal(slot_index(0, 0), 0);
    assert_int_equal(slot_index(SLOT_MS - 1, 0), 0);
    assert_int_equal(slot_index(SLOT_MS, 0), 1);
    assert_int_equal(slot_index(-1, 0), -1);
    assert_int_equal(slot_index(-SLOT_MS, 0), -1);
    assert_int_equal(slot_index(-SLOT_MS - 1, 0), -2);
    assert_int_equal(slot_of_day(0), 0);
    assert_int_equal(slot_of_day(7), 3);
    assert_int_equal(slot_of_day(-1), 3);
    assert_int_equal(slot_of_day(-4), 0);
}

TEST(an_offset_moves_the_market_s_midnight)
{
    /* Two hours east: the day began at 22:00 UTC. */
    assert_int_equal(slot_index(-2 * HOUR_MS, 2 * HOUR_MS), 0);
    assert_int_equal(slot_index(-2 * HOUR_MS - 1, 2 * HOUR_MS), -1);
    assert_int_equal(slot_start_ms(0, 2 * HOUR_MS), -2 * HOUR_MS);
    assert_int_equal(slot_start_ms(1, -5 * HOUR_MS), 11 * HOUR_MS);
}

TEST(every_instant_lies_in_its_slot)
{
    struct random random;
    random_init(&random, 3);
    for (int run = 0; run < 10000; run++) {
        const int64_t ms = (int64_t)random_below(&random, UINT64_C(1) << 50) - (INT64_C(1) << 49);
        const int64_t offset =
            (int64_t)random_below(&random, 2 * SLOT_OFFSET_MS_MAX + 1) - SLOT_OFFSET_MS_MAX;
        const int64_t start = slot_start_ms(slot_index(ms, offset), offset);
        assert_true(start <= ms && ms < start + SLOT_MS);
    }
}

TEST(names_go_out_and_come_back)
{
    char text[SLOT_TEXT_SIZE];
    assert_string_equal(slot_format(0, text), "1970-01-01/00-06");
    assert_string_equal(slot_format(-1, text), "1969-12-31/18-24");
    /* 2026-11-14 is day 20771. */
    assert_string_equal(slot_format(20771 * 4 + 3, text), "2026-11-14/18-24");
    assert_string_equal(slot_format(SLOT_INDEX_MAX, text), "9999-12-31/18-24");
    assert_string_equal(slot_format(SLOT_INDEX_MIN, text), "0000-01-01/00-06");
    struct error error;
    for (int64_t index = -3000; index < 120000; index += 7) {
        int64_t back;
        slot_format(index, text);
        ASSERT_OK(slot_parse(text_of(text), 0, &back, &error));
        assert_int_equal(back, index);
    }
    assert_string_equal(slot_hours_name(2), "12-18");
    assert_string_equal(slot_word(3), "evening");
}

TEST(hours_alone_are_of_the_day_named)
{
    struct error error;
    int64_t index;
    ASSERT_OK(slot_parse(TEXT("00-06"), 41, &index, &error));
    assert_int_equal(index, 40);
    ASSERT_OK(slot_parse(TEXT("18-24"), 40, &index, &error));
    assert_int_equal(index, 43);
}

TEST(what_is_not_a_slot_is_refused)
{
    const char *const wrong[] = {"",
                                 "18",
                                 "18-23",
                                 "18-24 ",
                                 "2026-11-14",
                                 "2026-11-14 18-24",
                                 "2026-02-29/18-24",
                                 "2026-13-01/18-24",
                                 "2026-00-01/18-24",
                                 "2026-11-31/18-24",
                                 "2O26-11-14/18-24",
                                 "2026-11-14/18-25",
                                 "-026-11-14/18-24"};
    struct error error;
    int64_t index;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ASSERT_FAILS(slot_parse(text_of(wrong[i]), 0, &index, &error), ERROR_INVALID);
    ASSERT_OK(slot_parse(TEXT("2024-02-29/00-06"), 0, &index, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_slot_begins_with_1970),
        cmocka_unit_test(an_offset_moves_the_market_s_midnight),
        cmocka_unit_test(every_instant_lies_in_its_slot),
        cmocka_unit_test(names_go_out_and_come_back),
        cmocka_unit_test(hours_alone_are_of_the_day_named),
        cmocka_unit_test(what_is_not_a_slot_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
