/*
 * BSP: rounds of one step (or local_steps). Every member pushes once, is held, and all are released
 * with W + mean(U) when the last one has pushed.
 */
#include "sync/round.h"

const struct sync_policy_ops sync_bsp_ops = {
    .name = "bsp",
    .size = sizeof(struct sync_barrier),
    .local_steps = 1,
    .on_join = sync_barrier_on_join,
    .on_push = sync_barrier_on_push,
    .on_leave = sync_barrier_on_leave,
    .status = sync_barrier_status,
};
