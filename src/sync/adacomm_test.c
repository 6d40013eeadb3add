/* How tau follows the loss, and the trials of tau_0. */
#include "sync/policy_script.h"

#include <math.h>

TEST(tau_follows_the_root_of_the_loss)
{
    struct script *script = script_open("adacomm", &(struct sync_settings){.local_steps = 10});
    assert_string_equal(script_join(script, 0, 0), "steps 0 10, evaluate");
    assert_string_equal(script_loss(script, 10, 2.0), "");
    assert_string_equal(script_push(script, 20, 0, 10),
                        "gather 0 1, hold 0, fold, steps 0 10, release 0");
    assert_true(sync_policy_wake_ns(script->policy) == 1000000000);
    assert_string_equal(script_tick(script, 1000), "evaluate");
    /* ceil(10 sqrt(0.98 / 2)) = ceil(7.0) */
    assert_string_equal(script_loss(script, 1010, 0.98), "");
    assert_string_equal(script_push(script, 1020, 0, 10),
                        "gather 0 1, hold 0, fold, steps 0 7, release 0");
    /* ceil(10 sqrt(0.98 / 2)) is not smaller than 7: half of it. */
    script_tick(script, 2000);
    script_loss(script, 2010, 0.98);
    assert_string_equal(script_push(script, 2020, 0, 7),
                        "gather 0 1, hold 0, fold, steps 0 4, release 0");
    script_close(script);
}

TEST(tau_ends_at_one)
{
    struct script *script = script_open("adacomm", &(struct sync_settings){.local_steps = 2});
    script_join(script, 0, 0);
    script_loss(script, 1, 1.0);
    for (int64_t at = 1000; at <= 4000; at += 1000) {
        script_tick(script, at);
        script_loss(script, at + 1, 5.0);
    }
    assert_string_equal(script_push(script, 5000, 0, 2),
                        "gather 0 1, hold 0, fold, steps 0 1, release 0");
    script_close(script);
}

TEST(a_loss_that_is_no_number_changes_nothing)
{
    struct script *script = script_open("adacomm", &(struct sync_settings){.local_steps = 8});
    script_join(script, 0, 0);
    script_loss(script, 1, 1.0);
    script_tick(script, 1000);
    script_loss(script, 1001, (double)NAN);
    assert_string_equal(script_push(script, 1002, 0, 8),
                        "gather 0 1, hold 0, fold, steps 0 8, release 0");
    script_close(script);
}

TEST(each_tau_is_tried_from_the_same_model_and_the_best_taken)
{
    const struct sync_settings settings = {.taus = {1, 5, 20}, .tau_count = 3};
    struct script *script = script_open("adacomm", &settings);
    assert_string_equal(script_join(script, 0, 0), "steps 0 1, keep, evaluate");
    script_loss(script, 1, 2.0);
    assert_string_equal(script_push(script, 500, 0, 1),
                        "gather 0 1, hold 0, fold, steps 0 1, release 0");
    assert_string_equal(script_push(script, 1000, 0, 1), "gather 0 1, hold 0, fold, evaluate");
    assert_string_equal(script_loss(script, 1010, 1.5), "return, steps 0 5, release 0");
    assert_string_equal(script_push(script, 2010, 0, 5), "gather 0 1, hold 0, fold, evaluate");
    assert_string_equal(script_loss(script, 2020, 1.2), "return, steps 0 20, release 0");
    assert_string_equal(script_push(script, 3020, 0, 20), "gather 0 1, hold 0, fold, evaluate");
    assert_string_equal(script_loss(script, 3030, 1.3), "return, steps 0 5, release 0");
    assert_true(sync_policy_wake_ns(script->policy) == INT64_C(4030000000));
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tau_follows_the_root_of_the_loss),
        cmocka_unit_test(tau_ends_at_one),
        cmocka_unit_test(a_loss_that_is_no_number_changes_nothing),
        cmocka_unit_test(each_tau_is_tried_from_the_same_model_and_the_best_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
