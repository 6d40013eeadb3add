/*
 * SSP (Ho et al. 2013): every push is applied at once (W += U / M); a worker waits while it is s or
 * more steps ahead of the slowest: step_i - min_j step_j >= s (slack, 40).
 *
 * Who joins begins at the smallest step of the members, so that nobody waits for it to catch up
 * what it was not there for.
 */
#include "sync/policy_internal.h"

enum { SLACK = 40 };

struct ssp {
    struct sync_policy policy;
    uint64_t steps[SYNC_WORKER_MAX];
    bool is_held[SYNC_WORKER_MAX];
    uint64_t slack;
};

static struct ssp *ssp_of(struct sync_policy *policy)
{
    return (struct ssp *)policy;
}

static void ssp_open(struct sync_policy *policy)
{
    ssp_of(policy)->slack = policy->settings.slack > 0 ? policy->settings.slack : SLACK;
}

/* Of all members but one; 0 when there is no other. */
static uint64_t smallest_step(const struct ssp *ssp, uint32_t except)
{
    uint64_t smallest = UINT64_MAX;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (ssp->policy.is_member[i] && i != except && ssp->steps[i] < smallest)
            smallest = ssp->steps[i];
    return smallest == UINT64_MAX ? 0 : smallest;
}

static void release_who_may(struct ssp *ssp, struct sync_actions *actions)
{
    const uint64_t smallest = smallest_step(ssp, SYNC_WORKER_MAX);
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        if (!ssp->is_held[i] || ssp->steps[i] - smallest >= ssp->slack)
            continue;
        ssp->is_held[i] = false;
        sync_simple(actions, SYNC_RELEASE, i);
    }
}

static void ssp_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                        struct sync_actions *actions)
{
    (void)now_ns;
    ssp_of(policy)->steps[worker] = smallest_step(ssp_of(policy), worker);
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
}

static void ssp_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                        struct sync_actions *actions)
{
    (void)now_ns;
    struct ssp *ssp = ssp_of(policy);
    ssp->steps[push->worker] += push->steps;
    sync_apply(actions, push->worker, 1.0 / policy->member_count);
    const uint64_t ahead = ssp->steps[push->worker] - smallest_step(ssp, SYNC_WORKER_MAX);
    ssp->is_held[push->worker] = ahead >= ssp->slack;
    sync_simple(actions, ssp->is_held[push->worker] ? SYNC_HOLD : SYNC_REPLY, push->worker);
    release_who_may(ssp, actions);
}

static void ssp_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    (void)now_ns;
    ssp_of(policy)->is_held[worker] = false;
    release_who_may(ssp_of(policy), actions);
}

static void ssp_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->local_steps = policy->settings.local_steps;
}

const struct sync_policy_ops sync_ssp_ops = {
    .name = "ssp",
    .size = sizeof(struct ssp),
    .local_steps = 1,
    .open = ssp_open,
    .on_join = ssp_on_join,
    .on_push = ssp_on_push,
    .on_leave = ssp_on_leave,
    .status = ssp_status,
};
