/* Pace: equal time for all, the deadline, late pushes, and what changes without overlap. */
#include "sync/policy_script.h"

/* The momentum of round r is r / (r + 2) at first. */
#define FOLD(members, momentum) "fold/" members " (0.7 " momentum " 1 " momentum ")"

/* Two workers, 10 and 40 ms a step, measured by a first round of one step each. */
static struct script *measured(const struct sync_settings *settings)
{
    struct script *script = script_open("pace", settings);
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    script_push_timed(script, 10, 0, 1, 10, 0);
    script_push_timed(script, 40, 1, 1, 40, 0);
    return script;
}

TEST(steps_are_in_proportion_to_speed)
{
    struct script *script =
        script_open("pace", &(struct sync_settings){.overlap = SYNC_OVERLAP_ON, .local_steps = 8});
    assert_string_equal(script_join(script, 0, 0), "steps 0 1+");
    assert_string_equal(script_join(script, 0, 1), "steps 1 1+");
    assert_string_equal(script_push_timed(script, 10, 0, 1, 10, 0), "gather 0 1, hold 0");
    /* 100 and 25 steps a second: T = 8 / 62.5 = 128 ms, so 12.8 and 3.2 steps; four of 6/8. */
    assert_string_equal(script_push_timed(script, 40, 1, 1, 40, 0),
                        "gather 1 1, hold 1, " FOLD("2", "0") ", steps 0 13+, release 0, "
                                                              "batch 1 24, steps 1 4+, release 1");
    assert_int_equal(sync_policy_status(script->policy).round, 1);
    script_close(script);
}

TEST(a_slow_first_step_is_forgotten_at_the_next_push)
{
    struct script *script =
        script_open("pace", &(struct sync_settings){.overlap = SYNC_OVERLAP_ON, .local_steps = 8});
    script_join(script, 0, 0);
    script_push_timed(script, 500, 0, 1, 500, 0);
    script_push_timed(script, 580, 0, 8, 10, 0);
    script_join(script, 590, 1);
    script_push_timed(script, 600, 1, 1, 10, 0);
    /* Two of 100 steps a second: eight each. With 500 ms in it the first would make five. */
    assert_string_equal(
        script_push_timed(script, 660, 0, 8, 10, 0),
        "gather 0 1, hold 0, " FOLD("2", "0.5") ", release 0, steps 1 8+, release 1");
    script_close(script);
}

TEST(a_round_ends_at_its_deadline_and_a_late_push_enters_the_next_for_half)
{
    struct script *script =
        measured(&(struct sync_settings){.overlap = SYNC_OVERLAP_ON, .local_steps = 8});
    assert_true(sync_policy_wake_ns(script->policy) == INT64_MAX);
    assert_string_equal(script_push_timed(script, 170, 0, 13, 10, 0), "gather 0 1, hold 0");
    /* Two steps of the slowest are longer than half of T. */
    assert_true(sync_policy_wake_ns(script->policy) == 250000000);
    assert_string_equal(script_tick(script, 249), "");
    assert_string_equal(script_tick(script, 250), FOLD("2", "0.333") ", release 0");
    /* Half of the 24 samples of 32 that its steps have. */
    assert_string_equal(script_push_timed(script, 300, 1, 3, 30, 0), "gather 1 0.375, hold 1");
    assert_string_equal(script_push_timed(script, 380, 0, 13, 10, 0),
                        "gather 0 1, hold 0, " FOLD("2", "0.5") ", release 0, release 1");
    script_close(script);
}

TEST(a_given_deadline_and_outer_step_are_kept)
{
    const struct sync_settings given = {.overlap = SYNC_OVERLAP_ON,
                                        .local_steps = 16,
                                        .deadline_ms = 7,
                                        .outer_rate = 1,
                                        .outer_momentum = -1};
    struct script *script = script_open("pace", &given);
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    script_push_timed(script, 10, 0, 1, 10, 0);
    assert_true(sync_policy_wake_ns(script->policy) == 17000000);
    assert_string_equal(script_tick(script, 17), "fold/2 (1 0 1 0), steps 0 16+, release 0");
    script_close(script);
}

