/* covers siren_rehearse.c, siren_search.c */
#include "sim/siren_compare.h"
#include "testing/testing.h"

#include <math.h>

static const uint32_t all = (1 << SIREN_SCHEDULER_COUNT) - 1;

static struct siren_result compare(const struct siren_world *world, int64_t budget, bool is_noisy,
                                   uint64_t seed, uint32_t wanted_mask)
{
    struct siren_result result;
    siren_compare(&(struct siren_compare_options){.world = world,
                                                  .budget_micro = budget * 1000000,
                                                  .is_noisy = is_noisy,
                                                  .seed = seed,
                                                  .agent_rehearsals = 60,
                                                  .auto_rehearsals = 20,
                                                  .evaluation_count = 3,
                                                  .wanted_mask = wanted_mask},
                  &result);
    return result;
}

TEST(no_scheduler_gains_where_the_number_of_epochs_is_fixed)
{
    const struct siren_world world = siren_world_typical(SIREN_PAPER);
    struct siren_result result = compare(&world, 300, false, 1, all & ~(1U << SIREN_AGENT));
    assert_in_range(result.constant.function_count, 826, 834);
    for (int i = SIREN_DECAY; i < SIREN_SCHEDULER_COUNT; i++)
        if (result.is_run[i])
            assert_true(siren_reduction(&result, i) < 0.001);
    assert_true(siren_reduction(&result, SIREN_BOUND) < 0.002);
    siren_result_done(&result);
}

TEST(the_bound_is_that_of_the_dynamic_program)
{
    const struct siren_world world = siren_world_typical(SIREN_FLOOR);
    const int64_t budgets[] = {300, 200, 100};
    const double published[] = {0.329, 0.239, 0.079};
    for (int i = 0; i < 3; i++) {
        struct siren_result result = compare(&world, budgets[i], false, 1, 0);
        assert_true(fabs(siren_reduction(&result, SIREN_BOUND) - published[i]) < 0.0015);
    }
}

TEST(none_is_sooner_than_the_bound_and_none_passes_the_budget)
{
    for (uint64_t seed = 30; seed < 33; seed++) {
        const struct siren_world world = siren_world_draw(SIREN_FLOOR, seed);
        struct siren_result result = compare(&world, 200, false, seed, all);
        for (int i = 0; i < SIREN_SCHEDULER_COUNT; i++) {
            if (i == SIREN_BOUND)
                continue;
            assert_true(result.is_run[i]);
            assert_true(result.scores[i].passed_micro <= 0);
            if (result.scores[i].reached_count == 1 &&
                result.scores[i].time_s < result.scores[SIREN_BOUND].time_s)
                fail_msg("seed %d: %s takes %g s", (int)seed, siren_scheduler_names[i],
                         result.scores[i].time_s);
        }
        assert_int_equal(result.scores[SIREN_AUTO].reached_count, 1);
        assert_true(siren_share(&result, SIREN_AUTO) > 0.9);
        assert_true(siren_share(&result, SIREN_PLANNER) > 0.8);
        siren_result_done(&result);
    }
}

TEST(the_same_seed_gives_the_same_table)
{
    const struct siren_world world = siren_world_draw(SIREN_FLOOR, 40);
    const uint32_t learned = 1 << SIREN_AGENT | 1 << SIREN_AUTO;
    struct siren_result one = compare(&world, 300, true, 40, learned);
    struct siren_result other = compare(&world, 300, true, 40, learned);
    for (int i = 0; i < SIREN_SCHEDULER_COUNT; i++)
        assert_true(one.scores[i].time_s == other.scores[i].time_s);
    assert_true(one.scores[SIREN_AUTO].passed_micro <= 0);
    assert_int_equal(one.evaluation_count, 3);
    siren_result_done(&one);
    siren_result_done(&other);
}

TEST(a_scheduler_s_row_does_not_depend_on_who_stands_beside_it)
{
    const struct siren_world world = siren_world_draw(SIREN_FLOOR, 41);
    struct siren_result both = compare(&world, 300, true, 41, 1 << SIREN_AGENT | 1 << SIREN_AUTO);
    struct siren_result alone = compare(&world, 300, true, 41, 1 << SIREN_AUTO);
    assert_true(both.scores[SIREN_AUTO].time_s == alone.scores[SIREN_AUTO].time_s);
    siren_result_done(&both);
    siren_result_done(&alone);
}

TEST(an_agent_finds_where_to_begin_by_its_own_runs)
{
    for (uint64_t seed = 42; seed < 45; seed++) {
        const struct siren_world world = siren_world_draw(SIREN_FLOOR, seed);
        struct siren_result result = compare(&world, 300, false, seed, 1 << SIREN_AGENT);
        const double share =
            (double)result.agent->centre.function_count / (double)result.constant.function_count;
        assert_int_equal(result.agent->episode_count, 60);
        assert_true(share > 0.3 && share < 3);
        siren_result_done(&result);
    }
}

TEST(a_budget_that_suffices_for_no_constant_is_told)
{
    const struct siren_world world = siren_world_typical(SIREN_FLOOR);
    struct siren_result result = compare(&world, 50, false, 1, all);
    assert_int_equal(result.constant.function_count, 0);
    assert_false(result.is_run[SIREN_AUTO]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_scheduler_gains_where_the_number_of_epochs_is_fixed),
        cmocka_unit_test(the_bound_is_that_of_the_dynamic_program),
        cmocka_unit_test(none_is_sooner_than_the_bound_and_none_passes_the_budget),
        cmocka_unit_test(the_same_seed_gives_the_same_table),
        cmocka_unit_test(a_scheduler_s_row_does_not_depend_on_who_stands_beside_it),
        cmocka_unit_test(an_agent_finds_where_to_begin_by_its_own_runs),
        cmocka_unit_test(a_budget_that_suffices_for_no_constant_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
