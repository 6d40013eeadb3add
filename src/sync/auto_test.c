/* What auto picks, what it says, and how it changes its mind. */
#include "sync/policy_script.h"

#include <math.h>

static const char *policy_now(const struct script *script)
{
    return sync_policy_status(script->policy).policy;
}

static bool says(const struct script *script, const char *words)
{
    return strstr(sync_policy_status(script->policy).reason, words) != NULL;
}

/* Two workers, 10 and 40 ms a step, commits of 25 ms, measured twice. */
static struct script *measured(void)
{
    struct script *script = script_open("auto", &(struct sync_settings){0});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    assert_true(sync_policy_status(script->policy).is_searching);
    assert_true(says(script, "measured"));
    script_push_timed(script, 10, 0, 1, 10, 0);
    script_push_timed(script, 40, 1, 1, 40, 0);
    script_push_timed(script, 180, 0, 13, 10, 25);
    script_push_timed(script, 190, 1, 4, 40, 25);
    return script;
}

TEST(it_picks_pace_for_a_group_and_says_why)
{
    struct script *script = measured();
    assert_string_equal(policy_now(script), "pace");
    assert_false(sync_policy_status(script->policy).is_searching);
    /* 62.5 steps a second in the mean, 25 the slowest; 25 ms are 1.6 mean steps. */
    assert_true(says(script, "2 workers, 2 measured: the slowest 2.5 times slower than the mean"));
    assert_true(says(script, "speeds steady, a commit takes 1.6 mean steps"));
    script_close(script);
}

TEST(it_speaks_once_all_have_made_some_steps_after_their_first_push)
{
    struct script *script = script_open("auto", &(struct sync_settings){0});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    /* First steps of half a second, as a cold machine makes them; those that follow take 10 ms. */
    script_push_timed(script, 500, 0, 1, 500, 0);
    script_push_timed(script, 510, 1, 1, 500, 0);
    script_push_timed(script, 600, 0, 3, 10, 5);
    script_push_timed(script, 600, 1, 3, 10, 5);
    assert_true(sync_policy_status(script->policy).is_searching);
    script_push_timed(script, 700, 0, 2, 10, 5);
    script_push_timed(script, 700, 1, 2, 10, 5);
    assert_true(says(script, "all about as fast, speeds steady, a commit takes 0.5 mean steps"));
    script_close(script);
}

TEST(a_single_worker_is_left_alone)
{
    struct script *script = script_open("auto", &(struct sync_settings){0});
    assert_string_equal(script_join(script, 0, 0), "steps 0 1+");
    script_push_timed(script, 10, 0, 1, 10, 0);
    /* A commit takes two steps: it pushes every eight. */
    assert_non_null(strstr(script_push_timed(script, 110, 0, 8, 10, 20), "steps 0 8+"));
    assert_string_equal(policy_now(script), "tap");
    assert_true(says(script, "one worker"));
    assert_string_equal(script_push_timed(script, 210, 0, 8, 10, 20), "apply 0 1, reply 0");
    script_close(script);
}

TEST(it_picks_after_a_period_though_somebody_never_pushed)
{
    struct script *script = script_open("auto", &(struct sync_settings){0});
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    script_push_timed(script, 10, 0, 1, 10, 0);
    assert_true(sync_policy_wake_ns(script->policy) <= 1000000000);
    script_tick(script, 1000);
    assert_string_equal(policy_now(script), "pace");
    assert_true(says(script, "2 workers"));
    script_close(script);
}

TEST(a_loss_that_runs_away_brings_the_kept_model_back_and_more_care)
{
    struct script *script = measured();
    assert_string_equal(script_tick(script, 1190), "evaluate");
    assert_string_equal(script_loss(script, 1200, 1.0), "keep");
    assert_string_equal(script_push_timed(script, 1210, 0, 13, 10, 25), "gather 0 0.875, hold 0");
    assert_non_null(strstr(script_tick(script, 2190), "evaluate"));
    assert_string_equal(script_push_timed(script, 2196, 0, 12, 10, 25), "gather 0 0.875, hold 0");
    assert_string_equal(script_loss(script, 2200, 1.4), "evaluate");
    /* What was gathered is gone with the model; who is held gets the old one. */
    assert_string_equal(script_loss(script, 2210, 1.5),
                        "return, batch 0 32, steps 0 1+, release 0, batch 1 32, steps 1 1+");
    assert_true(says(script, "the loss rose under full outer momentum"));
    script_push_timed(script, 2220, 0, 1, 10, 25);
    assert_string_equal(
        script_push_timed(script, 2260, 1, 1, 40, 25),
        "gather 1 1, hold 1, fold/2 (0.7 0 1 0), steps 0 4+, release 0, batch 1 16, steps 1 2+, "
        "release 1");
    script_close(script);
}

TEST(a_loss_that_is_no_number_is_acted_on_at_once_and_adsp_is_the_last_resort)
{
    struct script *script = measured();
    script_tick(script, 1190);
    script_loss(script, 1200, 1.0);
    script_tick(script, 2190);
    assert_non_null(strstr(script_loss(script, 2200, (double)NAN), "return"));
    assert_string_equal(policy_now(script), "pace");
    script_tick(script, 3200);
    assert_non_null(strstr(script_loss(script, 3210, (double)NAN), "return"));
    assert_string_equal(policy_now(script), "adsp");
    assert_true(says(script, "adsp: the loss rose twice"));
    script_close(script);
}

TEST(workers_have_their_momentum_back_when_the_loss_runs_away)
{
    struct script *script = script_open("auto", &(struct sync_settings){.momentum = 0.6});
    script_join(script, 0, 0);
    assert_string_equal(script_join(script, 0, 1), "steps 0 1+ plain, steps 1 1+ plain");
    script_tick(script, 1000);
    script_tick(script, 2000);
    assert_string_equal(script_loss(script, 2010, 1.0), "keep");
    script_tick(script, 3000);
    assert_string_equal(script_loss(script, 3010, (double)NAN), "return, steps 0 1+, steps 1 1+");
    assert_string_equal(policy_now(script), "pace");
    script_close(script);
}

TEST(it_follows_when_only_one_worker_is_left)
{
    struct script *script = measured();
    script_leave(script, 200, 1);
    script_tick(script, 1190);
    assert_string_equal(policy_now(script), "pace");
    script_tick(script, 2190);
    assert_string_equal(policy_now(script), "tap");
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_picks_pace_for_a_group_and_says_why),
        cmocka_unit_test(it_speaks_once_all_have_made_some_steps_after_their_first_push),
        cmocka_unit_test(a_single_worker_is_left_alone),
        cmocka_unit_test(it_picks_after_a_period_though_somebody_never_pushed),
        cmocka_unit_test(a_loss_that_runs_away_brings_the_kept_model_back_and_more_care),
        cmocka_unit_test(a_loss_that_is_no_number_is_acted_on_at_once_and_adsp_is_the_last_resort),
        cmocka_unit_test(workers_have_their_momentum_back_when_the_loss_runs_away),
        cmocka_unit_test(it_follows_when_only_one_worker_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
