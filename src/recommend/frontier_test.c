/* covers frontier_search.c, frontier_pick.c, frontier_advice.c, trial.c */
#include "base/random.h"
#include "recommend/frontier.h"
#include "recommend/trial.h"
#include "testing/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 12, WORKERS = 16 };

struct fixture {
    struct arena *arena;
    struct fit *fit;
    char names[KINDS][16];
    struct candidate candidates[KINDS];
    struct frontier_request request;
};

static struct fit *fit_of(const char *policy, double step_s)
{
    struct recommend_job job = {
        .signature = {.model = "m", .data = "d", .parameter_count = 100000, .batch = 10},
        .samples = 1e6,
    };
    snprintf(job.signature.policy, sizeof(job.signature.policy), "%s", policy);
    struct observation seen = {.signature = job.signature, .kind_count = 1, .worker_count = 1};
    seen.kinds[0] = (struct observed_kind){
        .name = "m", .speed_weight = 1000, .cores_milli = 1000, .steps = 1000, .step_s = step_s};
    struct fit *fit = malloc(sizeof(*fit));
    assert_non_null(fit);
    fit_observations(&job, &seen, 1, NULL, fit);
    return fit;
}

static void fixture_open(struct fixture *fixture, const char *policy, uint64_t seed)
{
    struct random random;
    *fixture = (struct fixture){.arena = arena_new(0), .fit = fit_of(policy, 0.5)};
    random_init(&random, seed);
    for (uint32_t i = 0; i < KINDS; i++) {
        const uint32_t cores = 1 + (uint32_t)random_below(&random, 16);
        snprintf(fixture->names[i], sizeof(fixture->names[i]), "kind%u", i);
        fixture->candidates[i] = (struct candidate){
            .name = fixture->names[i],
            .speed_weight = 700 + (uint32_t)random_below(&random, 700),
            .cores_milli = 1000 * cores,
            .price_micro_per_hour = cores * (int64_t)(20000 + random_below(&random, 30000)),
            .bytes_per_s = 1e8,
            .rtt_s = 0.01,
            .start_s = i % 2 ? 60 : 2,
            .count_max = i % 3 ? 0 : 3,
        };
    }
    fixture->request = (struct frontier_request){
        .candidates = fixture->candidates,
        .candidate_count = KINDS,
        .fits = fixture->fit,
        .fit_count = 1,
        .server = {"s", 30000, 5e7},
        .wish = {.kind = WISH_CHEAPEST, .worker_max = WORKERS},
    };
}

static void fixture_close(struct fixture *fixture)
{
    free(fixture->fit);
    arena_free(fixture->arena);
}

static const char *const policies[] = {"bsp", "tap", "adsp", "pace"};

static void no_choice_is_slower_and_dearer_than_another(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture fixture;
        struct frontier frontier;
        struct error error;
        fixture_open(&fixture, policies[seed % 4], seed);
        ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
        assert_true(frontier.choice_count > 1 && frontier.considered > KINDS);
        for (size_t i = 1; i < frontier.choice_count; i++) {
            const struct prediction *faster = &frontier.choices[i - 1].prediction;
            const struct prediction *cheaper = &frontier.choices[i].prediction;
            assert_true(faster->seconds.expected < cheaper->seconds.expected);
            assert_true(faster->cost_micro.expected > cheaper->cost_micro.expected);
            assert_in_range(cluster_plan_workers(&frontier.choices[i].plan), 1, WORKERS);
        }
        fixture_close(&fixture);
    }
}

static double best_alone(const struct fixture *fixture, const struct wish *wish)
{
    double best = HUGE_VAL;
    for (uint32_t i = 0; i < KINDS; i++)
        for (uint32_t n = 1; n <= WORKERS; n++) {
            const struct candidate *candidate = &fixture->candidates[i];
            const struct cluster_plan plan = {.parts = {{candidate, n}}, .part_count = 1};
            struct prediction told;
            const int64_t price = cluster_plan_price_micro_per_hour(&plan) +
                                  fixture->request.server.price_micro_per_hour;
            if ((candidate->count_max > 0 && n > candidate->count_max) ||
                (wish->budget_micro_per_hour > 0 && price > wish->budget_micro_per_hour))
                continue;
            predict(fixture->fit, &plan, &fixture->request.server, &told);
            best = fmin(best, wish->kind == WISH_CHEAPEST ? told.cost_micro.expected
                                                          : told.seconds.expected);
        }
    return best;
}