TEST(dear_commits_make_rounds_longer)
{
    struct script *script =
        script_open("pace", &(struct sync_settings){.overlap = SYNC_OVERLAP_ON});
    script_join(script, 0, 0);
    script_push_timed(script, 10, 0, 1, 10, 0);
    /* A commit takes 20 steps: h = 21. */
    assert_string_equal(script_push_timed(script, 300, 0, 8, 10, 200),
                        "gather 0 1, hold 0, " FOLD("1", "0.3") ", steps 0 21+, release 0");
    script_close(script);
}

TEST(by_default_workers_compute_on_unless_commits_are_cheap)
{
    /* So small a batch is not trimmed. */
    struct script *script = script_open("pace", &(struct sync_settings){.batch = 4});
    /* Until the first commit is measured it may take any time. */
    assert_string_equal(script_join(script, 0, 0), "steps 0 1+");
    assert_string_equal(script_push_timed(script, 10, 0, 1, 10, 0),
                        "gather 0 1, hold 0, " FOLD("1", "0") ", release 0");
    /* A commit of 0.4 steps, then one of 0.7 * 0.4 + 0.3 * 0.1 = 0.31: neither dear nor cheap. */
    assert_string_equal(script_push_timed(script, 30, 0, 1, 10, 4),
                        "gather 0 1, hold 0, " FOLD("1", "0.3") ", release 0");
    assert_string_equal(script_push_timed(script, 50, 0, 1, 10, 1),
                        "gather 0 1, hold 0, " FOLD("1", "0.3") ", release 0");
    /* 0.247 is cheap. */
    assert_string_equal(script_push_timed(script, 70, 0, 1, 10, 1),
                        "gather 0 1, hold 0, " FOLD("1", "0.3") ", steps 0 1, release 0");
    /* 1.37 is dear, and h is one more. */
    assert_string_equal(script_push_timed(script, 90, 0, 1, 10, 40),
                        "gather 0 1, hold 0, " FOLD("1", "0.3") ", steps 0 2+, release 0");
    script_close(script);
}

/* The momentum of a round when it has grown as far as it may, as the fold has it. */
static const char *grown_fold(struct script *script, uint32_t workers)
{
    for (uint32_t i = 0; i < workers; i++)
        script_join(script, 0, i);
    const char *did = "";
    for (int64_t round = 1; round < 100; round++)
        for (uint32_t i = 0; i < workers; i++)
            did = script_push_timed(script, 20 * round, i, 1, 10, 1);
    const char *fold = strstr(did, "fold");
    assert_non_null(fold);
    script->text[strcspn(fold, ")") + 1 + (size_t)(fold - script->text)] = '\0';
    return fold;
}

#define KEPT(share) .momentum = (share), .keeps_momentum = true

TEST(the_outer_gain_is_at_most_the_number_of_workers_and_less_in_rounds_that_repeat)
{
    const struct {
        uint32_t workers;
        struct sync_settings settings;
        const char *fold;
    } cases[] = {
        {1, {0}, "fold/1 (0.7 0.3 1 0.3)"},
        {2, {0}, "fold/2 (0.7 0.65 1 0.65)"},
        {4, {0}, "fold/4 (0.7 0.825 1 0.825)"},
        {8, {0}, "fold/8 (0.8 0.9 1 0.9)"},
        {18, {0}, "fold/18 (1 0.9 1 0.9)"},
        {18, {.momentum = 0.9}, "fold/18 (1 0.9 1 0.9)"}, /* it is left to the server */
        /* A commit takes a tenth of a step, so h = 1: a gradient comes in ten rounds, or in two. */
        {18, {KEPT(0.9)}, "fold/18 (0.7 0.438 1 0.438)"},
        {18, {KEPT(0.5)}, "fold/18 (0.7 0.832 1 0.832)"},
        {18, {KEPT(0.9), .local_steps = 5}, "fold/18 (0.7 0.805 1 0.805)"},
        {18, {KEPT(0.9), .local_steps = 20}, "fold/18 (0.7 0.89 1 0.89)"},
        {2, {KEPT(0.9)}, "fold/2 (0.7 0.3 1 0.3)"},
        {2, {KEPT(0.9), .outer_rate = 2}, "fold/2 (2 0 1 0)"},
        {2, {.outer_momentum = 0.9}, "fold/2 (0.7 0.9 1 0.9)"}, /* as it is asked for */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script *script = script_open("pace", &cases[i].settings);
        assert_string_equal(grown_fold(script, cases[i].workers), cases[i].fold);
        script_close(script);
    }
}

