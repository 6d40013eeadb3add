#include "base/random.h"
#include "learn/plan.h"
#include "learn/toy_job.h"
#include "testing/testing.h"

#include <math.h>

static const struct plan_options fine = {.candidate_max = 3000, .cell_count = 1000};

/* Losses from 1 to the target by one schedule, which is told the loss. */
static struct epoch_state run(struct epoch_choice (*choose)(double loss, void *context),
                              void *context)
{
    struct epoch_state state = {.loss = 1, .left_micro = toy_task.budget_micro};
    while (state.loss > toy_task.loss_target && state.epoch < toy_task.epoch_max)
        toy_step(&state, choose(state.loss, context));
    return state;
}

static struct epoch_choice keep(double loss __attribute__((unused)), void *context)
{
    return *(const struct epoch_choice *)context;
}

struct power_law {
    double first, power, memory_mb;
};

static struct epoch_choice follow_power(double loss, void *context)
{
    const struct power_law *law = context;
    return epoch_round(&toy_task.space, law->first * pow(loss, law->power), law->memory_mb);
}

TEST(no_schedule_is_sooner_than_the_bound)
{
    AUTO(plan) struct plan *plan = plan_new(&toy_task, fine);
    plan_set_model(plan, &toy_model);
    const struct plan_outlook outlook = plan_make(plan, 1, 1e-6 * (double)toy_task.budget_micro);
    assert_true(outlook.is_within);
    struct random random;
    random_init(&random, 11);
    uint32_t reached = 0;
    for (int i = 0; i < 400; i++) {
        struct power_law law = {200 + 2800 * random_unit(&random), 0.8 * random_unit(&random),
                                1000 + 1500 * random_unit(&random)};
        const struct epoch_state job = run(follow_power, &law);
        if (job.loss > toy_task.loss_target || job.left_micro < 0)
            continue;
        reached++;
        if (job.elapsed_s < outlook.bound_s)
            fail_msg("schedule %d takes %g s, the bound is %g s", i, job.elapsed_s,
                     outlook.bound_s);
    }
    assert_true(reached > 20);
}

TEST(the_best_constant_is_what_trying_all_of_them_finds)
{
    AUTO(plan) struct plan *plan = plan_new(&toy_task, fine);
    plan_set_model(plan, &toy_model);
    const double budget = 1e-6 * (double)toy_task.budget_micro;
    const struct plan_outlook constant = plan_constant(plan, 1, budget, 1e-9);
    struct epoch_choice choice = constant.choice;
    const struct epoch_state job = run(keep, &choice);
    assert_true(job.left_micro >= 0 && job.loss <= toy_task.loss_target);
    assert_true(fabs(job.elapsed_s - constant.time_s) < 1e-6 * constant.time_s);
    for (uint32_t n = 20; n < 1500; n += 20)
        for (uint32_t m = 1024; m <= 3008; m += 128) {
            choice = (struct epoch_choice){n, m};
            const struct epoch_state other = run(keep, &choice);
            if (other.left_micro >= 0 && other.loss <= toy_task.loss_target)
                assert_true(other.elapsed_s >= job.elapsed_s);
        }
}

TEST(more_budget_never_takes_longer)
{
    AUTO(plan) struct plan *plan = plan_new(&toy_task, fine);
    plan_set_model(plan, &toy_model);
    double before = HUGE_VAL;
    for (double budget = 110; budget < 400; budget += 30) {
        const struct plan_outlook outlook = plan_make(plan, 1, budget);
        assert_true(outlook.is_within && outlook.cost <= budget);
        assert_true(outlook.time_s <= before && outlook.bound_s <= outlook.time_s);
        before = outlook.time_s;
    }
}

TEST(a_budget_too_small_gives_the_cheapest_plan)
{
    AUTO(plan) struct plan *plan = plan_new(&toy_task, fine);
    plan_set_model(plan, &toy_model);
    const struct plan_outlook outlook = plan_make(plan, 1, 5);
    assert_false(outlook.is_within);
    assert_true(outlook.choice.function_count >= 1);
    const struct plan_outlook constant = plan_constant(plan, 1, 5, 0);
    assert_false(constant.is_within);
    assert_true(constant.cost > 5 && constant.cost >= outlook.cost);
}

TEST(the_reserve_is_no_more_than_the_cheapest_way_would_leave)
{
    AUTO(plan) struct plan *plan = plan_new(&toy_task, fine);
    plan_set_model(plan, &toy_model);
    const double cheapest = plan_make(plan, 1, 5).cost;
    const double left = 1.02 * cheapest; /* hardly more */
    struct plan_risk risk = {.time_noise = 0.05, .loss_noise = 0.015, .deviations = 2.5};
    plan_set_risk(plan, risk);
    assert_false(plan_make(plan, 1, left).is_within);
    risk.slack_share = 0.8;
    plan_set_risk(plan, risk);
    const struct plan_outlook outlook = plan_make(plan, 1, left);
    assert_true(outlook.is_within && outlook.cost > cheapest);
    assert_true(outlook.cost <= left - 0.79 * (left - cheapest));
}

TEST(functions_fall_with_the_loss)
{
    AUTO(plan) struct plan *plan = plan_new(&toy_task, fine);
    plan_set_model(plan, &toy_model);
    const uint32_t early = plan_make(plan, 1, 250).choice.function_count;
    const uint32_t late = plan_make(plan, 0.05, 30).choice.function_count;
    assert_true(early > 2 * late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_schedule_is_sooner_than_the_bound),
        cmocka_unit_test(the_best_constant_is_what_trying_all_of_them_finds),
        cmocka_unit_test(more_budget_never_takes_longer),
        cmocka_unit_test(a_budget_too_small_gives_the_cheapest_plan),
        cmocka_unit_test(the_reserve_is_no_more_than_the_cheapest_way_would_leave),
        cmocka_unit_test(functions_fall_with_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
