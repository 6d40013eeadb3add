/* covers flow.c */
#include "base/random.h"
#include "recommend/flow.h"
#include "recommend/predict.h"
#include "testing/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fit *fit_of(const char *policy)
{
    struct recommend_job job = {
        .signature = {.model = "m", .data = "d", .parameter_count = 250000, .batch = 10},
        .samples = 100000,
    };
    snprintf(job.signature.policy, sizeof(job.signature.policy), "%s", policy);
    struct observation seen = {.signature = job.signature, .kind_count = 1, .worker_count = 1};
    seen.kinds[0] = (struct observed_kind){.name = "m",
                                           .speed_weight = 1000,
                                           .cores_milli = 1000,
                                           .steps = 1000000,
                                           .step_s = 1,
                                           .step_deviation = 1e-9};
    struct fit *fit = malloc(sizeof(*fit));
    assert_non_null(fit);
    fit_observations(&job, &seen, 1, NULL, fit);
    return fit;
}

static bool is_near(double value, double wanted, double share)
{
    return fabs(value - wanted) <= share * fabs(wanted);
}

/* Steps of 1 s and 3 s, half a second for a round trip: a round of 3.5 s makes two steps. */
static void a_round_takes_as_long_as_its_slowest(void **state)
{
    (void)state;
    struct fit *fit = fit_of("bsp");
    for (uint32_t n = 0; n <= CLUSTER_WORKERS_MAX; n++)
        fit->slowest[n] = 1;
    const struct flow_kind kinds[] = {{1, 1, 0.5, 0, 0}, {1, 3, 0.5, 0, 0}};
    const struct flow flow = flow_of(fit, kinds, 2, &(struct flow_server){0}, 1000);
    assert_true(is_near(flow.steps_per_s, 2 / 3.5, 1e-9));
    assert_true(is_near(flow.wait_share, 3.0 / 7, 1e-9));
    assert_int_equal(flow.slowest, 1);
    free(fit);
}

/* The same for itself each: 1 / 1.5 + 1 / 3.5; with overlap 1 + 1 / 3. */
static void who_waits_for_nobody_is_faster(void **state)
{
    (void)state;
    struct fit *tap = fit_of("tap"), *adsp = fit_of("adsp");
    const struct flow_kind kinds[] = {{1, 1, 0.5, 0, 0}, {1, 3, 0.5, 0, 0}};
    const struct flow_server link = {0};
    assert_true(is_near(flow_of(tap, kinds, 2, &link, 1000).steps_per_s, 1 / 1.5 + 1 / 3.5, 1e-9));
    assert_true(is_near(flow_of(adsp, kinds, 2, &link, 1000).steps_per_s, 1 + 1.0 / 3, 1e-9));
    free(tap);
    free(adsp);
}

/* Ahead by 40 steps at most: in a long run as slow as the slowest, in a short one free. */
static void a_bound_matters_in_long_runs_only(void **state)
{
    (void)state;
    struct fit *ssp = fit_of("ssp"), *tap = fit_of("tap");
    const struct flow_kind kinds[] = {{1, 1, 0, 0, 0}, {1, 4, 0, 0, 0}};
    const struct flow_server link = {0};
    assert_true(is_near(flow_of(ssp, kinds, 2, &link, 1e6).steps_per_s, 0.5, 0.01));
    assert_true(is_near(flow_of(ssp, kinds, 2, &link, 20).steps_per_s,
                        flow_of(tap, kinds, 2, &link, 20).steps_per_s, 1e-9));
    free(ssp);
    free(tap);
}

/* FC²: a link that feeds four workers gives a fortieth no more than those. */
static void a_full_link_bounds_all_workers(void **state)
{
    (void)state;
    struct fit *fit = fit_of("tap");
    const struct flow_server link = {0.25, 0.25};
    const struct flow_kind few = {1, 0.5, 0, 0, 0}, many = {40, 0.5, 0, 0, 0};
    assert_true(is_near(flow_of(fit, &few, 1, &link, 1000).steps_per_s, 1, 0.01));
    assert_true(is_near(flow_of(fit, &many, 1, &link, 1000).steps_per_s, 4, 0.01));
    assert_true(flow_of(fit, &many, 1, &link, 1000).link_share > 0.99);
    free(fit);
}

/* Four workers who just fill a link, by a simulation of them taking turns there: 0.969 of it when
 * their cycles vary by a twentieth, 0.887 when by three tenths. */
static void regular_pushes_leave_less_of_a_link_unused(void **state)
{
    (void)state;
    struct fit *fit = fit_of("tap");
    const struct flow_server link = {0.25, 0.25};
    const struct flow_kind four = {4, 0.5, 0, 0, 0};
    fit->step_deviation = 0.1;
    assert_true(is_near(flow_of(fit, &four, 1, &link, 1000).link_share, 0.969, 0.02));
    fit->step_deviation = 0.6;
    assert_true(is_near(flow_of(fit, &four, 1, &link, 1000).link_share, 0.887, 0.02));
    free(fit);
}

static struct candidate candidate_drawn(struct random *random)
{
    return (struct candidate){
        .name = "drawn",
        .speed_weight = (uint32_t)(500 + random_below(random, 2000)),
        .cores_milli = (uint32_t)(500 + random_below(random, 16000)),
        .price_micro_per_hour = (int64_t)(1000 + random_below(random, 1000000)),
        .bytes_per_s = 1e6 * (1 + (double)random_below(random, 100)),
        .rtt_s = 0.001 * (double)random_below(random, 100),
        .start_s = (double)random_below(random, 90),
        .losses_per_hour = random_unit(random),
    };
}

