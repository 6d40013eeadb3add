/* The first commit rate of adsp, written down as what workers are told once all are measured. */
#include "sync/policy_script.h"

/* Two workers, 1 and 3 s a step, are measured at their second pushes; the check period is 60 s. */
static const char *started(struct script **out_script, struct sync_settings settings,
                           int64_t commit_ms)
{
    settings.gamma_ms = 60000;
    struct script *script = *out_script = script_open("adsp", &settings);
    const bool is_busy = settings.overlap != SYNC_OVERLAP_OFF;
    assert_string_equal(script_join(script, 1, 0), is_busy ? "period 0 1s+" : "period 0 1s");
    assert_string_equal(script_join(script, 1, 1), is_busy ? "period 1 1s+" : "period 1 1s");
    assert_string_equal(script_push_timed(script, 3000, 0, 1, 1000, 0), "apply 0 0.5, reply 0");
    assert_string_equal(script_push_timed(script, 5000, 1, 1, 3000, 0), "apply 1 0.5, reply 1");
    assert_string_equal(script_push_timed(script, 9000, 0, 5, 1000, commit_ms),
                        "apply 0 0.5, reply 0");
    assert_true(sync_policy_status(script->policy).commit_rate == 0);
    return script_push_timed(script, 14000, 1, 2, 3000, commit_ms);
}

TEST(with_overlap_the_first_interval_is_three_commits)
{
    struct script *script;
    /* 15 s between commits, of which the commit itself takes 5. */
    assert_string_equal(started(&script, (struct sync_settings){0}, 5000),
                        "apply 1 0.5, reply 1, period 0 10s+, period 1 10s+, evaluate");
    assert_true(sync_policy_status(script->policy).commit_rate == 4);
    script_close(script);
}

TEST(without_overlap_commits_take_an_eighth_of_the_time)
{
    struct script *script;
    const struct sync_settings settings = {.overlap = SYNC_OVERLAP_OFF};
    assert_string_equal(started(&script, settings, 1000),
                        "apply 1 0.5, reply 1, period 0 7.57s, period 1 7.57s, evaluate");
    assert_true(sync_policy_status(script->policy).commit_rate == 7); /* 60 / 8, whole */
    script_close(script);
}

TEST(cheap_commits_come_with_every_step_of_the_slowest)
{
    struct script *script;
    assert_string_equal(started(&script, (struct sync_settings){0}, 10),
                        "apply 1 0.5, reply 1, period 0 2.99s+, period 1 2.99s+, evaluate");
    assert_true(sync_policy_status(script->policy).commit_rate == 20);
    script_close(script);
}

TEST(commits_longer_than_a_third_of_the_period_come_once_in_it)
{
    struct script *script;
    assert_string_equal(started(&script, (struct sync_settings){0}, 21000),
                        "apply 1 0.5, reply 1, period 0 42s+, period 1 42s+, evaluate");
    assert_true(sync_policy_status(script->policy).commit_rate == 1);
    script_close(script);
}

TEST(a_given_interval_is_the_least)
{
    struct script *script;
    const struct sync_settings settings = {.commit_interval_min_ms = 20000};
    assert_string_equal(started(&script, settings, 5000),
                        "apply 1 0.5, reply 1, period 0 20s+, period 1 20s+, evaluate");
    assert_true(sync_policy_status(script->policy).commit_rate == 3);
    script_close(script);
}

TEST(the_rule_of_the_paper_is_one_commit_a_period_whatever_is_measured)
{
    struct script *script;
    const struct sync_settings settings = {.search = SYNC_SEARCH_PAPER};
    assert_string_equal(started(&script, settings, 5000),
                        "apply 1 0.5, reply 1, period 0 55s+, period 1 55s+, evaluate");
    assert_true(sync_policy_status(script->policy).commit_rate == 1);
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_overlap_the_first_interval_is_three_commits),
        cmocka_unit_test(without_overlap_commits_take_an_eighth_of_the_time),
        cmocka_unit_test(cheap_commits_come_with_every_step_of_the_slowest),
        cmocka_unit_test(commits_longer_than_a_third_of_the_period_come_once_in_it),
        cmocka_unit_test(a_given_interval_is_the_least),
        cmocka_unit_test(the_rule_of_the_paper_is_one_commit_a_period_whatever_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
