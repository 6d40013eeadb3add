#include "cli/account_notice.h"
#include "testing/testing.h"

#include <string.h>

static const int64_t at_ms = INT64_C(1794848400000); /* 2026-11-16 17:00 */
static const int64_t day_ms = INT64_C(86400000);

static const char *notice(struct arena *arena, int64_t steps, int64_t step_ms, int64_t now_ms)
{
    return account_notice(
        arena, &(struct api_account){.dormant_steps = steps, .dormant_step_ms = step_ms}, now_ms);
}

TEST(an_account_that_was_away_is_told_what_happened)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    assert_null(notice(arena, 0, 0, at_ms));
    assert_non_null(strstr(notice(arena, 1, at_ms, at_ms + day_ms),
                           "notice 1 of 2 came on 2026-11-16 17:00:00Z, before parts"));
    assert_non_null(strstr(notice(arena, 5, at_ms, at_ms + day_ms), "3 times a part"));
    /* Back in use: for some time. */
    assert_non_null(
        strstr(notice(arena, 0, at_ms, at_ms + 30 * day_ms), "it was taken for unused"));
    assert_null(notice(arena, 0, at_ms, at_ms + 90 * day_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_account_that_was_away_is_told_what_happened),
    };
    return cmocka_run_group_tests_name("account_notice", tests, NULL, NULL);
}
