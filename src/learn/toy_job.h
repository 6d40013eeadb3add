/* A job for the tests of this folder: constants near those of docs/simulation.md. */
#pragma once

#include "learn/epoch_model.h"

#include <math.h>

static const struct epoch_model toy_model = {
    .start_s = 0.3,
    .fetch_s = 30,
    .compute_s = 700,
    .update_s = 40,
    .contention_s = 120,
    .memory_base_mb = 1000,
    .memory_spread_mb = 50000,
    .paging = 3,
    .core_mb = 1600,
    .core_slope = 0.25,
    .loss_rate = 0.015,
    .loss_floor = 0.007,
    .loss_power = 0.23,
};

static const struct epoch_task toy_task = {
    .space = {3000, 128, 64, 3008},
    .loss_start = 1,
    .loss_target = 1.0 / 30,
    .price = 8.3e-5,
    .budget_micro = 200000000,
    .epoch_max = 700,
};

/* One epoch without noise; the driver looks whether the budget suffices. */
static inline void toy_step(struct epoch_state *state, struct epoch_choice choice)
{
    state->last = epoch_model_predict(&toy_model, choice, state);
    state->last.cost_micro = epoch_cost_micro(&toy_task, choice, state->last.total_s);
    state->epoch++;
    state->loss = state->last.loss_after;
    state->elapsed_s += state->last.total_s;
    state->left_micro -= state->last.cost_micro;
}
