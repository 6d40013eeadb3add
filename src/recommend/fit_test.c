/* covers fit_speed.c, fit_learning.c */
#include "base/random.h"
#include "recommend/fit.h"
#include "testing/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct recommend_job job = {
    .signature = {.model = "mlp",
                  .data = "digits",
                  .layers = "dense dense",
                  .policy = "bsp",
                  .parameter_count = 100000,
                  .batch = 32,
                  .rate = 0.1},
    .samples = 1e6,
};

static struct observation run_of(const char *kind, uint32_t cores, double step_s)
{
    struct observation seen = {.signature = job.signature, .kind_count = 1, .worker_count = 1};
    struct observed_kind *only = &seen.kinds[0];
    snprintf(only->name, sizeof(only->name), "%s", kind);
    only->speed_weight = 1000;
    only->cores_milli = 1000 * cores;
    only->worker_count = 1;
    only->steps = 100;
    only->step_s = step_s;
    return seen;
}

static struct candidate machine(const char *name, uint32_t weight, uint32_t cores)
{
    return (struct candidate){.name = name, .speed_weight = weight, .cores_milli = 1000 * cores};
}

static double expected_step(const struct fit *fit, struct candidate candidate)
{
    return exp(fit_step(fit, &candidate).mean);
}

/* Steps of 2 s on one core, cores worth the power 0.7: from four machines of different sizes. */
static void speed_and_the_worth_of_cores_are_found_again(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    struct observation seen[4];
    static const char *const names[4] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t cores = 1U << (2 * i);
        seen[i] = run_of(names[i], cores, 2 / pow(cores, 0.7));
    }
    fit_observations(&job, seen, 4, NULL, fit);
    assert_true(fabs(log(expected_step(fit, machine("a", 1000, 1)) / 2)) < 0.05);
    const double sixteen = 2 / pow(16, 0.7);
    assert_true(fabs(log(expected_step(fit, machine("new", 1000, 16)) / sixteen)) < 0.15);
    assert_true(fabs(log(expected_step(fit, machine("new", 2000, 16)) / (sixteen / 2))) < 0.15);
    assert_int_equal(fit->observation_count[LIKENESS_SAME], 4);
    free(fit);
}

static void a_kind_that_was_measured_is_known_better(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    /* "odd" is a third slower than its speed would give, seen on a stranger's job too. */
    struct observation seen[4] = {run_of("even", 4, 1), run_of("odd", 4, 1.33),
                                  run_of("even", 4, 5), run_of("odd", 4, 6.65)};
    for (int i = 2; i < 4; i++)
        seen[i].signature = (struct signature){.model = "other", .data = "other", .batch = 8};
    fit_observations(&job, seen, 4, NULL, fit);
    const struct candidate odd = machine("odd", 1000, 4), new = machine("new", 1000, 4);
    assert_true(fabs(expected_step(fit, odd) - 1.33) < 0.06);
    assert_true(fit_step(fit, &odd).variance < 0.25 * fit_step(fit, &new).variance);

    /* Without a run of its own on this job the stranger's tells which kind is slow. */
    const struct observation told[3] = {seen[0], seen[2], seen[3]};
    fit_observations(&job, told, 3, NULL, fit);
    assert_true(expected_step(fit, odd) > 1.1);
    free(fit);
}

static void a_stranger_tells_nothing_of_this_jobs_work(void **state)
{
    (void)state;
    struct fit *none = malloc(sizeof(*none)), *stranger = malloc(sizeof(*stranger));
    struct observation seen = run_of("a", 1, 50);
    seen.signature = (struct signature){.model = "other", .data = "other", .batch = 8};
    const struct candidate candidate = machine("b", 1000, 1);
    fit_observations(&job, NULL, 0, NULL, none);
    fit_observations(&job, &seen, 1, NULL, stranger);
    assert_true(fit_step(stranger, &candidate).variance >
                0.7 * fit_step(none, &candidate).variance);
    free(none);
    free(stranger);
}

/* S (1 + n b / B) with S = 50,000 and B = 64. */
static double samples_of(double workers, double batch)
{
    return 50000 * (1 + workers * batch / 64);
}

