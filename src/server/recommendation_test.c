/* Which machines for a job. covers recommendation.c, recommendation_advice.c, recommendation_busy.c
 * and their words. covers recommendation_view.c */
#include "server/recommendation_view.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

static const struct candidate candidates[] = {
    {.name = "1c@1.0",
     .speed_weight = 1000,
     .cores_milli = 1000,
     .price_micro_per_hour = 100000,
     .count_max = 8,
     .bytes_per_s = 1e7,
     .start_s = 2},
    {.name = "4c@1.0",
     .speed_weight = 1000,
     .cores_milli = 4000,
     .price_micro_per_hour = 400000,
     .count_max = 2,
     .bytes_per_s = 1e7,
     .start_s = 2},
};

static struct recommendation_request request_of(enum recommend_rule rule)
{
    return (struct recommendation_request){
        .rule = rule,
        .wish = {.budget_micro_per_hour = 1000000},
        .share_milli = RECOMMEND_SHARE_DEFAULT,
        .job = {.signature = {.model = "mlp",
                              .data = "mnist",
                              .policy = "bsp",
                              .parameter_count = 100000,
                              .batch = 32,
                              .rate = 0.01},
                .samples = 600000},
        .is_target_known = true,
        .candidates = candidates,
        .candidate_count = 2,
        .server = {.name = "0.5c@1.0", .price_micro_per_hour = 50000, .bytes_per_s = 1e7},
    };
}

static struct recommendation make(struct arena *arena, const struct recommendation_request *request)
{
    struct recommendation made;
    struct error error;
    ASSERT_OK(recommendation_make(arena, request, &made, &error));
    return made;
}

static const struct cluster_part *chosen_part(const struct recommendation *made)
{
    return &made->choices[made->chosen].plan.parts[0];
}

TEST(the_papers_rules_choose_a_type_and_show_what_the_others_would_be)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_COST_OPT);
    struct recommendation made = make(arena, &request);
    assert_ptr_equal(chosen_part(&made)->candidate, &candidates[0]);
    assert_int_equal(chosen_part(&made)->count, 8); /* 9.5 are paid for, 8 are there */
    assert_int_equal(made.choice_count, 2);
    assert_string_equal(made.advice[0].code, "few-machines");
    assert_non_null(strstr(made.advice[0].text, "asks for 9 workers of 1c@1.0; 8 are on offer"));
    assert_string_equal(made.advice[1].code, "trial-first");
    assert_true(made.trial.is_needed);
    request = request_of(RULE_TIME_OPT);
    made = make(arena, &request);
    assert_ptr_equal(chosen_part(&made)->candidate, &candidates[1]);
    assert_int_equal(chosen_part(&made)->count, 2);
    assert_int_equal(made.choices[made.chosen].price_micro_per_hour, 850000);
}

TEST(clouds_stand_beside_the_markets_lenders)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_COST_OPT);
    const struct candidate both[] = {candidates[0],
                                     {.name = "m5.large",
                                      .source = CANDIDATE_SPOT,
                                      .speed_weight = 1000,
                                      .cores_milli = 2000,
                                      .price_micro_per_hour = 300000,
                                      .count_max = 8,
                                      .bytes_per_s = 1e7,
                                      .start_s = 60}};
    request.candidates = both;
    const struct recommendation made = make(arena, &request);
    assert_int_equal(made.choice_count, 2);
    bool is_there[CANDIDATE_SOURCE_COUNT] = {0};
    for (size_t i = 0; i < made.choice_count; i++)
        is_there[made.choices[i].plan.parts[0].candidate->source] = true;
    assert_true(is_there[CANDIDATE_MARKET] && is_there[CANDIDATE_SPOT]);
}

TEST(a_full_link_bounds_the_workers_of_scala_opt)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_SCALA_OPT);
    request.candidate_count = 1;
    request.job.signature.parameter_count = 10000000; /* 40 MB a push over 10 MB/s */
    const struct recommendation slow = make(arena, &request);
    assert_in_range(chosen_part(&slow)->count, 1, 3);
    request.server.bytes_per_s = 1e9;
    const struct recommendation fast = make(arena, &request);
    assert_int_equal(chosen_part(&fast)->count, 8);
}

