#include "recommend/observation.h"
#include "testing/testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct signature job = {.model = "lenet5",
                                     .data = "fashion-mnist",
                                     .layers = "conv pool dense",
                                     .policy = "adsp",
                                     .parameter_count = 44426,
                                     .batch = 32,
                                     .rate = 0.01,
                                     .momentum = 0.9};

static void another_batch_is_the_same_job_varied(void **state)
{
    (void)state;
    struct signature other = job;
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_SAME);
    other.batch = 64;
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_VARIED);
    other = job;
    other.rate = 0.02;
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_VARIED);
    memcpy(other.policy, "bsp", sizeof("bsp"));
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_VARIED);
}

static void other_data_and_other_layers_are_farther(void **state)
{
    (void)state;
    struct signature other = job;
    memcpy(other.data, "mnist", sizeof("mnist"));
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_MODEL);
    memcpy(other.model, "own", sizeof("own"));
    other.parameter_count = 46000;
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_SHAPE);
    assert_int_equal(signature_likeness(&other, &job), LIKENESS_SHAPE);
    other.parameter_count = 60000;
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_STRANGER);
    other = job;
    memcpy(other.model, "own", sizeof("own"));
    other.layers[0] = '\0';
    assert_int_equal(signature_likeness(&job, &other), LIKENESS_STRANGER);
}

static void the_curve_is_read_between_its_points(void **state)
{
    (void)state;
    const struct observation observation = {
        .points = {{0, 0, 2.0}, {10, 1000, 1.0}, {20, 2000, 0.5}}, .point_count = 3};
    assert_true(fabs(observation_samples_at(&observation, 1.5) - 500) < 1e-9);
    assert_true(fabs(observation_samples_at(&observation, 0.75) - 1500) < 1e-9);
    assert_true(fabs(observation_samples_at(&observation, 1.0) - 1000) < 1e-9);
    assert_true(observation_samples_at(&observation, 0.4) == 0);
    assert_true(observation_samples_at(&(struct observation){0}, 0.4) == 0);
}

static void every_likeness_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < LIKENESS_COUNT; i++)
        assert_non_null(likeness_name((enum likeness)i));
}

TEST(runs_of_a_model_are_counted_by_the_machines_they_were_on)
{
    struct observation seen[3] = {0};
    for (int i = 0; i < 3; i++) {
        seen[i].signature = job;
        seen[i].kind_count = 1;
        seen[i].kinds[0].step_s = 0.1;
        snprintf(seen[i].kinds[0].name, sizeof(seen[i].kinds[0].name), "1c@1.0");
    }
    assert_int_equal(observations_on(seen, 3, &job, "1c@1.0"), 3);
    assert_int_equal(observations_on(seen, 3, &job, "2c@1.0"), 0);
    seen[0].kinds[0].step_s = 0; /* it told nothing of its steps */
    snprintf(seen[1].signature.model, sizeof(seen[1].signature.model), "another");
    assert_int_equal(observations_on(seen, 3, &job, "1c@1.0"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_batch_is_the_same_job_varied),
        cmocka_unit_test(other_data_and_other_layers_are_farther),
        cmocka_unit_test(the_curve_is_read_between_its_points),
        cmocka_unit_test(every_likeness_has_a_name),
        cmocka_unit_test(runs_of_a_model_are_counted_by_the_machines_they_were_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
