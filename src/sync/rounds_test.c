/*
 * The policies that work in rounds.
 * covers backup.c, batchtune.c, bsp.c, diloco.c, fixed_adacomm.c, round.c
 */
#include "sync/policy_script.h"

TEST(fixed_adacomm_averages_every_40_steps)
{
    struct script *script = script_open("fixed-adacomm", &(struct sync_settings){0});
    assert_string_equal(script_join(script, 0, 0), "steps 0 40");
    script_join(script, 0, 1);
    assert_string_equal(script_push(script, 1, 1, 40), "gather 1 1, hold 1");
    assert_string_equal(script_push(script, 2, 0, 40),
                        "gather 0 1, hold 0, fold, release 0, release 1");
    assert_int_equal(sync_policy_status(script->policy).round, 1);
    script_close(script);
}

TEST(diloco_folds_by_nesterov)
{
    struct script *script = script_open("diloco", &(struct sync_settings){0});
    assert_string_equal(script_join(script, 0, 0), "steps 0 500");
    assert_string_equal(script_push(script, 1, 0, 500),
                        "gather 0 1, hold 0, fold (0.7 0.9 1 0.9), release 0");
    script_close(script);
    const struct sync_settings given = {.local_steps = 50, .outer_rate = 0.5, .outer_momentum = -1};
    script = script_open("diloco", &given);
    assert_string_equal(script_join(script, 0, 0), "steps 0 50");
    assert_string_equal(script_push(script, 1, 0, 50),
                        "gather 0 1, hold 0, fold (0.5 0 1 0), release 0");
    script_close(script);
}

TEST(backup_ends_a_round_with_the_first_k_and_drops_the_rest)
{
    struct script *script = script_open("backup", &(struct sync_settings){.backups = 1});
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(script_join(script, 0, i), i == 0   ? "steps 0 1"
                                                       : i == 1 ? "steps 1 1"
                                                                : "steps 2 1");
    assert_string_equal(script_push(script, 1, 2, 1), "gather 2 1, hold 2");
    assert_string_equal(script_push(script, 2, 0, 1),
                        "gather 0 1, hold 0, fold, release 0, release 2");
    /* Made on the model before: not taken, answered with the new one. */
    assert_string_equal(script_push(script, 3, 1, 1), "reply 1");
    assert_string_equal(script_push(script, 4, 1, 1), "gather 1 1, hold 1");
    assert_string_equal(script_push(script, 5, 0, 1),
                        "gather 0 1, hold 0, fold, release 0, release 1");
    script_close(script);
}

TEST(a_tenth_of_the_members_are_backups_and_somebody_always_counts)
{
    struct script *script = script_open("backup", &(struct sync_settings){0});
    script_join(script, 0, 0);
    assert_string_equal(script_push(script, 1, 0, 1), "gather 0 1, hold 0, fold, release 0");
    for (uint32_t i = 1; i < 11; i++)
        script_join(script, 2, i);
    /* Of 11, two are backups: nine are waited for. */
    for (uint32_t i = 0; i < 8; i++)
        assert_null(strstr(script_push(script, 3, i, 1), "fold"));
    assert_non_null(strstr(script_push(script, 3, 8, 1), "fold"));
    script_close(script);
}

/* Steps of 16 ms and 48 ms with a batch of 16: 1000 and 333 samples a second. */
TEST(batchtune_shares_the_batch_by_speed)
{
    struct script *script = script_open("batchtune", &(struct sync_settings){.batch = 16});
    assert_string_equal(script_join(script, 0, 0), "steps 0 1, batch 0 16");
    script_join(script, 0, 1);
    assert_string_equal(script_push_timed(script, 16, 0, 1, 16, 0), "gather 0 16, hold 0");
    assert_string_equal(script_push_timed(script, 48, 1, 1, 48, 0),
                        "gather 1 16, hold 1, fold, batch 0 24, batch 1 8, release 0, release 1");
    /* Both take 24 ms now: nothing to change. */
    assert_string_equal(script_push_timed(script, 72, 0, 1, 24, 0), "gather 0 24, hold 0");
    assert_string_equal(script_push_timed(script, 72, 1, 1, 24, 0),
                        "gather 1 8, hold 1, fold, release 0, release 1");
    script_close(script);
}

TEST(batches_keep_their_sum_and_are_never_empty)
{
    struct script *script = script_open("batchtune-fixed", &(struct sync_settings){.batch = 5});
    for (uint32_t i = 0; i < 3; i++)
        script_join(script, 0, i);
    script_push_timed(script, 1, 0, 40, 1, 0);
    script_push_timed(script, 1, 1, 40, 1000, 0);
    /* 15 samples at 5000 : 5 : 1667 a second: 11.24, 0.01 and 3.75. */
    assert_string_equal(script_push_timed(script, 1, 2, 40, 3, 0),
                        "gather 2 200, hold 2, fold, batch 0 11, batch 1 1, batch 2 3, release 0, "
                        "release 1, release 2");
    script_close(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_adacomm_averages_every_40_steps),
        cmocka_unit_test(diloco_folds_by_nesterov),
        cmocka_unit_test(backup_ends_a_round_with_the_first_k_and_drops_the_rest),
        cmocka_unit_test(a_tenth_of_the_members_are_backups_and_somebody_always_counts),
        cmocka_unit_test(batchtune_shares_the_batch_by_speed),
        cmocka_unit_test(batches_keep_their_sum_and_are_never_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