TEST(the_momentum_of_workers_is_left_to_the_server_where_it_remembers_as_many_steps)
{
    const struct {
        uint32_t workers;
        struct sync_settings settings;
        bool is_plain;
    } cases[] = {
        {18, {0}, false},
        {18, {.momentum = 0.9}, true},
        {7, {.momentum = 0.9}, true},  /* m is 0.9: ten rounds of one step */
        {6, {.momentum = 0.9}, false}, /* 0.883: nine */
        {2, {.momentum = 0.9}, false},
        {2, {.momentum = 0.6}, true},                          /* three of its own, 0.65 */
        {4, {.momentum = 0.9, .local_steps = 2}, true},        /* six rounds of two steps */
        {18, {KEPT(0.9)}, false},                              /* adam */
        {18, {.momentum = 0.9, .outer_momentum = 0.5}, false}, /* given */
        {18, {.momentum = 0.9, .outer_momentum = -1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script *script = script_open("pace", &cases[i].settings);
        grown_fold(script, cases[i].workers - 1);
        const char *joined = script_join(script, 2000, cases[i].workers - 1);
        assert_int_equal(strstr(joined, "plain") != NULL, cases[i].is_plain);
        script_close(script);
    }
}

TEST(everybody_is_told_when_the_server_takes_the_momentum_and_when_it_gives_it_back)
{
    struct script *script = script_open("pace", &(struct sync_settings){.momentum = 0.6});
    assert_string_equal(script_join(script, 0, 0), "steps 0 1+");
    assert_string_equal(script_join(script, 0, 1), "steps 0 1+ plain, steps 1 1+ plain");
    script_leave(script, 10, 1);
    /* One alone: m is 0.3, so that 1.4 steps are remembered, of the 2.5 of its own. */
    assert_string_equal(script_push_timed(script, 20, 0, 1, 10, 0),
                        "gather 0 1, hold 0, steps 0 1+, " FOLD("1", "0") ", release 0");
    script_close(script);
}

static const char *script_push_samples(struct script *script, int64_t now_ms, uint32_t worker,
                                       uint32_t steps, uint64_t samples)
{
    const struct sync_push push = {.worker = worker, .steps = steps, .samples = samples};
    sync_policy_push(script->policy, now_ms * 1000000, &push, &script->actions);
    return script_text(script);
}

TEST(a_push_weighs_as_its_samples_do_but_never_more_than_whole_batches)
{
    struct script *script =
        measured(&(struct sync_settings){.overlap = SYNC_OVERLAP_ON, .local_steps = 8});
    /* Four steps of 24 samples each, of 32. */
    assert_string_equal(script_push_samples(script, 170, 1, 4, 96), "gather 1 0.75, hold 1");
    script_close(script);
    script = measured(&(struct sync_settings){.overlap = SYNC_OVERLAP_ON, .local_steps = 8});
    assert_string_equal(script_push_samples(script, 170, 1, 4, 1 << 20), "gather 1 1, hold 1");
    script_close(script);
}

TEST(who_chooses_batches_of_its_own_is_weighed_by_steps_and_never_trimmed)
{
    const struct sync_settings settings = {
        .overlap = SYNC_OVERLAP_ON, .local_steps = 8, .keeps_batch = true};
    struct script *script = script_open("pace", &settings);
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    script_push_timed(script, 10, 0, 1, 10, 0);
    /* 3.2 steps of its own in a round are three. */
    assert_string_equal(script_push_timed(script, 40, 1, 1, 40, 0),
                        "gather 1 1, hold 1, " FOLD("2", "0") ", steps 0 13+, release 0, "
                                                              "steps 1 3+, release 1");
    /* Steps of a single sample each. */
    assert_string_equal(script_push_samples(script, 170, 1, 3, 3), "gather 1 1, hold 1");
    script_close(script);
}

TEST(who_leaves_is_not_waited_for_and_its_push_stays)
{
    struct script *script =
        measured(&(struct sync_settings){.overlap = SYNC_OVERLAP_ON, .local_steps = 8});
    script_push_timed(script, 170, 0, 13, 10, 0);
    /* Alone, it makes h steps a round. */
    assert_string_equal(script_leave(script, 180, 1), FOLD("1", "0.3") ", steps 0 8+, release 0");
    script_close(script);
}

TEST(without_overlap_far_links_get_less_time_to_compute)
{
    const struct sync_settings settings = {.overlap = SYNC_OVERLAP_OFF, .local_steps = 8};
    struct script *script = script_open("pace", &settings);
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    script_push_timed(script, 10, 0, 1, 10, 0);
    script_push_timed(script, 10, 1, 1, 10, 0);
    /* Commits of 10 and 30 ms: 80 ms, 10 more than the mean for one, 10 less for the other. */
    assert_string_equal(script_push_timed(script, 100, 0, 8, 10, 10), "gather 0 1, hold 0");
    assert_string_equal(script_push_timed(script, 120, 1, 8, 10, 30),
                        "gather 1 1, hold 1, " FOLD("2", "0.333") ", steps 0 9, release 0, "
                                                                  "steps 1 7, release 1");
    script_close(script);
}

TEST(without_overlap_a_late_worker_fills_the_rest_of_the_round)
{
    const struct sync_settings settings = {
        .overlap = SYNC_OVERLAP_OFF, .local_steps = 8, .deadline_ms = 20};
    struct script *script = script_open("pace", &settings);
    script_join(script, 0, 0);
    script_join(script, 0, 1);
    script_push_timed(script, 10, 0, 1, 10, 0);
    script_push_timed(script, 10, 1, 1, 10, 0);
    script_push_timed(script, 90, 0, 8, 10, 0);
    assert_string_equal(script_tick(script, 110), FOLD("2", "0.333") ", release 0");
    /* The round that began at 110 ms lasts 80: 45 ms are left for four steps. */
    assert_string_equal(script_push_timed(script, 145, 1, 8, 10, 0),
                        "gather 1 0.5, steps 1 4, reply 1");
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_in_proportion_to_speed),
        cmocka_unit_test(a_slow_first_step_is_forgotten_at_the_next_push),
        cmocka_unit_test(a_round_ends_at_its_deadline_and_a_late_push_enters_the_next_for_half),
        cmocka_unit_test(a_given_deadline_and_outer_step_are_kept),
        cmocka_unit_test(dear_commits_make_rounds_longer),
        cmocka_unit_test(by_default_workers_compute_on_unless_commits_are_cheap),
        cmocka_unit_test(
            the_outer_gain_is_at_most_the_number_of_workers_and_less_in_rounds_that_repeat),
        cmocka_unit_test(
            the_momentum_of_workers_is_left_to_the_server_where_it_remembers_as_many_steps),
        cmocka_unit_test(
            everybody_is_told_when_the_server_takes_the_momentum_and_when_it_gives_it_back),
        cmocka_unit_test(a_push_weighs_as_its_samples_do_but_never_more_than_whole_batches),
        cmocka_unit_test(who_chooses_batches_of_its_own_is_weighed_by_steps_and_never_trimmed),
        cmocka_unit_test(who_leaves_is_not_waited_for_and_its_push_stays),
        cmocka_unit_test(without_overlap_far_links_get_less_time_to_compute),
        cmocka_unit_test(without_overlap_a_late_worker_fills_the_rest_of_the_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