static struct observation trained(uint32_t workers, uint32_t batch, double samples)
{
    struct observation seen = run_of("a", 1, 1);
    seen.signature.batch = batch;
    seen.worker_count = workers;
    seen.points[0] = (struct observed_point){0, 0, 2};
    seen.points[1] = (struct observed_point){1, (uint64_t)samples, 0.5};
    seen.point_count = 2;
    return seen;
}

static void the_critical_batch_is_found_again(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    struct recommend_job target = job;
    target.samples = 0;
    target.target_loss = 0.5;
    const struct observation seen[] = {
        trained(1, 8, samples_of(1, 8)), trained(1, 32, samples_of(1, 32)),
        trained(4, 32, samples_of(4, 32)), trained(8, 64, samples_of(8, 64))};
    fit_observations(&target, seen, 4, NULL, fit);
    assert_true(fit->has_samples);
    assert_true(fabs(log(fit->critical_batch / 64)) < 0.5);
    for (uint32_t n = 1; n <= 16; n *= 2)
        assert_true(fabs(log(fit->samples_expected[n] / samples_of(n, 32))) < 0.1);
    assert_true(fit->samples[256].variance > fit->samples[4].variance);
    free(fit);
}

static void a_target_never_reached_is_guessed_with_a_wide_range(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    struct recommend_job target = job;
    target.samples = 0;
    target.target_loss = 0.25;
    struct observation seen = trained(1, 32, 4000);
    seen.points[2] = (struct observed_point){2, 16000, 0.4};
    seen.point_count = 3;
    fit_observations(&target, &seen, 1, NULL, fit);
    assert_false(fit->has_samples);
    assert_true(fit->samples_expected[1] > 16000);
    assert_true(fit->samples[1].variance > 0.3);
    free(fit);
}

static void a_policy_that_never_reached_the_target_here_is_doubted(void **state)
{
    (void)state;
    struct fit *worked = malloc(sizeof(*worked)), *untried = malloc(sizeof(*untried));
    assert_true(worked && untried);
    struct recommend_job target = job;
    target.samples = 0;
    target.target_loss = 0.5;
    struct observation seen[] = {trained(1, 32, 60000), trained(1, 32, 62000)};
    fit_observations(&target, seen, 2, NULL, worked);
    snprintf(target.signature.policy, sizeof(target.signature.policy), "adsp");
    fit_observations(&target, seen, 2, NULL, untried);
    assert_true(untried->samples[1].variance > 0.3 && worked->samples[1].variance < 0.05);
    assert_true(untried->samples_expected[1] > 1.1 * worked->samples_expected[1]);
    /* Until it has. */
    snprintf(seen[1].signature.policy, sizeof(seen[1].signature.policy), "adsp");
    fit_observations(&target, seen, 2, NULL, untried);
    assert_true(untried->samples[1].variance < 0.05);
    free(worked);
    free(untried);
}

static void epochs_need_no_guess(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    fit_observations(&job, NULL, 0, NULL, fit);
    assert_true(fit->has_samples);
    assert_true(fabs(fit->samples_expected[17] - 1e6) < 1e-3);
    assert_true(fit->samples[17].variance == 0);
    assert_true(fit->bytes_up == 400000 && fit->bytes_down == 400000);
    free(fit);
}

static void bytes_and_commits_are_those_of_the_nearest_run(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    struct observation seen = run_of("a", 1, 1);
    seen.bytes_up = 100000;
    seen.bytes_down = 300000;
    seen.kinds[0].bytes_per_s = 1e6;
    seen.kinds[0].commit_s = 0.8; /* twice what its link would give */
    fit_observations(&job, &seen, 1, NULL, fit);
    assert_true(fit->bytes_up == 100000 && fit->bytes_down == 300000);
    assert_true(fit->transfer.mean > 0.8 * log(2) && fit->transfer.mean < log(2));
    free(fit);
}

