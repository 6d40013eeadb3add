#include "learn/epoch_model.h"
#include "learn/plan.h"
#include "learn/scheduler.h"
#include "learn/work_fit.h"
#include "testing/testing.h"

#include <math.h>

#define assert_near(value, expected, within) assert_true(fabs((value) - (expected)) <= (within))

/* Near what LeNet-5 on MNIST does. */
static const struct epoch_model model = {
    .start_s = 0.5,
    .fetch_s = 0.1,
    .compute_s = 2.4,
    .update_s = 0.2,
    .memory_base_mb = 20,
    .core_mb = 1769,
    .loss_form = EPOCH_LOSS_WORK,
    .work = {.bend = 0.55, .spread = 0.75, .gain = 150},
};
static const struct epoch_task task = {
    .space = {16, 256, 64, 256},
    .loss_form = EPOCH_LOSS_WORK,
    .loss_start = 2.3,
    .loss_target = 0.06,
    .price = 0.001,
    .budget_micro = 100000,
    .epoch_max = 40,
};

TEST(four_epochs_tell_the_constants)
{
    struct work_fit fit = {0};
    double loss = 2.3;
    const uint32_t counts[] = {8, 16, 4, 2};
    for (int i = 0; i < 4; i++) {
        const double after = epoch_model_next_loss(&model, counts[i], loss);
        work_fit_add(&fit, counts[i], loss, after);
        loss = after;
    }
    const struct work_fitted fitted = work_fit_solve(&fit);
    assert_near(fitted.bend, 0.55, 1e-9);
    assert_near(fitted.spread, 0.75, 1e-9);
    assert_near(fitted.gain, 150, 1);
    assert_true(fitted.noise < 1e-3);
}

TEST(a_loss_that_rises_has_no_gain)
{
    struct work_fit fit = {0};
    work_fit_add(&fit, 4, 1, 1.2);
    assert_true(work_fit_solve(&fit).gain == 0);
}

static struct epoch_state run(struct scheduler *scheduler)
{
    struct epoch_state state = {.loss = task.loss_start, .left_micro = task.budget_micro};
    while (state.loss > task.loss_target && state.epoch < task.epoch_max && state.left_micro >= 0) {
        const struct epoch_choice choice = scheduler_choose(scheduler, &state);
        state.last = epoch_model_predict(&model, choice, state.loss);
        state.last.cost_micro = epoch_cost_micro(&task, choice, state.last.total_s);
        state.epoch++;
        state.loss = state.last.loss_after;
        state.elapsed_s += state.last.total_s;
        state.left_micro -= state.last.cost_micro;
        scheduler_see(scheduler, &state.last);
    }
    return state;
}

TEST(a_planner_loses_little_on_the_best_number_by_looking_for_it)
{
    double best_s = HUGE_VAL;
    for (uint32_t n = 1; n <= 16; n++) {
        AUTO(scheduler)
        struct scheduler *constant = scheduler_new_constant((struct epoch_choice){n, 256});
        const struct epoch_state end = run(constant);
        if (end.loss <= task.loss_target && end.left_micro >= 0)
            best_s = fmin(best_s, end.elapsed_s);
    }
    AUTO(scheduler) struct scheduler *planner = scheduler_new_planner(&task, NULL);
    const struct epoch_state end = run(planner);
    assert_true(end.loss <= task.loss_target && end.left_micro >= 0);
    if (!(end.elapsed_s < 1.2 * best_s))
        fail_msg("%g s, the best constant %g s", end.elapsed_s, best_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_epochs_tell_the_constants),
        cmocka_unit_test(a_loss_that_rises_has_no_gain),
        cmocka_unit_test(a_planner_loses_little_on_the_best_number_by_looking_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
