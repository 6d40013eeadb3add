/*
 * TAP: every push is applied (W += U / M) and answered at once; nothing bounds how stale an update
 * may be. A worker waits for its answer, unless overlap is on.
 */
#include "sync/policy_internal.h"

static void tap_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                        struct sync_actions *actions)
{
    (void)now_ns;
    sync_set_steps(actions, worker, policy->settings.local_steps,
                   sync_overlap_of(&policy->settings, SYNC_OVERLAP_OFF));
}

static void tap_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                        struct sync_actions *actions)
{
    (void)now_ns;
    sync_apply(actions, push->worker, 1.0 / policy->member_count);
    sync_simple(actions, SYNC_REPLY, push->worker);
}

static void tap_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->local_steps = policy->settings.local_steps;
}

const struct sync_policy_ops sync_tap_ops = {
    .name = "tap",
    .size = sizeof(struct sync_policy),
    .local_steps = 1,
    .on_join = tap_on_join,
    .on_push = tap_on_push,
    .status = tap_status,
};