TEST(auto_keeps_to_the_wish_and_says_what_it_does_not_know)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_AUTO);
    request.wish.kind = WISH_FASTEST;
    const struct recommendation made = make(arena, &request);
    const struct choice *chosen = &made.choices[made.chosen];
    assert_true(chosen->price_micro_per_hour <= 1000000);
    assert_true(chosen->prediction.seconds.low <= chosen->prediction.seconds.expected);
    assert_true(chosen->prediction.seconds.expected <= chosen->prediction.seconds.high);
    assert_true(made.trial.is_needed);
    bool is_told = false;
    for (size_t i = 0; i < made.advice_count; i++)
        is_told = is_told || strcmp(made.advice[i].code, "trial-first") == 0;
    assert_true(is_told);
    for (size_t i = 1; i < made.choice_count; i++)
        assert_true(made.choices[i].prediction.seconds.expected >=
                    made.choices[i - 1].prediction.seconds.expected);
}

static const char *advice_of(const struct recommendation *made, const char *code)
{
    for (size_t i = 0; i < made->advice_count; i++)
        if (strcmp(made->advice[i].code, code) == 0)
            return made->advice[i].text;
    return NULL;
}

TEST(machines_that_are_busy_are_named_where_they_would_do_better)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_AUTO);
    struct busy_kind busy = {.candidate = candidates[0], .since_ms = 1000, .until_ms = 661000};
    busy.candidate.name = "4c@2.0";
    busy.candidate.speed_weight = 2000;
    busy.candidate.cores_milli = 4000;
    busy.candidate.count_max = 1;
    request.busy = &busy;
    request.busy_count = 1;
    request.now_ms = 61000;
    struct recommendation made = make(arena, &request);
    const char *told = advice_of(&made, "busy-better");
    assert_non_null(told);
    assert_non_null(strstr(told, "1 x 4c@2.0 would be better, but is busy: leased for 1m "));
    assert_non_null(strstr(told, " now, for 10m "));
    assert_ptr_equal(chosen_part(&made)->candidate, &candidates[0]); /* what can be had */
    request.wish.deadline_s = 300;                                   /* it is not free before */
    request.job.samples = 60000;
    made = make(arena, &request);
    assert_null(advice_of(&made, "busy-better"));
    request.wish.deadline_s = 0;
    busy.candidate.price_micro_per_hour = 9000000; /* faster, but not cheaper */
    made = make(arena, &request);
    assert_null(advice_of(&made, "busy-better"));
}

TEST(what_cannot_be_is_refused_with_the_nearest_that_can)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation made;
    struct error error;
    struct recommendation_request request = request_of(RULE_COST_OPT);
    request.wish.budget_micro_per_hour = 60000;
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "150000"));
    request.rule = RULE_AUTO;
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "0.15"));
    request.candidate_count = 0;
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_NOT_FOUND);
    request.rule = RULE_COST_OPT;
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_NOT_FOUND);
}

TEST(every_advice_has_words)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    for (int i = 0; i < ADVICE_COUNT; i++) {
        const struct advice advice = {(enum advice_code)i, 0.5};
        assert_true(strlen(recommendation_advice_text(arena, &advice)) > 20);
    }
}

TEST(the_answer_has_the_fields_that_make_the_job_so)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct recommendation_request request = request_of(RULE_TIME_OPT);
    const struct recommendation made = make(arena, &request);
    const struct job_signature signature = {"whole", "task"};
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json, 1 << 20);
    json_writer_init(&writer, &json);
    recommendation_write(
        &writer, &(struct recommendation_view){&request, &made, &signature, (struct text){0}, 1});
    const char *shown = buffer_string(&json);
    assert_non_null(strstr(shown, "\"rule\":\"time-opt\""));
    assert_non_null(
        strstr(shown, "\"job\":{\"num_nodes\":2,\"resources\":{\"cpus\":\"4\"},\"market\":{"
                      "\"max_hourly_cost\":\"1.000000\",\"min_speed\":0.95},\"sync\":{\"policy\":"
                      "\"bsp\"}}"));
    assert_non_null(strstr(shown, "\"catalogue_date\":null"));
}

