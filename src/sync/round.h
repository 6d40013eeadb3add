/*
 * Round: the barrier that several policies share. Members push once, are held, and are released
 * together after what they pushed is folded into W.
 *
 * Who joins during a round takes part in it. Who leaves is no longer waited for; what it pushed in
 * the round stays in the mean.
 */
#pragma once

#include "sync/policy_internal.h"

struct sync_round {
    bool is_held[SYNC_WORKER_MAX];
    uint32_t held_count;     /* members that have pushed in this round */
    uint32_t gathered_count; /* updates in the sum, those of members that left included */
    uint64_t number;         /* rounds that are over */
};

/* Gathers the push and holds the worker. */
void sync_round_take(struct sync_round *round, uint32_t worker, double weight,
                     struct sync_actions *actions);
/* To be called from on_leave. */
void sync_round_leave(struct sync_round *round, uint32_t worker);
/* Something is gathered and all members are held, but for `missing` of them. */
bool sync_round_is_complete(const struct sync_round *round, const struct sync_policy *policy,
                            uint32_t missing);
/* Something is gathered. */
void sync_round_fold(struct sync_round *round, const struct sync_outer *outer,
                     struct sync_actions *actions);
void sync_round_release(struct sync_round *round, struct sync_actions *actions);

/* The plain barrier, as bsp and others have it: a policy whose struct begins with this. */
struct sync_barrier {
    struct sync_policy policy;
    struct sync_round round;
    struct sync_outer outer;
};

void sync_barrier_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                          struct sync_actions *actions);
void sync_barrier_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                          struct sync_actions *actions);
void sync_barrier_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                           struct sync_actions *actions);
void sync_barrier_status(const struct sync_policy *policy, struct sync_status *out_status);
