#include "learn/planner.h"
#include "learn/scheduler.h"
#include "learn/toy_job.h"
#include "testing/testing.h"

static struct epoch_state run(struct scheduler *scheduler)
{
    struct epoch_state state = {.loss = 1, .left_micro = toy_task.budget_micro};
    while (state.loss > toy_task.loss_target && state.epoch < toy_task.epoch_max &&
           state.left_micro >= 0) {
        toy_step(&state, scheduler_choose(scheduler, &state));
        scheduler_see(scheduler, &state.last);
    }
    return state;
}

TEST(a_planner_that_knows_nothing_comes_near_the_bound)
{
    AUTO(plan)
    struct plan *plan =
        plan_new(&toy_task, (struct plan_options){.candidate_max = 3000, .cell_count = 1000});
    plan_set_model(plan, &toy_model);
    const double budget = 1e-6 * (double)toy_task.budget_micro;
    const double bound_s = plan_make(plan, 1, budget).bound_s;
    const double constant_s = plan_constant(plan, 1, budget, 1e-9).time_s;
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_planner(&toy_task, NULL);
    const struct epoch_state end = run(scheduler);
    assert_true(end.loss <= toy_task.loss_target && end.left_micro >= 0);
    assert_true(end.elapsed_s >= bound_s);
    assert_true(constant_s - end.elapsed_s > 0.9 * (constant_s - bound_s));
}

TEST(the_same_epochs_give_the_same_choices)
{
    AUTO(scheduler) struct scheduler *one = scheduler_new_planner(&toy_task, NULL);
    AUTO(scheduler) struct scheduler *other = scheduler_new_planner(&toy_task, NULL);
    const struct epoch_state first = run(one), second = run(other);
    assert_int_equal(first.left_micro, second.left_micro);
    assert_int_equal(first.epoch, second.epoch);
}

TEST(no_epoch_is_begun_that_the_rest_cannot_pay_for)
{
    AUTO(planner) struct planner *planner = planner_new(&toy_task, NULL);
    struct epoch_state job = {.loss = 1, .left_micro = toy_task.budget_micro};
    for (int i = 0; i < 10; i++) {
        toy_step(&job, planner_look(planner, &job).choice);
        planner_see(planner, &job.last);
    }
    job.loss = 0.0334;
    job.left_micro = 300000;
    const struct plan_outlook outlook = planner_look(planner, &job);
    const double time_s = epoch_model_total_s(&toy_model, outlook.choice);
    assert_true(epoch_cost_micro(&toy_task, outlook.choice, time_s) <= job.left_micro);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planner_that_knows_nothing_comes_near_the_bound),
        cmocka_unit_test(the_same_epochs_give_the_same_choices),
        cmocka_unit_test(no_epoch_is_begun_that_the_rest_cannot_pay_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
