#include "learn/planner.h"

#include "base/memory.h"
#include "learn/plan.h"
#include "learn/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>

/* Fine enough that finer ones change a run by less than a thousandth. */
static const struct plan_options plan_options = {.candidate_max = 120, .cell_count = 72};

/* Towards the end whole epochs count. */
static const double whole_epochs = 8;
static const double exact_noise = 1e-3;
/* An epoch may take this much longer than forecast and must still be paid for: deviations, and a
 * share for what the fit does not know. */
static const double epoch_deviations = 6, kept_share = 0.004, end_doubt = 0.02;
static const double work_kept_share = 0.05;
static const double work_reach = 4; /* times what was seen: farther away the fit tells nothing */
/* Kept in reserve, and of what the cheapest way would leave at most. */
static const double luck_deviations = 2.5, luck_slack_share = 0.83;
static const double kept_epochs = 0.5; /* of the budget, for the last epoch to be whole */

struct planner {
    struct epoch_fit fit;
    struct plan *plan;
};

struct planner *planner_new(const struct epoch_task *task, const struct epoch_fit *history)
{
    struct planner *planner = memory_zeroed(1, sizeof(*planner));
    epoch_fit_init(&planner->fit, task);
    if (history)
        planner->fit = *history;
    planner->fit.task = *task;
    planner->plan = plan_new(task, plan_options);
    return planner;
}

void planner_free(struct planner *planner)
{
    if (!planner)
        return;
    plan_free(planner->plan);
    free(planner);
}

void planner_see(struct planner *planner, const struct epoch_seen *seen)
{
    epoch_fit_add(&planner->fit, seen);
}

static double cost_of(const struct planner *planner, const struct epoch_model *model,
                      struct epoch_choice choice)
{
    const double time_s = epoch_model_total_s(model, choice);
    struct epoch_task billed = planner->fit.task;
    billed.price = epoch_fit_price(&planner->fit);
    return 1e-6 * (double)epoch_cost_micro(&billed, choice, time_s);
}

/* As it looks no choice leads to the target: fewer functions go further in an epoch. */
static struct epoch_choice fewer(const struct planner *planner, const struct epoch_state *state)
{
    return epoch_round(&planner->fit.task.space, state->last.choice.function_count / 2.0,
                       state->last.choice.memory_mb);
}

static struct plan_outlook look_at_work(const struct planner *planner,
                                        const struct work_fitted *fitted,
                                        const struct epoch_state *state)
{
    const struct epoch_task *task = &planner->fit.task;
    const struct plan_stand stand = {
        .work = state->epoch > 0 ? work_fit_reached(&planner->fit.work, fitted)
                                 : work_of_signal(fitted, task->loss_start),
        .left = (1 - work_kept_share) * 1e-6 * (double)state->left_micro,
        .epochs_left = task->epoch_max > state->epoch ? task->epoch_max - state->epoch : 1,
        .doubt = end_doubt,
    };
    struct plan_outlook outlook = plan_phases(planner->plan, &stand);
    if (outlook.choice.function_count == 0)
        outlook.choice = fewer(planner, state);
    const double n = outlook.choice.function_count;
    outlook.choice = epoch_round(&planner->fit.task.space,
                                 fmin(fmax(n, planner->fit.function_least / work_reach),
                                      planner->fit.function_most * work_reach),
                                 outlook.choice.memory_mb);
    return outlook;
}

/* The plan, with whole epochs at its end; no epoch that what is left may not pay for, where there
 * is another. */
struct plan_outlook planner_look(struct planner *planner, const struct epoch_state *state)
{
    struct plan_outlook outlook = {.time_s = HUGE_VAL};
    if (epoch_fit_probe(&planner->fit, &outlook.choice))
        return outlook;
    const struct epoch_fitted fitted = epoch_fit_solve(&planner->fit);
    const struct epoch_model *model = &fitted.model;
    const double left = 1e-6 * (double)state->left_micro;
    const double last_cost = 1e-6 * (double)state->last.cost_micro;
    plan_set_price(planner->plan, epoch_fit_price(&planner->fit));
    plan_set_model(planner->plan, model);
    if (model->loss_form == EPOCH_LOSS_WORK)
        return look_at_work(planner, &model->work, state);
    plan_set_risk(planner->plan, (struct plan_risk){.time_noise = fitted.time_noise,
                                                    .loss_noise = fitted.loss_noise,
                                                    .deviations = luck_deviations,
                                                    .slack_share = luck_slack_share});
    outlook = plan_make(planner->plan, state->loss, left - kept_epochs * last_cost);
    const double next_cost = cost_of(planner, model, outlook.choice);
    const bool is_exact = fitted.loss_noise < exact_noise;
    if ((is_exact && outlook.epoch_count <= whole_epochs) ||
        next_cost * (1 + kept_share + epoch_deviations * fitted.time_noise) > left)
        outlook = plan_constant(planner->plan, state->loss, left / (1 + kept_share), end_doubt);
    if (outlook.choice.function_count == 0)
        outlook.choice = fewer(planner, state);
    return outlook;
}

struct planner_scheduler {
    struct scheduler scheduler;
    struct planner *planner;
};

static struct epoch_choice choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    return planner_look(((struct planner_scheduler *)scheduler)->planner, state).choice;
}

static void see(struct scheduler *scheduler, const struct epoch_seen *seen)
{
    planner_see(((struct planner_scheduler *)scheduler)->planner, seen);
}

static void scheduler_planner_free(struct scheduler *scheduler)
{
    planner_free(((struct planner_scheduler *)scheduler)->planner);
    free(scheduler);
}

static const struct scheduler_ops ops = {
    .name = "planner", .choose = choose, .see = see, .free = scheduler_planner_free};

struct scheduler *scheduler_new_planner(const struct epoch_task *task,
                                        const struct epoch_fit *history)
{
    struct planner_scheduler *made = memory_zeroed(1, sizeof(*made));
    made->scheduler.ops = &ops;
    made->planner = planner_new(task, history);
    return &made->scheduler;
}
