/*
 * Agent training: policy gradient with a baseline, after whole episodes.
 *
 * The reward of an epoch is -time/time_scale - lambda cost/budget; lambda, the price of the budget,
 * rises while episodes pass the budget and falls while they do not, in place of the paper's +-C at
 * the end, which tells nothing of how far off an episode was. An action is kept for some epochs.
 * Episodes come in pairs whose noise is opposite. The baseline is a ridge regression of what is
 * still to come, time and cost apart, on the way left to the target; the advantage of an action is
 * taken against it over a few steps (generalised advantage estimation). Each batch of episodes is
 * gone over a few times with the clipped ratio of policies.
 *
 * The driver runs the episodes, without an end to their budget:
 *
 *     while (agent_train_begin(train))              one episode
 *         for each epoch: agent_train_choose, then agent_train_see
 */
#pragma once

#include "learn/agent.h"

#include <stdbool.h>

struct agent_train;

enum { AGENT_TRAIN_STEPS_MAX = 128, AGENT_TRAIN_HOLD_EPOCHS = 10 };

struct agent_train_options {
    struct epoch_task task;
    double time_scale_s; /* about what a run takes */
    uint32_t episode_count;
    uint32_t hold_epochs; /* 0: AGENT_TRAIN_HOLD_EPOCHS */
    uint64_t seed;
};

/* Changes the agent, which outlives it. The inputs of one that was trained before keep their scale.
 * The steps of an episode, each of `hold_epochs`, are at most AGENT_TRAIN_STEPS_MAX. */
struct agent_train *agent_train_new(struct agent *agent, const struct agent_train_options *options);
void agent_train_free(struct agent_train *train); /* NULL is fine */
DEFINE_AUTO(agent_train);

/* False once all episodes are done. */
bool agent_train_begin(struct agent_train *train);
struct epoch_choice agent_train_choose(struct agent_train *train, const struct epoch_state *state);
/* `state`: after the epoch. */
void agent_train_see(struct agent_train *train, const struct epoch_state *state);