/* By trying all of one kind; mixtures may only be better, and two of a bucket as fast. */
static void the_choice_is_no_worse_than_the_best_by_trying_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture fixture;
        struct frontier frontier;
        struct error error;
        fixture_open(&fixture, policies[seed % 4], seed);
        struct wish *wish = &fixture.request.wish;
        ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
        assert_true(frontier.chosen.prediction.cost_micro.expected <=
                    best_alone(&fixture, wish) * (1 + 1e-9));
        wish->kind = WISH_FASTEST;
        wish->budget_micro_per_hour = 900000;
        ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
        assert_true(frontier.chosen.price_micro_per_hour <= 900000);
        assert_true(frontier.chosen.prediction.seconds.expected <=
                    best_alone(&fixture, wish) * 1.016);
        fixture_close(&fixture);
    }
}

static void a_deadline_is_kept_with_room_to_spare(void **state)
{
    (void)state;
    struct fixture fixture;
    struct frontier frontier;
    struct error error;
    fixture_open(&fixture, "tap", 5);
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    const double cheapest_s = frontier.chosen.prediction.seconds.expected;
    const double cheapest = frontier.chosen.prediction.cost_micro.expected;
    const double fastest_s = frontier.choices[0].prediction.seconds.expected;
    const double deadline_s = sqrt(cheapest_s * fastest_s);
    fixture.request.wish.deadline_s = deadline_s;
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    const struct prediction *told = &frontier.chosen.prediction;
    assert_true(prediction_late_share(told, deadline_s) <= 0.2);
    assert_true(told->cost_micro.expected > cheapest);
    fixture.request.wish.deadline_s = 0.5 * fastest_s;
    ASSERT_FAILS(frontier_find(fixture.arena, &fixture.request, &frontier, &error),
                 ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "the fastest takes"));
    fixture.request.wish =
        (struct wish){.kind = WISH_FASTEST, .budget_micro = (int64_t)(1.5 * cheapest)};
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_true(frontier.chosen.prediction.cost_micro.expected <= 1.5 * cheapest);
    fixture_close(&fixture);
}

static void what_cannot_be_had_is_said_with_the_nearest_that_can(void **state)
{
    (void)state;
    struct fixture fixture;
    struct frontier frontier;
    struct error error;
    fixture_open(&fixture, "bsp", 1);
    fixture.request.wish.budget_micro_per_hour = 10;
    ASSERT_FAILS(frontier_find(fixture.arena, &fixture.request, &frontier, &error),
                 ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "an hour do"));
    fixture.request.wish = (struct wish){.kind = WISH_CHEAPEST, .budget_micro = 1};
    ASSERT_FAILS(frontier_find(fixture.arena, &fixture.request, &frontier, &error),
                 ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "the cheapest takes"));
    fixture.request.wish = (struct wish){.kind = WISH_FASTEST};
    ASSERT_FAILS(frontier_find(fixture.arena, &fixture.request, &frontier, &error), ERROR_INVALID);
    fixture.request.candidate_count = 0;
    ASSERT_FAILS(frontier_find(fixture.arena, &fixture.request, &frontier, &error),
                 ERROR_NOT_FOUND);
    fixture_close(&fixture);
}

static const struct advice *advice_find(const struct frontier *frontier, enum advice_code code)
{
    for (size_t i = 0; i < frontier->advice_count; i++)
        if (frontier->advice[i].code == code)
            return &frontier->advice[i];
    return NULL;
}

