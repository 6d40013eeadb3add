/* What is recommended, in words. covers recommend_explain.c */
#include "cli/recommend_explain.h"
#include "testing/testing.h"

#include <string.h>

static struct recommend_budget budget_of(const char *text)
{
    struct recommend_budget budget;
    struct error error;
    ASSERT_OK(recommend_budget_read(text_of(text), &budget, &error));
    return budget;
}

TEST(a_budget_is_an_hours_or_the_whole_jobs)
{
    struct recommend_budget budget = budget_of("2/h");
    assert_true(budget.micro_per_hour == 2000000 && budget.micro == 0);
    budget = budget_of("0.5");
    assert_true(budget.micro_per_hour == 0 && budget.micro == 500000 && !budget.is_dollars);
    budget = budget_of("$2/h");
    assert_true(budget.micro_per_hour == 2000000 && budget.is_dollars);
    struct error error;
    ASSERT_FAILS(recommend_budget_read(TEXT("$"), &budget, &error), ERROR_INVALID);
    ASSERT_FAILS(recommend_budget_read(TEXT("0/h"), &budget, &error), ERROR_INVALID);
    ASSERT_FAILS(recommend_budget_read(TEXT("two"), &budget, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "2/h, 2 or $2/h"));
    ASSERT_FAILS(recommend_budget_read(TEXT("/h"), &budget, &error), ERROR_INVALID);
}

TEST(the_fields_of_a_recommendation_make_the_job_so)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec = {.num_nodes = 3, .num_nodes_max = 9};
    struct error error;
    const struct api_job_fields fields = {.num_nodes = 2,
                                          .resources = {TEXT("1.5+")},
                                          .market = {.max_hourly_cost = TEXT("2.500000"),
                                                     .max_total_cost = TEXT("0.000300"),
                                                     .max_run_time = TEXT("90s"),
                                                     .min_speed = 0.95},
                                          .sync = {TEXT("pace")}};
    spec.market.max_run_time_ms = 3600000;
    spec.market.expected_run_time_ms = 1800000;
    ASSERT_OK(recommend_apply(arena, &fields, &spec, &error));
    assert_int_equal(spec.num_nodes, 2);
    assert_int_equal(spec.num_nodes_max, 0);
    assert_int_equal(spec.resources.cpus_milli.value, 1500);
    assert_true(spec.resources.cpus_milli.is_at_least);
    assert_int_equal(spec.market.min_speed_milli, 950);
    assert_int_equal(spec.market.max_hourly_cost_micro, 2500000);
    assert_int_equal(spec.market.max_total_cost_micro, 300);
    assert_int_equal(spec.market.max_run_time_ms, 90000);
    assert_int_equal(spec.market.expected_run_time_ms, 0); /* it was for a longer run */
    assert_string_equal(recommend_view_limits(arena, &fields.market),
                        ", market.max_hourly_cost: 2.500000, market.max_total_cost: 0.000300, "
                        "market.max_run_time: 90s");
    assert_true(text_is(spec.sync.policy, "pace"));
    ASSERT_FAILS(recommend_apply(arena, &(struct api_job_fields){0}, &spec, &error), ERROR_INVALID);
}

TEST(a_trial_is_short_and_stops_whatever_it_has_reached)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec = {.name = TEXT("digits"),
                            .train = {.epochs = 100, .target = {.accuracy = 0.9}},
                            .market = {.max_run_time_ms = 3600000}};
    recommend_make_trial(arena, &(struct api_trial){.seconds = 20}, &spec);
    assert_true(text_is(spec.name, "digits-trial"));
    assert_int_equal(spec.train.epochs, 100);
    assert_true(spec.train.target.accuracy == 0);
    assert_int_equal(spec.market.max_run_time_ms, 20000);
    recommend_make_trial(arena, &(struct api_trial){.seconds = 0.5}, &spec);
    assert_in_range(spec.market.max_run_time_ms, 5000, 10000); /* long enough to see steps */
}