static double nasty(struct random *random)
{
    static const double values[] = {0, -1, 1e-300, 1e300, 1, 0.5, 1e9, 1e-9};
    const uint64_t pick = random_below(random, 10);
    return pick < 8 ? values[pick] : pick == 8 ? (double)HUGE_VAL : (double)NAN;
}

/* What a broken or lying profile might hold. */
static void whatever_was_observed_the_fit_is_finite(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    struct observation *seen = calloc(4, sizeof(*seen));
    struct random random;
    random_init(&random, 13);
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 4; i++) {
            seen[i] = trained((uint32_t)random_below(&random, 600), 32, 5000);
            seen[i].kinds[0].step_s = nasty(&random);
            seen[i].kinds[0].step_deviation = nasty(&random);
            seen[i].kinds[0].commit_s = nasty(&random);
            seen[i].kinds[0].bytes_per_s = nasty(&random);
            seen[i].kinds[0].rtt_s = nasty(&random);
            seen[i].kinds[0].speed_weight = (uint32_t)random_below(&random, 3) * 1000;
            seen[i].bytes_up = nasty(&random);
            seen[i].bytes_down = nasty(&random);
            seen[i].losses = 1;
            seen[i].replace_s = nasty(&random);
            seen[i].signature.rate = nasty(&random);
            seen[i].signature.batch = (uint32_t)random_below(&random, 3);
            for (int n = 0; n < 3; n++)
                seen[i].points[n].loss = nasty(&random);
            seen[i].point_count = 3;
        }
        struct recommend_job target = job;
        target.samples = 0;
        target.target_loss = 0.5;
        const struct candidate candidate = machine("a", 1000, 2);
        fit_observations(&target, seen, 4, NULL, fit);
        assert_true(isfinite(fit_step(fit, &candidate).mean));
        assert_true(isfinite(fit->transfer.mean) && isfinite(fit->replace_s));
        assert_true(isfinite(fit->slowest[256]) && fit->bytes_up > 0 && fit->steps_per_push >= 1);
        for (uint32_t n = 1; n <= 256; n++)
            assert_true(isfinite(fit->samples_expected[n]) && fit->samples_expected[n] > 0);
    }
    free(seen);
    free(fit);
}

/* Eight of ten outcomes lie within the range that is meant to hold eight of ten. */
static void what_is_sure_is_told_as_sure_as_it_is(void **state)
{
    (void)state;
    struct fit *fit = malloc(sizeof(*fit));
    struct random random;
    uint32_t within = 0;
    random_init(&random, 11);
    for (int round = 0; round < 200; round++) {
        struct observation seen[3];
        static const char *const names[3] = {"a", "b", "c"};
        const double worth = 0.85 + 0.1 * random_normal(&random);
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t cores = 1U << i;
            const double odd = 0.12 * random_normal(&random) + 0.03 * random_normal(&random);
            seen[i] = run_of(names[i], cores, exp(odd) / pow(cores, worth));
        }
        const struct candidate candidate = machine("new", 1000, 32);
        const double actual = exp(0.12 * random_normal(&random)) / pow(32, worth);
        fit_observations(&job, seen, 3, NULL, fit);
        const struct estimate told = fit_step(fit, &candidate);
        within += fabs(log(actual) - told.mean) < 1.2816 * sqrt(told.variance);
    }
    assert_in_range(within, 144, 176); /* 160 of 200 */
    free(fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed_and_the_worth_of_cores_are_found_again),
        cmocka_unit_test(a_kind_that_was_measured_is_known_better),
        cmocka_unit_test(a_stranger_tells_nothing_of_this_jobs_work),
        cmocka_unit_test(the_critical_batch_is_found_again),
        cmocka_unit_test(a_target_never_reached_is_guessed_with_a_wide_range),
        cmocka_unit_test(a_policy_that_never_reached_the_target_here_is_doubted),
        cmocka_unit_test(epochs_need_no_guess),
        cmocka_unit_test(bytes_and_commits_are_those_of_the_nearest_run),
        cmocka_unit_test(whatever_was_observed_the_fit_is_finite),
        cmocka_unit_test(what_is_sure_is_told_as_sure_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
