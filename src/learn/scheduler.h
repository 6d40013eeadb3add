/*
 * Scheduler: chooses the functions of every next epoch from what was seen of the last ones.
 *
 *     constant  one choice throughout
 *     decay     functions in equal steps from one number to another, upwards, too
 *     grow      twice as many in every epoch, up to a number
 *     planner   fits the epoch model as it goes and plans anew before every epoch (plan.h)
 *     agent     Siren's: a policy learned by policy gradient (agent.h), as it is or refined on
 *               the job
 *     auto      the planner, held to a constant where that is known to do better
 *
 * The driver calls choose and see in turn. Schedulers hold no clock and no chance: the same epochs
 * give the same choices.
 *
 * To add one: a file with its ops, a function here.
 */
#pragma once

#include "base/scope.h"
#include "learn/epoch.h"
#include "learn/epoch_fit.h"

struct scheduler;
struct agent;

void scheduler_free(struct scheduler *scheduler); /* NULL is fine */
DEFINE_AUTO(scheduler);

const char *scheduler_name(const struct scheduler *scheduler);
struct epoch_choice scheduler_choose(struct scheduler *scheduler, const struct epoch_state *state);
void scheduler_see(struct scheduler *scheduler, const struct epoch_seen *seen);

struct scheduler *scheduler_new_constant(struct epoch_choice choice);

/* Evenly from the first to the last, and then that; upwards or downwards. */
struct scheduler_decay {
    uint32_t function_first, function_last;
    uint32_t epoch_count; /* from the first to the last */
    uint32_t memory_mb;
    uint32_t memory_last_mb; /* 0: the same throughout */
};
struct scheduler *scheduler_new_decay(const struct scheduler_decay *options);

/* Twice as many in every epoch, from `first` up to `last`, and then that. */
struct scheduler *scheduler_new_grow(struct epoch_choice first, struct epoch_choice last);

/* `history`: of earlier runs of the job; NULL when there were none. Copied. */
struct scheduler *scheduler_new_planner(const struct epoch_task *task,
                                        const struct epoch_fit *history);

/* The agent outlives the scheduler. */
struct scheduler *scheduler_new_agent(const struct epoch_task *task, const struct agent *agent);

/*
 * The agent on a job: chooses as the agent does, which rehearses before every epoch in a model
 * fitted to the epochs seen. One that is new, or from a world of other sizes, begins with the
 * planner's first epochs.
 */
struct scheduler_refined {
    const struct epoch_task *task;
    const struct epoch_fit *history; /* as below */
    struct agent *agent;             /* changed; outlives the scheduler */
    uint64_t seed;
};
struct scheduler *scheduler_new_refined(const struct scheduler_refined *options);

struct scheduler_guard {
    const struct epoch_task *task;
    const struct epoch_fit *history; /* of earlier runs, or NULL; copied */
    /* A run with the best constant found so far: how it stood after each epoch, copied; none: 0. */
    const struct epoch_state *constant_run;
    uint32_t constant_epochs;
    double margin; /* a share of that run: how much later than by it a loss may be reached */
};

/*
 * Follows another scheduler. Once a loss is reached later than by the constant, by more than the
 * margin, the constant is taken for as long as that is so and what is left pays for the rest of its
 * run.
 */
struct scheduler *scheduler_new_guarded_take(struct scheduler *inner,
                                             const struct scheduler_guard *options);
/* The planner so. */
struct scheduler *scheduler_new_auto(const struct scheduler_guard *options);
