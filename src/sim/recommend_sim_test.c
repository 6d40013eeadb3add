/*
 * covers recommend_bench.c, recommend_draw.c, recommend_paper.c, recommend_run.c, recommend_sim.c
 * covers recommend_world.c
 */
#include "base/random.h"
#include "recommend/policy_traits.h"
#include "sim/recommend_bench.h"
#include "sim/recommend_draw.h"
#include "sim/recommend_paper.h"
#include "sync/policy.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

static void every_policy_has_traits(void **state)
{
    (void)state;
    const char *name;
    for (uint32_t i = 0; (name = sync_policy_name_at(i)); i++)
        assert_string_equal(policy_traits_find(name)->name, name);
}

static void a_step_follows_from_speed_batch_and_kind(void **state)
{
    (void)state;
    struct error error;
    AUTO(world) struct world *world = NULL;
    ASSERT_OK(world_open(3, 1, &world, &error));
    struct world_family *family = &world->families[0];
    const double once = world_step_s(world, family, 4, 32);
    assert_true(world_step_s(world, family, 4, 64) > once);
    assert_true(world_step_s(world, family, 4, 64) < 2 * once);
    family->kind_factors[4] *= 2;
    assert_true(fabs(world_step_s(world, family, 4, 32) - 2 * once) < 1e-9 * once);
}

/* Two workers that wait for nobody, a link that is never full: half of one's time. */
static void a_run_tells_what_its_profile_would(void **state)
{
    (void)state;
    struct error error;
    AUTO(world) struct world *world = NULL;
    struct world_outcome one, two;
    ASSERT_OK(world_open(3, 1, &world, &error));
    struct world_run run = {.batch = 16,
                            .rate = 0.01,
                            .policy = "tap",
                            .server = {"wide", 100000, 0},
                            .samples = 1600,
                            .seed = 5};
    run.counts[6] = 1;
    ASSERT_OK(world_run(world, &run, &one, &error));
    run.counts[6] = 2;
    ASSERT_OK(world_run(world, &run, &two, &error));
    assert_true(one.is_done && two.is_done);
    assert_int_equal(one.observation.samples, 1600);
    assert_int_equal(one.observation.kinds[0].steps, 100);
    assert_string_equal(one.observation.kinds[0].name, world->kinds[6].name);
    assert_true(
        fabs(one.observation.kinds[0].step_s / world_step_s(world, &world->families[0], 6, 16) -
             1) < 0.1);
    assert_true(fabs(two.observation.seconds / one.observation.seconds - 0.5) < 0.05);
    assert_true(fabs(one.cost_micro - (100000 + 96000) * one.seconds / 3600) < 1e-3);
}

/* Ranges are calibrated on other seeds than this one. */
static void cases_are_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    struct error error;
    struct recommend_sim_result first, again;
    struct recommend_sim_options options = {
        .case_count = 8, .seed = 77, .thread_count = 1, .has_trial = true};
    ASSERT_OK(recommend_sim(&options, &first, &error));
    options.thread_count = 3;
    ASSERT_OK(recommend_sim(&options, &again, &error));
    assert_int_equal(first.case_count, 8);
    assert_true(first.outcomes >= 40);
    for (uint32_t i = 0; i < first.case_count; i++) {
        assert_int_equal(first.cases[i].chosen, again.cases[i].chosen);
        assert_true(first.cases[i].over_best >= 1);
        for (uint32_t n = 0; n < first.cases[i].cluster_count; n++)
            assert_memory_equal(&first.cases[i].clusters[n].prediction,
                                &again.cases[i].clusters[n].prediction, sizeof(struct prediction));
    }
    assert_true(first.median_error == again.median_error);
    assert_true(first.median_error < 0.25 && first.p90_error < 0.6);
    assert_true(first.covered > 0.6 && first.within_1_1 >= 0.75);
    assert_true(first.trial_share > 0 && first.trial_share < 0.05);
    assert_true(recommend_sim_error(&first, 0.9, NULL, NULL) == first.p90_error);
    recommend_sim_result_done(&first);
    recommend_sim_result_done(&again);
}

/* Batch 16: two workers fill the server's link, six bring no more. */
static void scala_opt_saves_what_the_paper_says(void **state)
{
    (void)state;
    struct error error;
    struct paper_result result;
    const struct paper_options options = {.seed = 1, .case_count = 1};
    ASSERT_OK(recommend_paper(&options, &result, &error));
    const struct paper_choice *choices = result.cases[0].choices;
    assert_string_equal(choices[PAPER_TIME].cluster, "6 m4.xlarge");
    assert_string_equal(choices[PAPER_SCALA].cluster, "2 c4.xlarge");
    assert_true(result.saved_most > 0.6);
    assert_true(choices[PAPER_AUTO].cost_micro <= 1.01 * choices[PAPER_SCALA].cost_micro);
    assert_true(isnan(result.best_cost) && choices[PAPER_BEST].cluster[0] == '\0');
}

static void the_search_weighs_every_type(void **state)
{
    (void)state;
    struct error error;
    struct recommend_bench_result result;
    const struct recommend_bench_options options = {
        .type_count = 64, .worker_max = 16, .policy_count = 2, .rounds = 1};
    ASSERT_OK(recommend_bench(&options, &result, &error));
    assert_true(result.considered >= 2 * 64);
    assert_true(result.frontier > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_has_traits),
        cmocka_unit_test(a_step_follows_from_speed_batch_and_kind),
        cmocka_unit_test(a_run_tells_what_its_profile_would),
        cmocka_unit_test(cases_are_the_same_on_any_number_of_threads),
        cmocka_unit_test(scala_opt_saves_what_the_paper_says),
        cmocka_unit_test(the_search_weighs_every_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
