/*
 * Agent rehearsal: an agent is trained on runs of a world, then its number of functions is shifted
 * so that the budget is just kept.
 *
 * A world is a simulator's, or what was fitted to a job that runs. The budget does not end a
 * rehearsal: how far it was passed is what is learned from.
 */
#pragma once

#include "learn/agent.h"

#include <stdbool.h>

struct rehearsal_world {
    void (*begin)(void *context, struct epoch_state *out_state);
    /* One epoch. False, with the state as it was, when there can be none. */
    bool (*step)(void *context, struct epoch_choice choice, struct epoch_state *state);
    void *context;
};

struct agent_rehearse_options {
    struct epoch_task task;
    double time_scale_s;  /* about what a run takes */
    double budget_share;  /* of the budget, that runs are set to */
    uint32_t hold_epochs; /* of an action in training; 0: as in agent_train.h */
    uint32_t run_count;
    uint64_t seed;
};

void agent_rehearse(struct agent *agent, const struct agent_rehearse_options *options,
                    const struct rehearsal_world *world);

/* AGENT_OFFSET_RUNS of the world. */
enum { AGENT_OFFSET_RUNS = 10 };
void agent_set_offset(struct agent *agent, const struct agent_rehearse_options *options,
                      const struct rehearsal_world *world);
