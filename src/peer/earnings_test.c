/* What was earned today and in all, over days and restarts. */
#include "base/scope.h"
#include "peer/earnings.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <stdlib.h>

#define DAY  INT64_C(86400000)
#define NOON (20000 * DAY + DAY / 2)

TEST(today_begins_at_midnight_and_with_what_was_told_last)
{
    struct earnings earnings = {0};
    assert_true(earnings_take(&earnings, 500, 100, NOON));
    assert_int_equal(earnings_today_micro(&earnings, NOON), 0);
    assert_false(earnings_take(&earnings, 700, 150, NOON + 1000));
    assert_int_equal(earnings_today_micro(&earnings, NOON + 1000), 200);
    assert_true(earnings_take(&earnings, 710, 150, NOON + 61000)); /* a minute later */
    assert_int_equal(earnings.withheld_micro, 150);
    /* Midnight passes, nothing is told: nothing was earned today. */
    assert_int_equal(earnings_today_micro(&earnings, NOON + DAY), 0);
    assert_true(earnings_take(&earnings, 800, 150, NOON + DAY));
    assert_int_equal(earnings_today_micro(&earnings, NOON + DAY), 90);
    assert_int_equal(earnings.earned_micro, 800);
}

TEST(a_market_that_says_less_begins_anew)
{
    struct earnings earnings = {0};
    assert_true(earnings_take(&earnings, 500, 0, NOON));
    assert_true(earnings_take(&earnings, 20, 0, NOON + 1));
    assert_int_equal(earnings_today_micro(&earnings, NOON + 1), 0);
    assert_false(earnings_take(&earnings, 25, 0, NOON + 2));
    assert_int_equal(earnings_today_micro(&earnings, NOON + 2), 5);
}

TEST(what_is_kept_comes_back)
{
    char folder[] = "/tmp/souk-earnings-test-XXXXXX";
    struct error error;
    struct earnings earnings = {0}, back;
    assert_non_null(mkdtemp(folder));
    ASSERT_FAILS(earnings_load(folder, &back, &error), ERROR_NOT_FOUND);
    earnings_take(&earnings, 500, 20, NOON);
    earnings_take(&earnings, 900, 30, NOON + 5);
    ASSERT_OK(earnings_store(folder, &earnings, &error));
    ASSERT_OK(earnings_load(folder, &back, &error));
    assert_memory_equal(&back, &earnings, sizeof(back));
    assert_int_equal(earnings_today_micro(&back, NOON + 10), 400);
    ASSERT_OK(folder_remove(folder, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(today_begins_at_midnight_and_with_what_was_told_last),
        cmocka_unit_test(a_market_that_says_less_begins_anew),
        cmocka_unit_test(what_is_kept_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
