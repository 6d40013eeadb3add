/*
 * TAP: every push is applied and answered at once; nobody waits and nothing bounds how stale an
 * update may be.
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
    sync_append(actions, (struct sync_action){
                             SYNC_SET_STEPS, worker, {.steps = policy->settings.local_steps}});
}

static void tap_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                        struct sync_actions *actions)
{
    (void)now_ns;
    sync_append(actions, (struct sync_action){
                             SYNC_APPLY, push->worker, {.weight = 1.0 / policy->member_count}});
    sync_append(actions, (struct sync_action){.kind = SYNC_REPLY, .worker = push->worker});
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
    .create = tap_create,
    .free = tap_free,
    .on_join = tap_on_join,
    .on_push = tap_on_push,
    .on_tick = tap_on_tick,
    .on_leave = tap_on_leave,
    .wake_ns = tap_wake_ns,
    .status = tap_status,
};
