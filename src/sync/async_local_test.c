/* Steps by speed and the delayed momentum. */
#include "sync/policy_script.h"

TEST(momentum_moves_once_in_as_many_pushes_as_there_are_members)
{
    struct script *script = script_open("async-local", &(struct sync_settings){.local_steps = 40});
    assert_string_equal(script_join(script, 0, 0), "steps 0 5");
    assert_string_equal(script_join(script, 0, 1), "steps 1 5");
    /* 100 steps a second, the fastest so far: all of H. */
    assert_string_equal(script_push_timed(script, 50, 0, 5, 10, 0),
                        "apply 0 0.5 (0.7 0 1 0), gather 0 1, steps 0 40, reply 0");
    /* 25 a second: a quarter of H; the second push of two. */
    assert_string_equal(script_push_timed(script, 200, 1, 5, 40, 0),
                        "apply 1 0.5 (0.7 0 1 0), gather 1 1, fold (0.7 0.9 0 0.9), steps 1 10, "
                        "reply 1");
    assert_string_equal(script_push_timed(script, 450, 0, 40, 10, 0),
                        "apply 0 0.5 (0.7 0 1 0), gather 0 1, reply 0");
    script_close(script);
}

TEST(the_slowest_makes_one_step_at_least)
{
    struct script *script = script_open("async-local", &(struct sync_settings){.local_steps = 4});
    assert_string_equal(script_join(script, 0, 0), "steps 0 1");
    script_join(script, 0, 1);
    script_push_timed(script, 1, 0, 1, 1, 0);
    assert_non_null(strstr(script_push_timed(script, 1000, 1, 1, 1000, 0), "reply 1"));
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum_moves_once_in_as_many_pushes_as_there_are_members),
        cmocka_unit_test(the_slowest_makes_one_step_at_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
