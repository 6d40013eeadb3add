/*
 * Asynchronous local SGD (Liu et al. 2024): nobody waits for others; local steps are scaled to
 * speed, steps_i = floor(H v_i / v_max), H = local_steps (50); delayed Nesterov momentum.
 *
 * Each update enters at once, W += rate / N U; once in N of them their mean D moves the momentum,
 * B = m B + D, W += rate m B. N is the number of members, rate 0.7, m 0.9. Momentum at every stale
 * update makes asynchronous training slower than a barrier, the authors found.
 *
 * A worker whose speed is not known yet makes an eighth of H steps.
 */
#include "sync/policy_internal.h"

#include <math.h>

struct async_local {
    struct sync_policy policy;
    double speed[SYNC_WORKER_MAX]; /* v_i; 0: unknown */
    uint32_t steps[SYNC_WORKER_MAX];
    uint32_t gathered_count;
    uint64_t round;
};

static struct async_local *local_of(struct sync_policy *policy)
{
    return (struct async_local *)policy;
}

static double speed_max(const struct async_local *local)
{
    double most = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (local->policy.is_member[i])
            most = fmax(most, local->speed[i]);
    return most;
}

static uint32_t steps_of(const struct async_local *local, uint32_t worker)
{
    const uint32_t most = local->policy.settings.local_steps;
    if (local->speed[worker] <= 0)
        return most >= 8 ? most / 8 : 1;
    return (uint32_t)fmax(1, floor(most * local->speed[worker] / speed_max(local)));
}

static void steps_set(struct async_local *local, uint32_t worker, struct sync_actions *actions)
{
    const uint32_t steps = steps_of(local, worker);
    if (steps == local->steps[worker])
        return;
    local->steps[worker] = steps;
    sync_set_steps(actions, worker, steps,
                   sync_overlap_of(&local->policy.settings, SYNC_OVERLAP_OFF));
}

static void momentum_fold(struct async_local *local, double rate, struct sync_actions *actions)
{
    const double momentum = sync_outer_momentum_of(&local->policy.settings, 0.9);
    const struct sync_action fold = {
        .kind = SYNC_FOLD,
        .outer = {.rate = rate, .momentum = momentum, .carried = momentum},
    };
    sync_append(actions, fold);
    local->gathered_count = 0;
    local->round++;
}

static void local_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                          struct sync_actions *actions)
{
    (void)now_ns;
    struct async_local *local = local_of(policy);
    local->speed[worker] = 0;
    local->steps[worker] = 0;
    steps_set(local, worker, actions);
}

static void local_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                          struct sync_actions *actions)
{
    (void)now_ns;
    struct async_local *local = local_of(policy);
    const double rate = sync_outer_rate_of(&policy->settings, 0.7);
    if (push->compute_ns > 0)
        sync_smooth(&local->speed[push->worker], push->steps / (1e-9 * (double)push->compute_ns));
    const struct sync_action apply = {
        .kind = SYNC_APPLY,
        .worker = push->worker,
        .weight = 1.0 / policy->member_count,
        .outer = {.rate = rate, .direct = 1},
    };
    sync_append(actions, apply);
    sync_gather(actions, push->worker, 1);
    local->gathered_count++;
    if (local->gathered_count >= policy->member_count)
        momentum_fold(local, rate, actions);
    steps_set(local, push->worker, actions);
    sync_simple(actions, SYNC_REPLY, push->worker);
}

static void local_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    const struct async_local *local = (const struct async_local *)policy;
    double sum = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (policy->is_member[i])
            sum += local->steps[i];
    out_status->round = local->round;
    out_status->local_steps = policy->member_count > 0 ? sum / policy->member_count : 0;
}

const struct sync_policy_ops sync_async_local_ops = {
    .name = "async-local",
    .size = sizeof(struct async_local),
    .local_steps = 50,
    .on_join = local_on_join,
    .on_push = local_on_push,
    .status = local_status,
};
