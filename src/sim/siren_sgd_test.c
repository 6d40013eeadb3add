/* covers siren_lines.c, siren_path.c */
#include "sim/siren_compare.h"
#include "testing/testing.h"
#include "train/dataset_catalogue.h"

#include <math.h>

struct fixture {
    struct dataset *train, *test;
    struct siren_sgd *sgd;
};

static void fixture_open(struct fixture *fixture)
{
    const struct dataset_entry *entry;
    struct error error;
    ASSERT_OK(dataset_entry_find(TEXT("fashion-mnist"), &entry, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS,
                                 &fixture->train, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TEST_IMAGES, DATASET_TEST_LABELS,
                                 &fixture->test, &error));
    ASSERT_OK(siren_sgd_open((struct siren_sgd_data){fixture->train, fixture->test}, &fixture->sgd,
                             &error));
}

static void fixture_done(struct fixture *fixture)
{
    siren_sgd_free(fixture->sgd);
    dataset_free(fixture->train);
    dataset_free(fixture->test);
}

static struct siren_sgd_epoch train(struct siren_sgd *sgd, uint64_t run, uint32_t functions,
                                    int epochs)
{
    struct siren_sgd_epoch epoch = {.loss = siren_sgd_begin(sgd, run)};
    assert_true(epoch.loss > 2);
    for (int i = 0; i < epochs; i++)
        epoch = siren_sgd_epoch(sgd, functions);
    return epoch;
}

TEST(one_run_is_always_the_same_and_another_differs)
{
    struct fixture fixture;
    fixture_open(&fixture);
    const struct siren_sgd_epoch one = train(fixture.sgd, 5, 3, 2);
    const struct siren_sgd_epoch other = train(fixture.sgd, 6, 3, 2);
    const struct siren_sgd_epoch again = train(fixture.sgd, 5, 3, 2);
    assert_true(one.loss == again.loss && one.longer == again.longer);
    assert_true(one.loss != other.loss);
    fixture_done(&fixture);
}

TEST(a_mean_of_more_updates_goes_less_far_in_an_epoch)
{
    struct fixture fixture;
    fixture_open(&fixture);
    double before = 0;
    for (uint32_t n = 1; n <= 64; n *= 8) {
        const struct siren_sgd_epoch epoch = train(fixture.sgd, 7, n, 1);
        assert_true(epoch.loss > before && epoch.loss < 2);
        assert_true(epoch.longer > 0.9 && epoch.longer < 1.4);
        before = epoch.loss;
    }
    fixture_done(&fixture);
}

TEST(updates_are_as_late_as_functions_run_beside_each_other)
{
    struct fixture fixture;
    fixture_open(&fixture);
    assert_true(train(fixture.sgd, 8, 1, 1).staleness == 0);
    const double late = train(fixture.sgd, 8, 16, 1).staleness;
    assert_true(late > 8 && late < 16);
    fixture_done(&fixture);
}

static struct siren_result compare(const struct fixture *fixture, int64_t budget, uint32_t mask)
{
    struct siren_world world = siren_world_draw(SIREN_SGD, 3);
    struct siren_result result;
    world.sgd = fixture->sgd;
    world.task.loss_target = 0.62; /* soon reached */
    world.task.epoch_max = 12;
    siren_compare(&(struct siren_compare_options){.world = &world,
                                                  .budget_micro = budget * 1000000,
                                                  .seed = 3,
                                                  .auto_rehearsals = 16,
                                                  .evaluation_count = 2,
                                                  .wanted_mask = mask},
                  &result);
    return result;
}

TEST(schedules_that_were_found_are_judged_on_other_runs_within_the_budget)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct siren_result result = compare(&fixture, 300, 1 << SIREN_AUTO | 1 << SIREN_PLANNER);
    assert_in_range(result.constant.function_count, 1, 64);
    assert_int_equal(result.evaluation_count, 2);
    assert_false(result.is_run[SIREN_BOUND]);
    assert_true(isnan(siren_share(&result, SIREN_AUTO)));
    for (int i = 0; i < SIREN_SCHEDULER_COUNT; i++)
        if (result.is_run[i])
            assert_true(result.scores[i].passed_micro <= 0);
    assert_true(result.is_run[SIREN_AUTO] && result.is_run[SIREN_PLANNER]);
    assert_int_equal(result.scores[SIREN_AUTO].reached_count, 2);
    siren_result_done(&result);
    fixture_done(&fixture);
}

TEST(a_budget_that_trains_nothing_is_told)
{
    struct fixture fixture;
    fixture_open(&fixture);
    struct siren_result result = compare(&fixture, 1, 1 << SIREN_AUTO);
    assert_int_equal(result.constant.function_count, 0);
    assert_false(result.is_run[SIREN_AUTO]);
    fixture_done(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_is_always_the_same_and_another_differs),
        cmocka_unit_test(a_mean_of_more_updates_goes_less_far_in_an_epoch),
        cmocka_unit_test(updates_are_as_late_as_functions_run_beside_each_other),
        cmocka_unit_test(schedules_that_were_found_are_judged_on_other_runs_within_the_budget),
        cmocka_unit_test(a_budget_that_trains_nothing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
