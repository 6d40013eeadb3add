#include "learn/plan.h"
#include "testing/testing.h"

#include <math.h>

static const struct epoch_task task = {
    .space = {16, 256, 64, 256},
    .loss_form = EPOCH_LOSS_WORK,
    .loss_start = 3.3,
    .loss_target = 0.045,
    .price = 0.001,
    .budget_micro = 1000000,
    .epoch_max = 40,
};

/* Near what LeNet-5 on MNIST does; `noise` is what one function leaves. */
static struct epoch_model model_with(double noise)
{
    return (struct epoch_model){
        .start_s = 0.2,
        .compute_s = 2.4,
        .memory_base_mb = 20,
        .core_mb = 1769,
        .loss_form = EPOCH_LOSS_WORK,
        .work = {.bend = 0.65, .spread = 1, .gain = 900, .start = 3.3, .noise = noise},
    };
}

static struct plan *plan_of(double noise)
{
    struct plan *plan =
        plan_new(&task, (struct plan_options){.candidate_max = 120, .cell_count = 72});
    const struct epoch_model model = model_with(noise);
    plan_set_model(plan, &model);
    return plan;
}

static const struct plan_stand begun = {1, .left = 1, .epochs_left = 40, .doubt = 0.02};

TEST(few_go_far_and_many_take_the_noise_away)
{
    AUTO(plan) struct plan *plan = plan_of(0.035);
    struct plan_stand stand = begun;
    struct plan_outlook outlook = plan_phases(plan, &stand);
    assert_true(outlook.is_within);
    const struct epoch_model model = model_with(0.035);
    struct epoch_state job = {.loss = task.loss_start};
    uint32_t counts[40] = {0};
    double cost = 0, time_s = 0;
    const struct plan_outlook first = outlook;
    while (job.loss > task.loss_target && job.epoch < 40) {
        stand.epochs_left = 40 - job.epoch;
        outlook = plan_phases(plan, &stand);
        counts[job.epoch++] = outlook.choice.function_count;
        job.last = epoch_model_predict(&model, outlook.choice, &job);
        job.loss = job.last.loss_after;
        stand.work += work_of_epoch(&model.work, outlook.choice.function_count);
        cost += 1e-6 * (double)epoch_cost_micro(&task, outlook.choice, job.last.total_s);
        stand.left = begun.left - cost;
        time_s += job.last.total_s;
    }
    assert_true(job.loss <= task.loss_target);
    assert_true(job.epoch >= 2 && counts[0] < counts[job.epoch - 1]);
    for (uint32_t i = 1; i < job.epoch; i++)
        assert_true(counts[i] >= counts[i - 1]);
    /* No later and no dearer than foreseen, and better than any one number. */
    assert_true(time_s <= 1.06 * first.time_s && cost <= 1.06 * first.cost);
    for (uint32_t n = 1; n <= 16; n++) {
        const double needed =
            work_of_signal(&model.work, task.loss_target - work_noise(&model.work, n));
        const double epochs = ceil((needed - 1) / work_of_epoch(&model.work, n));
        const struct epoch_choice choice = {n, 256};
        const double constant_s = epochs * epoch_model_total_s(&model, choice);
        if (constant_s < time_s)
            assert_true(1e-6 * epochs *
                            (double)epoch_cost_micro(&task, choice, constant_s / epochs) >
                        cost);
    }
}

TEST(without_noise_one_number_is_enough)
{
    AUTO(plan) struct plan *plan = plan_of(0);
    const struct plan_outlook outlook = plan_phases(plan, &begun);
    const struct epoch_model model = model_with(0);
    /* As many work as little as few: the fewest, for least, where that is little later. */
    double soonest_s = HUGE_VAL;
    for (uint32_t n = 1; n <= 16; n++) {
        const double way = work_of_signal(&model.work, task.loss_target) - 1;
        const double epochs = ceil(way / work_of_epoch(&model.work, n) + 0.02);
        soonest_s =
            fmin(soonest_s, epochs * epoch_model_total_s(&model, (struct epoch_choice){n, 256}));
    }
    assert_true(outlook.is_within && outlook.time_s <= 1.051 * soonest_s);
}

TEST(what_is_left_bounds_the_plan)
{
    AUTO(plan) struct plan *plan = plan_of(0.035);
    const struct plan_outlook rich = plan_phases(plan, &begun);
    struct plan_stand poor = begun;
    poor.left = 0.9 * rich.cost;
    const struct plan_outlook less = plan_phases(plan, &poor);
    assert_true(!less.is_within || (less.cost <= poor.left && less.time_s >= rich.time_s));
    poor.left = 1e-9;
    const struct plan_outlook least = plan_phases(plan, &poor);
    assert_false(least.is_within);
    assert_true(least.choice.function_count >= 1 && least.cost <= less.cost);
}

TEST(a_target_below_the_noise_of_all_is_not_planned_for)
{
    AUTO(plan) struct plan *plan = plan_of(0.3);
    assert_int_equal(plan_phases(plan, &begun).choice.function_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_go_far_and_many_take_the_noise_away),
        cmocka_unit_test(without_noise_one_number_is_enough),
        cmocka_unit_test(what_is_left_bounds_the_plan),
        cmocka_unit_test(a_target_below_the_noise_of_all_is_not_planned_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
