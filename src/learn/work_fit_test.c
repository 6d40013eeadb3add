#include "base/random.h"
#include "learn/epoch_model.h"
#include "learn/plan.h"
#include "learn/scheduler.h"
#include "learn/work_fit.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>

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
    .work = {.bend = 0.65, .spread = 1, .gain = 900, .start = 3.3, .noise = 0.035},
};
static const struct epoch_task task = {
    .space = {16, 256, 64, 256},
    .loss_form = EPOCH_LOSS_WORK,
    .loss_start = 3.3,
    .loss_target = 0.045,
    .price = 0.001,
    .budget_micro = 200000,
    .epoch_max = 40,
};

/* Runs of these numbers of functions, each over all epochs. */
static void add_run(struct work_fit *fit, const uint32_t *counts, uint32_t epochs, double noise)
{
    struct random random;
    random_init(&random, counts[0]);
    struct epoch_state state = {.loss = task.loss_start};
    double work = 1;
    for (uint32_t i = 0; i < epochs; i++) {
        work += work_of_epoch(&model.work, counts[i]);
        const double loss = (work_signal(&model.work, work) + work_noise(&model.work, counts[i])) *
                            exp(noise * random_normal(&random));
        work_fit_add(fit, counts[i], state.loss, loss);
        state.loss = loss;
    }
}

TEST(runs_that_differ_tell_signal_and_noise)
{
    struct work_fit fit = {.loss_scale = task.loss_start - task.loss_target};
    add_run(&fit, (const uint32_t[]){2, 2, 2, 2}, 4, 0);
    add_run(&fit, (const uint32_t[]){1, 4, 16, 16}, 4, 0);
    add_run(&fit, (const uint32_t[]){8, 8, 8, 8}, 4, 0);
    const struct work_fitted fitted = work_fit_solve(&fit);
    assert_near(fitted.spread, 1, 0.101);
    assert_near(fitted.noise, 0.035, 0.006);
    assert_true(fitted.deviation < 0.02);
    const uint32_t other[] = {4, 4, 16};
    double work = 1, truth = 1;
    for (int i = 0; i < 3; i++) {
        work += work_of_epoch(&fitted, other[i]);
        truth += work_of_epoch(&model.work, other[i]);
        assert_near((work_signal(&fitted, work) + work_noise(&fitted, other[i])) /
                        (work_signal(&model.work, truth) + work_noise(&model.work, other[i])),
                    1, 0.04);
    }
    assert_near(work_fit_reached(&fit, &fitted) / (1 + 4 * work_of_epoch(&fitted, 8)), 1, 0.05);
}

TEST(chance_in_losses_is_told_from_the_job)
{
    struct work_fit fit = {.loss_scale = task.loss_start - task.loss_target};
    add_run(&fit, (const uint32_t[]){2, 2, 2, 2, 2, 2}, 6, 0.05);
    add_run(&fit, (const uint32_t[]){1, 4, 16, 16, 16, 16}, 6, 0.05);
    add_run(&fit, (const uint32_t[]){8, 8, 8, 8, 8, 8}, 6, 0.05);
    const struct work_fitted fitted = work_fit_solve(&fit);
    assert_near(fitted.deviation, 0.05, 0.03);
    assert_near(fitted.noise, 0.035, 0.015);
}

TEST(a_loss_that_rises_has_no_gain)
{
    struct work_fit fit = {.loss_scale = 1};
    work_fit_add(&fit, 4, 1, 1.2);
    assert_true(work_fit_solve(&fit).gain == 0);
}

TEST(the_oldest_runs_are_forgotten)
{
    struct work_fit *fit = calloc(1, sizeof(*fit));
    fit->loss_scale = 3.2;
    const uint32_t counts[] = {3, 3, 3};
    for (int i = 0; i < 1000; i++)
        add_run(fit, counts, 3, 0);
    assert_true(fit->count <= WORK_FIT_EPOCHS_MAX && fit->count > WORK_FIT_EPOCHS_MAX - 4);
    assert_true(fit->epochs[0].start == task.loss_start);
    /* One run that is longer than all there is room for. */
    double loss = 1;
    for (int i = 0; i < 2 * WORK_FIT_EPOCHS_MAX; i++) {
        work_fit_add(fit, 2, loss, 0.999 * loss);
        loss *= 0.999;
    }
    assert_true(fit->count <= WORK_FIT_EPOCHS_MAX && fit->epochs[0].start > 0);
    free(fit);
}

static struct epoch_state run(struct scheduler *scheduler)
{
    struct epoch_state state = {.loss = task.loss_start, .left_micro = task.budget_micro};
    while (state.loss > task.loss_target && state.epoch < task.epoch_max && state.left_micro >= 0) {
        const struct epoch_choice choice = scheduler_choose(scheduler, &state);
        state.last = epoch_model_predict(&model, choice, &state);
        state.last.cost_micro = epoch_cost_micro(&task, choice, state.last.total_s);
        state.epoch++;
        state.loss = state.last.loss_after;
        state.elapsed_s += state.last.total_s;
        state.left_micro -= state.last.cost_micro;
        scheduler_see(scheduler, &state.last);
    }
    return state;
}

TEST(a_planner_beats_every_number_that_costs_no_more)
{
    AUTO(scheduler) struct scheduler *planner = scheduler_new_planner(&task, NULL);
    const struct epoch_state end = run(planner);
    assert_true(end.loss <= task.loss_target && end.left_micro >= 0);
    for (uint32_t n = 1; n <= 16; n++) {
        AUTO(scheduler)
        struct scheduler *constant = scheduler_new_constant((struct epoch_choice){n, 256});
        const struct epoch_state other = run(constant);
        if (other.loss <= task.loss_target && other.left_micro >= end.left_micro &&
            !(end.elapsed_s <= 1.05 * other.elapsed_s))
            fail_msg("%u functions: %g s, the planner %g s", n, other.elapsed_s, end.elapsed_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_differ_tell_signal_and_noise),
        cmocka_unit_test(chance_in_losses_is_told_from_the_job),
        cmocka_unit_test(a_loss_that_rises_has_no_gain),
        cmocka_unit_test(the_oldest_runs_are_forgotten),
        cmocka_unit_test(a_planner_beats_every_number_that_costs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