TEST(clusters_and_ranges_read_well)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_cluster_workers workers[] = {{.type = TEXT("1c@1.0"), .count = 2},
                                            {.type = TEXT("4c@0.9"), .count = 1}};
    const struct api_cluster cluster = {.workers = {workers, 2}};
    assert_string_equal(recommend_view_workers(arena, &cluster), "2 x 1c@1.0 + 1 x 4c@0.9");
    const struct api_seconds_range range = {40.2, 65.4, 121};
    assert_string_equal(recommend_view_time(arena, &range), "1m 5s (40s to 2m 1s)");
    const struct api_seconds_range bound = {0, 65.4, 121};
    assert_string_equal(recommend_view_time(arena, &bound), "1m 5s (at most 2m 1s)");
}

TEST(machines_of_clouds_are_no_lenders_and_what_starts_them_is_named)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct api_cluster_workers workers = {
        .type = TEXT("m5.large"), .kind = TEXT("ec2"), .count = 3};
    struct api_cluster cluster = {.workers = {&workers, 1}};
    ASSERT_FAILS(recommend_check_lenders(arena, &cluster, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "souk cloud start m5.large --count 3"));
    workers.kind = TEXT("function");
    ASSERT_FAILS(recommend_check_lenders(arena, &cluster, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "souk function train"));
    cluster.job.num_nodes = 3;
    ASSERT_OK(recommend_check_lenders(arena, &cluster, &error));
}

TEST(an_explanation_has_figures_that_add_up)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_cluster_workers workers[] = {
        {.type = TEXT("1c@1.0"), .count = 1, .step_s = 0.002, .push_s = 0.01, .runs = 1},
        {.type = TEXT("4c@0.9"), .count = 1, .step_s = 1.5, .push_s = 0.01}};
    struct api_cluster cluster = {.workers = {workers, 1},
                                  .figures = {.samples = 32000,
                                              .batch = 16,
                                              .steps_per_push = 1,
                                              .compute_steps_per_s = 500,
                                              .steps_per_s = 400,
                                              .loss_factor = 1,
                                              .correction = 1,
                                              .start_s = 3,
                                              .work_s = 5}};
    assert_string_equal(
        recommend_explain_step(arena, &workers[0]),
        "1c@1.0: 2 ms, as 1 run of this model showed there; a push and its answer 10 ms");
    assert_string_equal(recommend_explain_step(arena, &workers[1]),
                        "4c@0.9: 1.5 s, reckoned from its speed, for no run of this model was "
                        "there; a push and its answer 10 ms");
    assert_string_equal(recommend_explain_speed(arena, &cluster),
                        "1 worker computes 500 steps a second; beside a push every 1 step and "
                        "waiting 400 are left, 80 %");
    assert_string_equal(recommend_explain_work(arena, &cluster.figures),
                        "2000 steps at 400 a second are 5.0s");
    cluster.figures.correction = 1.2;
    cluster.figures.work_s = 6;
    assert_string_equal(
        recommend_explain_work(arena, &cluster.figures),
        "2000 steps at 400 a second are 5.0s, x 1.20 by what past predictions were off: 6.0s");
    cluster.figures.least_s = cluster.figures.work_s = 8;
    assert_string_equal(recommend_explain_work(arena, &cluster.figures),
                        "2000 steps at 400 a second are 5.0s, x 1.20 by what past predictions were "
                        "off; it trains for 8.0s all the same (min_time)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_is_an_hours_or_the_whole_jobs),
        cmocka_unit_test(the_fields_of_a_recommendation_make_the_job_so),
        cmocka_unit_test(a_trial_is_short_and_stops_whatever_it_has_reached),
        cmocka_unit_test(clusters_and_ranges_read_well),
        cmocka_unit_test(machines_of_clouds_are_no_lenders_and_what_starts_them_is_named),
        cmocka_unit_test(an_explanation_has_figures_that_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
