/* The bound of ssp, step by step. */
#include "sync/policy_script.h"

static const struct sync_settings slack_two = {.slack = 2};

TEST(a_worker_waits_while_it_is_s_steps_ahead)
{
    struct script *script = script_open("ssp", &slack_two);
    assert_string_equal(script_join(script, 0, 0), "steps 0 1");
    assert_string_equal(script_join(script, 0, 1), "steps 1 1");
    assert_string_equal(script_push(script, 1, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 2, 0, 1), "apply 0 0.5, hold 0");
    /* The slowest is at 1 now, the other at 2: one ahead. */
    assert_string_equal(script_push(script, 3, 1, 1), "apply 1 0.5, reply 1, release 0");
    script_close(script);
}

TEST(the_default_slack_is_40)
{
    struct script *script = script_open("ssp", &(struct sync_settings){0});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    for (int i = 1; i < 40; i++)
        assert_string_equal(script_push(script, i, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 40, 0, 1), "apply 0 0.5, hold 0");
    script_close(script);
}

TEST(who_leaves_is_not_waited_for)
{
    struct script *script = script_open("ssp", &slack_two);
    for (uint32_t i = 0; i < 3; i++)
        script_join(script, 0, i);
    script_push(script, 1, 0, 2);
    assert_string_equal(script_push(script, 2, 1, 2), "apply 1 0.333, hold 1");
    assert_string_equal(script_leave(script, 3, 2), "release 0, release 1");
    script_close(script);
}

TEST(who_joins_late_starts_with_the_slowest)
{
    struct script *script = script_open("ssp", &slack_two);
    script_join(script, 0, 0);
    for (int i = 1; i < 100; i++)
        assert_string_equal(script_push(script, i, 0, 1), "apply 0 1, reply 0");
    script_join(script, 100, 1);
    assert_string_equal(script_push(script, 101, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 102, 0, 1), "apply 0 0.5, hold 0");
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_waits_while_it_is_s_steps_ahead),
        cmocka_unit_test(the_default_slack_is_40),
        cmocka_unit_test(who_leaves_is_not_waited_for),
        cmocka_unit_test(who_joins_late_starts_with_the_slowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