TEST(a_job_keeps_to_the_lesser_of_the_wish_and_its_own_limits)
{
    struct recommendation_request request = request_of(RULE_AUTO);
    const struct choice choice = {.price_micro_per_hour = 360000}; /* 100 a second */
    request.own = (struct recommendation_limits){.max_total_micro = 1000000, .max_run_ms = 180000};
    struct recommendation_limits limits = recommendation_limits_of(&request, &choice);
    assert_int_equal(limits.max_hourly_micro, 1000000);
    assert_int_equal(limits.max_total_micro, 0); /* as it is */
    assert_int_equal(limits.max_run_ms, 0);
    request.wish.budget_micro = 10000;
    limits = recommendation_limits_of(&request, &choice);
    assert_int_equal(limits.max_total_micro, 10000);
    assert_int_equal(limits.max_run_ms, 90000); /* what it pays for, or it would never start */
    request.wish.deadline_s = 60;
    assert_int_equal(recommendation_limits_of(&request, &choice).max_run_ms, 60000);
    request.wish.budget_micro = 5000000;
    request.wish.deadline_s = 600;
    limits = recommendation_limits_of(&request, &choice);
    assert_int_equal(limits.max_total_micro, 1000000);
    assert_int_equal(limits.max_run_ms, 180000);
}

TEST(a_job_file_that_ends_it_too_early_is_told)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_AUTO);
    struct recommendation made = make(arena, &request);
    const double seconds = made.choices[made.chosen].prediction.seconds.expected;
    request.own.max_run_ms = (int64_t)(1000 * seconds * 2);
    made = make(arena, &request);
    assert_null(advice_of(&made, "run-time-short"));
    request.own.max_run_ms = (int64_t)(1000 * seconds / 10);
    made = make(arena, &request);
    assert_non_null(strstr(advice_of(&made, "run-time-short"), "cut off at about 10 %"));
}

TEST(a_target_that_nobody_reached_is_no_reason_to_refuse)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommendation_request request = request_of(RULE_AUTO);
    struct recommendation made;
    struct error error;
    request.wish.deadline_s = 3;
    request.wish.budget_micro = 1;
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_EXHAUSTED);
    request.is_target_known = false;
    made = make(arena, &request);
    assert_non_null(advice_of(&made, "deadline-unknown"));
    assert_non_null(advice_of(&made, "budget-unknown"));
    assert_non_null(advice_of(&made, "target-unknown"));
    assert_true(made.choices[made.chosen].prediction.seconds.low == 0);
    assert_true(made.choices[made.chosen].prediction.seconds.high > 3);
    request.wish.deadline_s = 1; /* the start takes two */
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "the start takes 2.0 s"));
    request.wish.deadline_s = 3;
    request.least_s = 5;
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "min_time take 7.0 s"));
    request.wish.deadline_s = 1e6;
    request.wish.budget_micro = 0;
    made = make(arena, &request);
    assert_null(advice_of(&made, "deadline-unknown"));
    request.wish.budget_micro_per_hour = 60000; /* of that one is sure */
    ASSERT_FAILS(recommendation_make(arena, &request, &made, &error), ERROR_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_papers_rules_choose_a_type_and_show_what_the_others_would_be),
        cmocka_unit_test(clouds_stand_beside_the_markets_lenders),
        cmocka_unit_test(a_full_link_bounds_the_workers_of_scala_opt),
        cmocka_unit_test(auto_keeps_to_the_wish_and_says_what_it_does_not_know),
        cmocka_unit_test(machines_that_are_busy_are_named_where_they_would_do_better),
        cmocka_unit_test(what_cannot_be_is_refused_with_the_nearest_that_can),
        cmocka_unit_test(every_advice_has_words),
        cmocka_unit_test(a_job_keeps_to_the_lesser_of_the_wish_and_its_own_limits),
        cmocka_unit_test(a_job_file_that_ends_it_too_early_is_told),
        cmocka_unit_test(a_target_that_nobody_reached_is_no_reason_to_refuse),
        cmocka_unit_test(the_answer_has_the_fields_that_make_the_job_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
