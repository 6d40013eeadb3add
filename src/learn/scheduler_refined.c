/*
 * The agent on a job that runs. A job's own epochs are far too few for policy gradient, which takes
 * hundreds of runs; so the epoch model is fitted to them and the agent rehearses in that, anew
 * before every epoch.
 */
#include "base/memory.h"
#include "learn/agent_rehearse.h"
#include "learn/agent_train.h"
#include "learn/plan.h"
#include "learn/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>

enum {
    FIRST_RUNS = 200, /* rehearsed when an agent meets its first job */
    RUNS = 20,        /* before every further epoch */
    STEPS = 60,       /* of a run in rehearsal, at most */
};
static const double time_least_s = 1e-3;
static const double budget_share = 0.93; /* that the agent is set to: it has no reserve */

struct refined {
    struct scheduler scheduler;
    struct epoch_task task;
    struct agent *agent;
    struct epoch_fit fit;
    uint64_t seed;
    bool is_at_home; /* the agent's centre is a choice of this job */
};

/* A run of the fitted model. */
struct model_world {
    const struct epoch_task *task;
    struct epoch_model model;
    struct epoch_state from;
};

static void world_begin(void *context, struct epoch_state *out_state)
{
    *out_state = ((const struct model_world *)context)->from;
}

static bool world_step(void *context, struct epoch_choice choice, struct epoch_state *state)
{
    const struct model_world *world = context;
    state->last = epoch_model_predict(&world->model, choice, state);
    state->last.cost_micro = epoch_cost_micro(world->task, choice, state->last.total_s);
    state->epoch++;
    state->loss = state->last.loss_after;
    state->elapsed_s += state->last.total_s;
    state->left_micro -= state->last.cost_micro;
    return true;
}

/* What is best to begin with. Where by what was seen none leads to the target, fewer functions than
 * last, to the last epoch. */
static struct plan_outlook best_start(const struct epoch_task *task,
                                      const struct epoch_model *model,
                                      const struct epoch_seen *last)
{
    AUTO(plan)
    struct plan *plan =
        plan_new(task, (struct plan_options){.candidate_max = 120, .cell_count = 1});
    plan_set_model(plan, model);
    const double left = 1e-6 * (double)task->budget_micro;
    const struct plan_stand stand = {1, left, task->epoch_max, .doubt = 0};
    struct plan_outlook best = model->loss_form == EPOCH_LOSS_WORK
                                   ? plan_phases(plan, &stand)
                                   : plan_constant(plan, task->loss_start, left, /* doubt= */ 0);
    if (best.choice.function_count > 0)
        return best;
    best.choice =
        epoch_round(&task->space, last->choice.function_count / 2.0, last->choice.memory_mb);
    best.time_s = task->epoch_max * epoch_model_total_s(model, best.choice);
    return best;
}

static void refine(struct refined *self, const struct epoch_state *state)
{
    struct epoch_task task = self->task;
    task.price = epoch_fit_price(&self->fit);
    struct model_world world = {
        .task = &task,
        .model = epoch_fit_solve(&self->fit).model,
        .from = {.loss = task.loss_start, .left_micro = task.budget_micro},
    };
    const struct plan_outlook start = best_start(&task, &world.model, &state->last);
    if (!self->is_at_home)
        self->agent->centre = start.choice;
    const struct rehearsal_world runs = {world_begin, world_step, &world};
    const struct agent_rehearse_options options = {
        .task = task,
        .time_scale_s = fmax(start.time_s, time_least_s),
        .budget_share = budget_share,
        .hold_epochs = (task.epoch_max + STEPS - 1) / STEPS,
        .run_count = self->is_at_home ? RUNS : FIRST_RUNS,
        .seed = self->seed + state->epoch,
    };
    agent_rehearse(self->agent, &options, &runs);
    world.from = *state; /* what was spent is spent */
    agent_set_offset(self->agent, &options, &runs);
    self->is_at_home = true;
}

static struct epoch_choice choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    struct refined *self = (struct refined *)scheduler;
    struct epoch_choice probe;
    if (!self->is_at_home && epoch_fit_probe(&self->fit, &probe))
        return probe;
    if (self->fit.seen_count > 0)
        refine(self, state);
    return agent_choose(self->agent, &self->task, state);
}

static void see(struct scheduler *scheduler, const struct epoch_seen *seen)
{
    epoch_fit_add(&((struct refined *)scheduler)->fit, seen);
}

static void refined_free(struct scheduler *scheduler)
{
    free(scheduler);
}

static const struct scheduler_ops ops = {
    .name = "agent", .choose = choose, .see = see, .free = refined_free};

static bool is_of(const struct epoch_space *space, struct epoch_choice choice)
{
    const struct epoch_choice nearest = epoch_round(space, choice.function_count, choice.memory_mb);
    return nearest.function_count == choice.function_count && nearest.memory_mb == choice.memory_mb;
}

struct scheduler *scheduler_new_refined(const struct scheduler_refined *options)
{
    struct refined *made = memory_zeroed(1, sizeof(*made));
    made->scheduler.ops = &ops;
    made->task = *options->task;
    made->agent = options->agent;
    made->seed = options->seed;
    epoch_fit_init(&made->fit, options->task);
    if (options->history)
        made->fit = *options->history;
    made->fit.task = *options->task;
    made->is_at_home =
        options->agent->episode_count > 0 && is_of(&options->task->space, options->agent->centre);
    return &made->scheduler;
}
