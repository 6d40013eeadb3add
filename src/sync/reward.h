/*
 * Reward: how fast the loss fell over one check period, to compare commit rates.
 *
 * The loss is taken as l(t) = 1 / (A t + a2) + a3 (adsp paper). Three points fix the three unknowns
 * in closed form; the reward is 1 / (time from the first point to the target loss). Where the
 * points do not fall or the fit is impossible, only the plain relative slope is given, since noise
 * makes the fit meaningless there.
 */
#pragma once

#include "sync/policy.h"

struct sync_reward {
    bool has_fit;
    double fit;   /* 1/s, > 0 */
    double slope; /* (l0 - l2) / l0 per second; negative when the loss rose */
};

/* Times strictly increase, losses are finite. */
struct sync_reward sync_reward_of(const struct sync_loss points[3], double target_loss);

/* By the fit when both have one, else by the slope: the two are not of one kind. */
bool sync_reward_is_better(const struct sync_reward *left, const struct sync_reward *right,
                           double margin);
