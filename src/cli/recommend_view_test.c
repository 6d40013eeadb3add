#include "cli/recommend_view.h"
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
    assert_string_equal(recommend_view_time(arena, &bound), "at most 2m 1s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_is_an_hours_or_the_whole_jobs),
        cmocka_unit_test(the_fields_of_a_recommendation_make_the_job_so),
        cmocka_unit_test(a_trial_is_short_and_stops_whatever_it_has_reached),
        cmocka_unit_test(clusters_and_ranges_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
