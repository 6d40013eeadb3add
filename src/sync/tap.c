/*
 * TAP: every push is applied (W += U / M) and answered at once; nothing bounds how stale an update
 * may be. A worker waits for its answer, unless overlap is on.
 */
#include "sync/policy_internal.h"

#include <stdlib.h>

static struct sync_policy *tap_create(const struct sync_settings *settings)
{
    (void)settings;
    return sync_allocate(sizeof(struct sync_policy));
}

static void tap_free(struct sync_policy *policy)
{
    free(policy);
}

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

static void tap_on_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                        struct sync_actions *actions)
{
    (void)policy, (void)now_ns, (void)loss, (void)actions;
}

static void tap_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    (void)policy, (void)now_ns, (void)worker, (void)actions;
}

static int64_t tap_wake_ns(const struct sync_policy *policy)
{
    (void)policy;
    return INT64_MAX;
}

static void tap_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    (void)policy, (void)out_status;
}

const struct sync_policy_ops sync_tap_ops = {
    .name = "tap",
    .local_steps = 1,
    .create = tap_create,
    .free = tap_free,
    .on_join = tap_on_join,
    .on_push = tap_on_push,
    .on_tick = tap_on_tick,
    .on_leave = tap_on_leave,
    .wake_ns = tap_wake_ns,
    .status = tap_status,
};
