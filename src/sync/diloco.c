/*
 * DiLoCo (Douillard et al. 2023): all make H steps (local_steps, 500); the mean update enters W by
 * Nesterov momentum: B = m B + mean(U), W += rate (mean(U) + m B), rate 0.7 and m 0.9.
 */
#include "sync/round.h"

static void diloco_open(struct sync_policy *policy)
{
    struct sync_barrier *barrier = (struct sync_barrier *)policy;
    barrier->outer = sync_outer_nesterov(sync_outer_rate_of(&policy->settings, 0.7),
                                         sync_outer_momentum_of(&policy->settings, 0.9));
}

const struct sync_policy_ops sync_diloco_ops = {
    .name = "diloco",
    .size = sizeof(struct sync_barrier),
    .local_steps = 500,
    .open = diloco_open,
    .on_join = sync_barrier_on_join,
    .on_push = sync_barrier_on_push,
    .on_leave = sync_barrier_on_leave,
    .status = sync_barrier_status,
};