/* Models of 400 KB over 100 KB/s for steps of half a second: the second worker only waits. */
static void one_machine_is_best_behind_a_narrow_link(void **state)
{
    (void)state;
    struct fixture fixture;
    struct frontier frontier;
    struct error error;
    fixture_open(&fixture, "bsp", 1);
    fixture.request.server.bytes_per_s = 1e5;
    fixture.request.wish = (struct wish){.kind = WISH_CHEAPEST};
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_int_equal(cluster_plan_workers(&frontier.chosen.plan), 1);
    assert_non_null(advice_find(&frontier, ADVICE_ONE_MACHINE));
    assert_true(advice_find(&frontier, ADVICE_ONE_MACHINE)->figure > 1);
    fixture_close(&fixture);
}

/* Cheapest or fastest, under one policy or the best of two, behind links of all widths. */
static void a_link_is_called_full_only_where_more_workers_bring_nothing(void **state)
{
    (void)state;
    uint32_t said = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct fixture fixture;
        struct frontier frontier;
        struct error error;
        fixture_open(&fixture, policies[seed % 4], seed);
        struct fit *other = fit_of("diloco", 0.5);
        for (uint32_t n = 1; n <= CLUSTER_WORKERS_MAX; n++) /* who learns more from more */
            fixture.fit->samples_expected[n] /= sqrt(n);
        struct fit *both = calloc(2, sizeof(*both));
        assert_non_null(both);
        both[0] = *fixture.fit;
        both[1] = *other;
        fixture.request.fits = both;
        fixture.request.fit_count = 1 + seed % 2;
        fixture.request.wish.kind = seed % 3 ? WISH_CHEAPEST : WISH_FASTEST;
        fixture.request.server.bytes_per_s = 1e5 * (double)(1 << seed % 8);
        ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
        const struct advice *advice = advice_find(&frontier, ADVICE_LINK_FULL);
        for (size_t i = 0; i < frontier.choice_count && advice; i++)
            if (cluster_plan_workers(&frontier.choices[i].plan) > advice->figure)
                assert_true(frontier.choices[i].prediction.seconds.expected >
                            0.94 * frontier.chosen.prediction.seconds.expected);
        said += advice != NULL;
        free(both);
        free(other);
        fixture_close(&fixture);
    }
    assert_true(said > 0);
}

static bool is_matched(const struct frontier *frontier, const struct prediction *told)
{
    const double bucket = 1.012; /* what differs by less in time counts as equally fast */
    for (size_t i = 0; i < frontier->choice_count; i++) {
        const struct prediction *other = &frontier->choices[i].prediction;
        if (other->seconds.expected <= bucket * told->seconds.expected &&
            other->cost_micro.expected <= (1 + 1e-9) * told->cost_micro.expected)
            return true;
    }
    return false;
}

static void of_few_workers_every_mixture_is_weighed(void **state)
{
    (void)state;
    enum { FEW = 8 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture fixture;
        struct frontier frontier;
        struct error error;
        fixture_open(&fixture, "tap", seed);
        fixture.candidates[0].count_max = 0;
        fixture.request.candidate_count = 2;
        fixture.request.wish.worker_max = FEW;
        ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
        for (uint32_t left = 1; left < FEW; left++)
            for (uint32_t right = 1; left + right <= FEW; right++) {
                const struct cluster_plan plan = {
                    .parts = {{&fixture.candidates[0], left}, {&fixture.candidates[1], right}},
                    .part_count = 2};
                struct prediction told;
                predict(fixture.fit, &plan, &fixture.request.server, &told);
                assert_true(is_matched(&frontier, &told));
            }
        fixture_close(&fixture);
    }
}

