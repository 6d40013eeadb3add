#include "market/window.h"
#include "testing/testing.h"

static const struct span nights[] = {{100, 200}, {300, 400}, {500, 600}};
static const struct window window = {nights, 3};
static const struct window always = {NULL, 0};

TEST(a_window_is_open_from_its_opening_to_just_before_its_closing)
{
    assert_false(window_is_open(window, 99));
    assert_true(window_is_open(window, 100));
    assert_true(window_is_open(window, 199));
    assert_false(window_is_open(window, 200));
    assert_false(window_is_open(window, 600));
    assert_true(window_is_open(always, 0));
    assert_true(window_open_until_ms(window, 350) == 400);
    assert_true(window_open_until_ms(window, 250) == 250);
    assert_true(window_open_until_ms(always, 250) == INT64_MAX);
}

TEST(the_next_change_is_an_opening_or_a_closing)
{
    assert_true(window_next_change_ms(window, 0) == 100);
    assert_true(window_next_change_ms(window, 100) == 200);
    assert_true(window_next_change_ms(window, 200) == 300);
    assert_true(window_next_change_ms(window, 599) == 600);
    assert_true(window_next_change_ms(window, 600) == INT64_MAX);
    assert_true(window_next_change_ms(always, 5) == INT64_MAX);
}

TEST(open_time_counts_only_what_lies_inside)
{
    assert_int_equal(window_open_ms(window, 0, 1000), 300);
    assert_int_equal(window_open_ms(window, 150, 350), 100);
    assert_int_equal(window_open_ms(window, 200, 300), 0);
    assert_int_equal(window_open_ms(window, 400, 300), 0);
    assert_int_equal(window_open_ms(always, 400, 450), 50);
}

TEST(spans_that_overlap_touch_turn_back_or_are_all_past_are_refused)
{
    struct error error = {0};
    ASSERT_OK(window_check(window, 599, &error));
    ASSERT_OK(window_check(always, 599, &error));
    ASSERT_FAILS(window_check(window, 600, &error), ERROR_INVALID);
    const struct span touching[] = {{100, 200}, {200, 300}};
    ASSERT_FAILS(window_check((struct window){touching, 2}, 0, &error), ERROR_INVALID);
    const struct span backwards[] = {{200, 100}};
    ASSERT_FAILS(window_check((struct window){backwards, 1}, 0, &error), ERROR_INVALID);
    const struct span early[] = {{-1, 100}};
    ASSERT_FAILS(window_check((struct window){early, 1}, 0, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_open_from_its_opening_to_just_before_its_closing),
        cmocka_unit_test(the_next_change_is_an_opening_or_a_closing),
        cmocka_unit_test(open_time_counts_only_what_lies_inside),
        cmocka_unit_test(spans_that_overlap_touch_turn_back_or_are_all_past_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