/* Over seeded clusters of every policy: faster, cheaper and nearer is never worse. */
static void predictions_are_monotone(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 3);
    for (uint32_t p = 0; policy_traits_at(p); p++) {
        struct fit *fit = fit_of(policy_traits_at(p)->name);
        for (uint32_t round = 0; round < 50; round++) {
            struct candidate worse = candidate_drawn(&random), other = candidate_drawn(&random);
            struct candidate better = worse;
            const struct server_place server = {"s", 5000, 1e7};
            better.speed_weight += 100;
            better.price_micro_per_hour -= 500;
            better.rtt_s /= 2;
            const uint32_t count = 1 + (uint32_t)random_below(&random, 20);
            const struct cluster_plan slow = {.parts = {{&worse, count}, {&other, 2}},
                                              .part_count = 2};
            const struct cluster_plan fast = {.parts = {{&better, count}, {&other, 2}},
                                              .part_count = 2};
            struct prediction first, second;
            predict(fit, &slow, &server, &first);
            predict(fit, &fast, &server, &second);
            assert_true(second.seconds.expected <= first.seconds.expected * (1 + 1e-9));
            assert_true(second.cost_micro.expected < first.cost_micro.expected);
            assert_true(first.seconds.low < first.seconds.expected);
            assert_true(first.seconds.expected < first.seconds.high);
            assert_true(first.risk >= 0 && first.risk <= 1);
            assert_true(first.wait_share >= 0 && first.wait_share <= 1);
            assert_true(first.link_share >= 0 && first.link_share <= 1 + 1e-9);
        }
        free(fit);
    }
}

/* 100,000 samples in steps of 10 that take a second: 10,000 s and 5 s of start, at 2 + 1 an hour.
 */
static void one_worker_costs_its_time(void **state)
{
    (void)state;
    struct fit *fit = fit_of("bsp");
    const struct candidate candidate = {.name = "m",
                                        .speed_weight = 1000,
                                        .cores_milli = 1000,
                                        .price_micro_per_hour = 2000000,
                                        .start_s = 5};
    const struct cluster_plan plan = {.parts = {{&candidate, 1}}, .part_count = 1};
    struct prediction told;
    predict(fit, &plan, &(struct server_place){"s", 1000000, 0}, &told);
    assert_true(is_near(told.seconds.expected, 10005, 0.02));
    assert_true(is_near(told.cost_micro.expected, told.seconds.expected / 3600 * 3e6, 1e-9));
    assert_true(told.seconds.high < 1.2 * told.seconds.expected);
    assert_true(is_near(prediction_late_share(&told, told.seconds.high), 0.1, 0.01));
    assert_true(is_near(prediction_late_share(&told, told.seconds.expected), 0.5, 1e-9));
    free(fit);
}

static void losses_take_time_and_past_errors_widen(void **state)
{
    (void)state;
    struct fit *fit = fit_of("tap");
    struct candidate candidate = {.name = "m", .speed_weight = 1000, .cores_milli = 1000};
    const struct cluster_plan plan = {.parts = {{&candidate, 4}}, .part_count = 1};
    const struct server_place server = {"s", 1, 0};
    struct prediction steady, losing, widened;
    predict(fit, &plan, &server, &steady);
    candidate.losses_per_hour = 6;
    predict(fit, &plan, &server, &losing);
    assert_true(losing.seconds.expected > 1.03 * steady.seconds.expected);
    assert_true(losing.risk > 0.99 && steady.risk == 0);
    struct predict_error errors = {0};
    for (int i = 0; i < 50; i++)
        predict_error_add(&errors, 100, 0.1, i % 2 ? 150 : 120);
    struct recommend_job job = fit->job;
    fit_observations(&job, NULL, 0, NULL, fit);
    predict(fit, &plan, &server, &steady);
    fit_observations(&job, NULL, 0, &errors, fit);
    predict(fit, &plan, &server, &widened);
    assert_true(widened.seconds.expected > 1.1 * steady.seconds.expected);
    assert_true(widened.deviation > steady.deviation);
    free(fit);
}

/* A target that is reached at once still trains, and costs, for as long as the job file says. */
static void training_lasts_at_least_so_long(void **state)
{
    (void)state;
    struct fit *fit = fit_of("bsp");
    const struct candidate machine = {
        .name = "m", .speed_weight = 1000, .cores_milli = 1000, .price_micro_per_hour = 3600};
    const struct cluster_plan plan = {.parts = {{&machine, 1}}, .part_count = 1};
    const struct server_place server = {0};
    struct prediction free_to_end, held;
    predict(fit, &plan, &server, &free_to_end);
    fit->job.least_s = 3 * free_to_end.seconds.expected;
    predict(fit, &plan, &server, &held);
    assert_true(is_near(held.seconds.expected, fit->job.least_s, 1e-9));
    assert_true(is_near(held.cost_micro.expected, fit->job.least_s, 1e-9)); /* 1 a second */
    assert_true(held.seconds.low >= fit->job.least_s && held.seconds.high >= held.seconds.low);
    assert_true(held.cost_micro.low <= held.cost_micro.expected);
    free(fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_takes_as_long_as_its_slowest),
        cmocka_unit_test(who_waits_for_nobody_is_faster),
        cmocka_unit_test(a_bound_matters_in_long_runs_only),
        cmocka_unit_test(a_full_link_bounds_all_workers),
        cmocka_unit_test(regular_pushes_leave_less_of_a_link_unused),
        cmocka_unit_test(predictions_are_monotone),
        cmocka_unit_test(one_worker_costs_its_time),
        cmocka_unit_test(training_lasts_at_least_so_long),
        cmocka_unit_test(losses_take_time_and_past_errors_widen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
