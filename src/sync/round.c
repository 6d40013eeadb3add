/*
 * Round: gathering, holding and releasing.
 */
#include "sync/round.h"

#include "base/assert.h"

void sync_round_take(struct sync_round *round, uint32_t worker, double weight,
                     struct sync_actions *actions)
{
    ASSERT(!round->is_held[worker]);
    round->is_held[worker] = true;
    round->held_count++;
    round->gathered_count++;
    sync_gather(actions, worker, weight);
    sync_simple(actions, SYNC_HOLD, worker);
}

void sync_round_leave(struct sync_round *round, uint32_t worker)
{
    if (!round->is_held[worker])
        return;
    round->is_held[worker] = false;
    round->held_count--;
}

bool sync_round_is_complete(const struct sync_round *round, const struct sync_policy *policy,
                            uint32_t missing)
{
    return round->gathered_count > 0 && round->held_count + missing >= policy->member_count;
}

void sync_round_fold(struct sync_round *round, const struct sync_outer *outer,
                     struct sync_actions *actions)
{
    ASSERT(round->gathered_count > 0);
    sync_append(actions, (struct sync_action){.kind = SYNC_FOLD, .outer = *outer});
    round->gathered_count = 0;
    round->number++;
}

void sync_round_release(struct sync_round *round, struct sync_actions *actions)
{
    for (uint32_t worker = 0; worker < SYNC_WORKER_MAX; worker++) {
        if (!round->is_held[worker])
            continue;
        round->is_held[worker] = false;
        sync_simple(actions, SYNC_RELEASE, worker);
    }
    round->held_count = 0;
}

/* --- the plain barrier --- */

static struct sync_barrier *barrier_of(struct sync_policy *policy)
{
    return (struct sync_barrier *)policy;
}

static void barrier_end_if_complete(struct sync_barrier *barrier, struct sync_actions *actions)
{
    if (!sync_round_is_complete(&barrier->round, &barrier->policy, 0))
        return;
    sync_round_fold(&barrier->round, &barrier->outer, actions);
    sync_round_release(&barrier->round, actions);
}

void sync_barrier_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                          struct sync_actions *actions)
{
    (void)now_ns;
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
}

void sync_barrier_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                          struct sync_actions *actions)
{
    (void)now_ns;
    struct sync_barrier *barrier = barrier_of(policy);
    sync_round_take(&barrier->round, push->worker, 1, actions);
    barrier_end_if_complete(barrier, actions);
}

void sync_barrier_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                           struct sync_actions *actions)
{
    (void)now_ns;
    struct sync_barrier *barrier = barrier_of(policy);
    sync_round_leave(&barrier->round, worker);
    barrier_end_if_complete(barrier, actions);
}

void sync_barrier_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->round = ((const struct sync_barrier *)policy)->round.number;
    out_status->local_steps = policy->settings.local_steps;
}
