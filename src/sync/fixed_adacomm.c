/*
 * Fixed AdaComm: all make tau steps (local_steps, 40), then W becomes the mean of their models:
 * W += mean(U). As in the experiments of the ADSP paper.
 */
#include "sync/round.h"

const struct sync_policy_ops sync_fixed_adacomm_ops = {
    .name = "fixed-adacomm",
    .size = sizeof(struct sync_barrier),
    .local_steps = 40,
    .on_join = sync_barrier_on_join,
    .on_push = sync_barrier_on_push,
    .on_leave = sync_barrier_on_leave,
    .status = sync_barrier_status,
};
