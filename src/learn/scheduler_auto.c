#include "base/memory.h"
#include "learn/planner.h"
#include "learn/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double auto_luck = 3;

struct auto_scheduler {
    struct scheduler scheduler;
    struct planner *planner;
    double margin;
    double way; /* from the first loss to the target, in e-folds */
    struct epoch_state *constant_run;
    uint32_t constant_epochs;
};

/* How the constant stood when it first had this loss; NULL when it never did. */
static const struct epoch_state *constant_at(const struct auto_scheduler *self, double loss)
{
    for (uint32_t i = 0; i < self->constant_epochs; i++)
        if (self->constant_run[i].loss <= loss)
            return &self->constant_run[i];
    return NULL;
}

/* The margin, and what luck alone makes of two runs. */
static double allowed(const struct auto_scheduler *self)
{
    const double deviation =
        planner_loss_noise(self->planner) * sqrt(2.0 * self->constant_epochs) / self->way;
    return self->margin + auto_luck * deviation;
}

static bool constant_is_better(const struct auto_scheduler *self, const struct epoch_state *state)
{
    const struct epoch_state *constant = constant_at(self, state->loss);
    if (!constant)
        return false;
    const struct epoch_state *end = &self->constant_run[self->constant_epochs - 1];
    const int64_t rest_micro = constant->left_micro - end->left_micro;
    return state->elapsed_s > constant->elapsed_s + allowed(self) * end->elapsed_s &&
           rest_micro <= state->left_micro;
}

static struct epoch_choice choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    struct auto_scheduler *self = (struct auto_scheduler *)scheduler;
    if (state->epoch > 0 && constant_is_better(self, state))
        return self->constant_run[0].last.choice;
    return planner_look(self->planner, state).choice;
}

static void see(struct scheduler *scheduler, const struct epoch_seen *seen)
{
    planner_see(((struct auto_scheduler *)scheduler)->planner, seen);
}

static void auto_scheduler_free(struct scheduler *scheduler)
{
    struct auto_scheduler *self = (struct auto_scheduler *)scheduler;
    planner_free(self->planner);
    free(self->constant_run);
    free(self);
}

static const struct scheduler_ops ops = {
    .name = "auto", .choose = choose, .see = see, .free = auto_scheduler_free};

struct scheduler *scheduler_new_auto(const struct scheduler_auto *options)
{
    struct auto_scheduler *self = memory_zeroed(1, sizeof(*self));
    self->scheduler.ops = &ops;
    self->planner = planner_new(options->task, options->history);
    self->margin = options->margin;
    self->way = log(options->task->loss_start / options->task->loss_target);
    self->constant_epochs = options->constant_epochs;
    self->constant_run = memory_zeroed(options->constant_epochs, sizeof(*self->constant_run));
    if (options->constant_epochs > 0)
        memcpy(self->constant_run, options->constant_run,
               options->constant_epochs * sizeof(*self->constant_run));
    return &self->scheduler;
}
