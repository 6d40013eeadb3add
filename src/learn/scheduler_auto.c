#include "base/memory.h"
#include "learn/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double guard_luck = 3;
static const double luck_max = 0.35; /* of the constant's run, whatever chance explains */

struct guard {
    struct scheduler scheduler;
    struct scheduler *inner;
    struct epoch_fit fit; /* tells what chance alone does */
    double margin;
    double way; /* from the first loss to the target, in e-folds */
    struct epoch_state *constant_run;
    uint32_t constant_epochs;
};

/* How the constant stood when it first had this loss; NULL when it never did. */
static const struct epoch_state *constant_at(const struct guard *self, double loss)
{
    for (uint32_t i = 0; i < self->constant_epochs; i++)
        if (self->constant_run[i].loss <= loss)
            return &self->constant_run[i];
    return NULL;
}

/* The margin, and what luck alone makes of two runs. */
static double allowed(const struct guard *self)
{
    const double noise = self->fit.seen_count > 0 ? epoch_fit_solve(&self->fit).loss_noise : 0;
    const double deviation = noise * sqrt(2.0 * self->constant_epochs) / self->way;
    return self->margin + fmin(guard_luck * deviation, luck_max);
}

static bool constant_is_better(const struct guard *self, const struct epoch_state *state)
{
    const struct epoch_state *constant = constant_at(self, state->loss);
    if (!constant)
        return false;
    const struct epoch_state *end = &self->constant_run[self->constant_epochs - 1];
    const int64_t rest_micro = constant->left_micro - end->left_micro;
    return state->elapsed_s > constant->elapsed_s + allowed(self) * end->elapsed_s &&
           rest_micro <= state->left_micro;
}

/* One epoch of it, by what was seen, would end later than the constant's whole run may. */
static bool is_too_long(const struct guard *self, const struct epoch_state *state,
                        struct epoch_choice choice)
{
    if (self->constant_epochs == 0 || self->fit.seen_count == 0)
        return false;
    const struct epoch_state *end = &self->constant_run[self->constant_epochs - 1];
    const struct epoch_model model = epoch_fit_solve(&self->fit).model;
    const double epoch_s = epoch_model_total_s(&model, choice);
    return epoch_s > epoch_model_total_s(&model, end->last.choice) &&
           state->elapsed_s + epoch_s > (1 + allowed(self)) * end->elapsed_s &&
           self->constant_run[0].last.cost_micro <= state->left_micro;
}

static struct epoch_choice choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    struct guard *self = (struct guard *)scheduler;
    if (state->epoch > 0 && constant_is_better(self, state))
        return self->constant_run[0].last.choice;
    const struct epoch_choice choice = scheduler_choose(self->inner, state);
    return is_too_long(self, state, choice) ? self->constant_run[0].last.choice : choice;
}

static void see(struct scheduler *scheduler, const struct epoch_seen *seen)
{
    struct guard *self = (struct guard *)scheduler;
    epoch_fit_add(&self->fit, seen);
    scheduler_see(self->inner, seen);
}

static void guard_free(struct scheduler *scheduler)
{
    struct guard *self = (struct guard *)scheduler;
    scheduler_free(self->inner);
    free(self->constant_run);
    free(self);
}

static const struct scheduler_ops guarded_ops = {
    .name = "guarded", .choose = choose, .see = see, .free = guard_free};
static const struct scheduler_ops auto_ops = {
    .name = "auto", .choose = choose, .see = see, .free = guard_free};

static struct scheduler *guard_new(const struct scheduler_ops *ops, struct scheduler *inner,
                                   const struct scheduler_guard *options)
{
    struct guard *self = memory_zeroed(1, sizeof(*self));
    self->scheduler.ops = ops;
    self->inner = inner;
    epoch_fit_init(&self->fit, options->task);
    if (options->history)
        self->fit = *options->history;
    self->fit.task = *options->task;
    self->margin = options->margin;
    self->way = log(options->task->loss_start / options->task->loss_target);
    self->constant_epochs = options->constant_epochs;
    self->constant_run = memory_zeroed(options->constant_epochs, sizeof(*self->constant_run));
    if (options->constant_epochs > 0)
        memcpy(self->constant_run, options->constant_run,
               options->constant_epochs * sizeof(*self->constant_run));
    return &self->scheduler;
}

struct scheduler *scheduler_new_guarded_take(struct scheduler *inner,
                                             const struct scheduler_guard *options)
{
    return guard_new(&guarded_ops, inner, options);
}

struct scheduler *scheduler_new_auto(const struct scheduler_guard *options)
{
    return guard_new(&auto_ops, scheduler_new_planner(options->task, options->history), options);
}
