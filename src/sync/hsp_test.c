/* The epochs of hsp, and its bound on staleness, push by push. */
#include "sync/policy_script.h"

TEST(hsp_meets_at_the_end_of_an_epoch)
{
    struct script *script = script_open("hsp", &(struct sync_settings){.epoch_steps = 3});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    assert_string_equal(script_push(script, 1, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 2, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 3, 0, 1), "apply 0 0.5, hold 0");
    assert_string_equal(script_push(script, 4, 1, 1), "apply 1 0.5, hold 1, evaluate, barrier");
    assert_string_equal(script_go_on(script, 4), "release 0, release 1");
    assert_int_equal(sync_policy_status(script->policy).round, 1);
    script_close(script);
}

TEST(who_leaves_is_not_waited_for_at_the_barrier)
{
    struct script *script = script_open("hsp", &(struct sync_settings){.epoch_steps = 2});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    assert_string_equal(script_push(script, 1, 1, 2), "apply 1 0.5, hold 1");
    assert_string_equal(script_leave(script, 2, 0), "evaluate, barrier");
    assert_string_equal(script_go_on(script, 2), "release 1");
    script_close(script);
}

TEST(members_may_be_let_go_at_the_barrier)
{
    struct script *script = script_open("hsp", &(struct sync_settings){.epoch_steps = 3});
    for (uint32_t i = 0; i < 3; i++)
        script_join(script, 0, i);
    script_push(script, 1, 0, 1);
    script_push(script, 2, 1, 2);
    script_push(script, 3, 0, 1);
    assert_string_equal(script_push(script, 4, 2, 1), "apply 2 0.333, hold 2, evaluate, barrier");
    assert_string_equal(script_leave(script, 4, 2), "");
    assert_string_equal(script_leave(script, 4, 1), "");
    assert_string_equal(script_go_on(script, 4), "release 0");
    assert_string_equal(script_push(script, 5, 0, 1), "apply 0 1, hold 0, evaluate, barrier");
    script_close(script);
}

TEST(what_is_beyond_an_epoch_counts_for_the_next)
{
    struct script *script = script_open("hsp", &(struct sync_settings){.epoch_steps = 4});
    script_join(script, 0, 0);
    assert_string_equal(script_push(script, 1, 0, 7), "apply 0 1, hold 0, evaluate, barrier");
    assert_string_equal(script_go_on(script, 1), "release 0");
    assert_string_equal(script_push(script, 2, 0, 1), "apply 0 1, hold 0, evaluate, barrier");
    script_close(script);
}

static const char *push_samples(struct script *script, uint32_t worker, uint64_t samples)
{
    const struct sync_push push = {.worker = worker, .steps = 1, .samples = samples};
    sync_policy_push(script->policy, 1000000, &push, &script->actions);
    return script_text(script);
}

TEST(an_epoch_is_a_pass_over_the_data_unless_its_steps_are_given)
{
    struct script *script = script_open("hsp", &(struct sync_settings){0});
    sync_policy_set_pass(script->policy, 100);
    script_join(script, 0, 0);
    assert_string_equal(push_samples(script, 0, 64), "apply 0 1, reply 0");
    assert_string_equal(push_samples(script, 0, 64), "apply 0 1, hold 0, evaluate, barrier");
    script_go_on(script, 1);
    assert_string_equal(push_samples(script, 0, 64), "apply 0 1, reply 0");
    assert_string_equal(push_samples(script, 0, 8), "apply 0 1, hold 0, evaluate, barrier");
    script_close(script);
    script = script_open("hsp", &(struct sync_settings){.epoch_steps = 1});
    sync_policy_set_pass(script->policy, 100);
    script_join(script, 0, 0);
    assert_string_equal(push_samples(script, 0, 1), "apply 0 1, hold 0, evaluate, barrier");
    script_close(script);
}

TEST(a_push_waits_that_would_make_another_later_than_the_bound)
{
    struct script *script = script_open("hsp", &(struct sync_settings){.staleness = 2});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    assert_string_equal(script_push(script, 1, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 2, 0, 1), "apply 0 0.5, reply 0");
    /* The other's would be the third behind the model it has. */
    assert_string_equal(script_push(script, 3, 0, 1), "hold 0");
    assert_string_equal(script_push(script, 4, 1, 1),
                        "apply 1 0.5, apply 0 0.5, reply 1, release 0");
    assert_int_equal(sync_policy_status(script->policy).staleness, 2);
    script_close(script);
}

TEST(the_bound_is_twice_the_members_by_default)
{
    struct script *script = script_open("hsp", &(struct sync_settings){0});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    for (int i = 1; i <= 4; i++)
        assert_string_equal(script_push(script, i, 0, 1), "apply 0 0.5, reply 0");
    assert_string_equal(script_push(script, 5, 0, 1), "hold 0");
    assert_string_equal(script_leave(script, 6, 1), "apply 0 1, release 0");
    script_close(script);
}

TEST(no_more_compute_at_a_time_than_can_be_in_time)
{
    struct script *script =
        script_open("hsp", &(struct sync_settings){.staleness = 1, .epoch_steps = 100});
    for (uint32_t i = 0; i < 3; i++)
        script_join(script, 0, i);
    assert_string_equal(script_push(script, 1, 0, 1), "apply 0 0.333, reply 0");
    /* The second is the first that has to enter now; the third joined without a place. */
    assert_string_equal(script_push(script, 2, 0, 1), "hold 0");
    assert_string_equal(script_push(script, 3, 1, 1), "apply 1 0.333, apply 0 0.333, reply 1, "
                                                      "release 0");
    /* It is three behind, and left out. */
    assert_string_equal(script_push(script, 4, 2, 1), "hold 2");
    assert_string_equal(script_push(script, 5, 0, 1), "apply 0 0.333, release 2, hold 0");
    assert_string_equal(script_push(script, 6, 1, 1), "apply 1 0.333, release 0, hold 1");
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hsp_meets_at_the_end_of_an_epoch),
        cmocka_unit_test(who_leaves_is_not_waited_for_at_the_barrier),
        cmocka_unit_test(members_may_be_let_go_at_the_barrier),
        cmocka_unit_test(what_is_beyond_an_epoch_counts_for_the_next),
        cmocka_unit_test(an_epoch_is_a_pass_over_the_data_unless_its_steps_are_given),
        cmocka_unit_test(a_push_waits_that_would_make_another_later_than_the_bound),
        cmocka_unit_test(the_bound_is_twice_the_members_by_default),
        cmocka_unit_test(no_more_compute_at_a_time_than_can_be_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