static void functions_spot_and_trials_are_spoken_of(void **state)
{
    (void)state;
    struct fixture fixture;
    struct frontier frontier;
    struct error error;
    fixture_open(&fixture, "tap", 1);
    fixture.candidates[0] =
        candidate_of_function(&(struct candidate_function){.name = "lambda",
                                                           .memory_mb = 1769,
                                                           .speed_weight = 800,
                                                           .price_micro_per_gb_s = 16.7,
                                                           .lifetime_s = 900,
                                                           .start_s = 1,
                                                           .bytes_per_s = 1e5,
                                                           .rtt_s = 0.05});
    for (uint32_t i = 1; i < KINDS; i++)
        fixture.candidates[i].losses_per_hour = 0.5;
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_non_null(advice_find(&frontier, ADVICE_FUNCTION_DEAR));
    assert_non_null(advice_find(&frontier, ADVICE_FUNCTION_SLOW));
    assert_non_null(advice_find(&frontier, ADVICE_SPOT_RISK));
    assert_null(advice_find(&frontier, ADVICE_TRIAL_FIRST));
    fixture.request.candidate_count = 1; /* of functions alone none is dearer than functions */
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_null(advice_find(&frontier, ADVICE_FUNCTION_DEAR));
    fixture.request.candidate_count = KINDS;
    const struct recommend_job job = fixture.fit->job;
    fit_observations(&job, NULL, 0, NULL, fixture.fit);
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_non_null(advice_find(&frontier, ADVICE_TRIAL_FIRST));
    for (int i = 0; i < ADVICE_COUNT; i++)
        assert_non_null(advice_code_name((enum advice_code)i));
    fixture_close(&fixture);
}

static void the_safest_is_no_spot_machine(void **state)
{
    (void)state;
    struct fixture fixture;
    struct frontier frontier;
    struct error error;
    fixture_open(&fixture, "tap", 2);
    fixture.candidates[1] = fixture.candidates[0];
    fixture.candidates[1].name = fixture.names[1];
    fixture.candidates[1].price_micro_per_hour = fixture.candidates[0].price_micro_per_hour * 2 / 3;
    fixture.candidates[1].losses_per_hour = 1;
    fixture.candidates[1].start_s = fixture.candidates[0].start_s + 1;
    fixture.request.candidate_count = 2;
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_ptr_equal(frontier.chosen.plan.parts[0].candidate, &fixture.candidates[1]);
    fixture.request.wish.kind = WISH_SAFEST;
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    assert_ptr_equal(frontier.chosen.plan.parts[0].candidate, &fixture.candidates[0]);
    assert_int_equal(frontier.chosen.plan.part_count, 1);
    assert_string_equal(wish_kind_name(WISH_SAFEST), "safest");
    fixture_close(&fixture);
}

static void a_trial_costs_a_small_share(void **state)
{
    (void)state;
    struct fixture fixture;
    struct frontier frontier;
    struct trial_plan trial;
    struct error error;
    fixture_open(&fixture, "tap", 3);
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    trial_plan_of(&fixture.request, &frontier, 0.05, &trial);
    assert_false(trial.is_needed);
    assert_true(trial.steps >= 5);
    assert_true(trial.share > 0 && trial.share <= 0.05);
    const struct recommend_job job = fixture.fit->job;
    fit_observations(&job, NULL, 0, NULL, fixture.fit);
    ASSERT_OK(frontier_find(fixture.arena, &fixture.request, &frontier, &error));
    trial_plan_of(&fixture.request, &frontier, 0.05, &trial);
    assert_true(trial.is_needed);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_choice_is_slower_and_dearer_than_another),
        cmocka_unit_test(the_choice_is_no_worse_than_the_best_by_trying_all),
        cmocka_unit_test(a_deadline_is_kept_with_room_to_spare),
        cmocka_unit_test(what_cannot_be_had_is_said_with_the_nearest_that_can),
        cmocka_unit_test(one_machine_is_best_behind_a_narrow_link),
        cmocka_unit_test(a_link_is_called_full_only_where_more_workers_bring_nothing),
        cmocka_unit_test(of_few_workers_every_mixture_is_weighed),
        cmocka_unit_test(functions_spot_and_trials_are_spoken_of),
        cmocka_unit_test(the_safest_is_no_spot_machine),
        cmocka_unit_test(a_trial_costs_a_small_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
