/*
 * BSP: rounds. Every member pushes once, is held, and all are released with W + mean(U) when the
 * last one has pushed.
 *
 * Who joins during a round takes part in it. Who leaves is no longer waited for; what it pushed in
 * the round stays in the mean.
 */
#include "base/assert.h"
#include "sync/policy_internal.h"

#include <stdlib.h>

struct bsp {
    struct sync_policy policy;
    bool has_pushed[SYNC_WORKER_MAX];
    uint32_t held_count;     /* members that have pushed in this round */
    uint32_t gathered_count; /* updates in the sum, those of members that left included */
};

static struct bsp *bsp_of(struct sync_policy *policy)
{
    return (struct bsp *)policy;
}

static struct sync_policy *bsp_create(const struct sync_settings *settings)
{
    (void)settings;
    struct bsp *bsp = sync_allocate(sizeof *bsp);
    return &bsp->policy;
}

static void bsp_free(struct sync_policy *policy)
{
    free(bsp_of(policy));
}

static void round_end_if_complete(struct bsp *bsp, struct sync_actions *actions)
{
    if (bsp->gathered_count == 0 || bsp->held_count < bsp->policy.member_count)
        return;
    sync_append(actions, (struct sync_action){.kind = SYNC_FOLD});
    for (uint32_t worker = 0; worker < SYNC_WORKER_MAX; worker++) {
        if (!bsp->has_pushed[worker])
            continue;
        bsp->has_pushed[worker] = false;
        sync_simple(actions, SYNC_RELEASE, worker);
    }
    bsp->held_count = bsp->gathered_count = 0;
}

static void bsp_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                        struct sync_actions *actions)
{
    (void)now_ns;
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
}

static void bsp_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                        struct sync_actions *actions)
{
    (void)now_ns;
    struct bsp *bsp = bsp_of(policy);
    ASSERT(!bsp->has_pushed[push->worker]);
    bsp->has_pushed[push->worker] = true;
    bsp->held_count++;
    bsp->gathered_count++;
    sync_gather(actions, push->worker, 1);
    sync_simple(actions, SYNC_HOLD, push->worker);
    round_end_if_complete(bsp, actions);
}

static void bsp_on_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                        struct sync_actions *actions)
{
    (void)policy, (void)now_ns, (void)loss, (void)actions;
}

static void bsp_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    (void)now_ns;
    struct bsp *bsp = bsp_of(policy);
    if (bsp->has_pushed[worker]) {
        bsp->has_pushed[worker] = false;
        bsp->held_count--;
    }
    round_end_if_complete(bsp, actions);
}

static int64_t bsp_wake_ns(const struct sync_policy *policy)
{
    (void)policy;
    return INT64_MAX;
}

static void bsp_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    (void)policy, (void)out_status;
}

const struct sync_policy_ops sync_bsp_ops = {
    .name = "bsp",
    .local_steps = 1,
    .create = bsp_create,
    .free = bsp_free,
    .on_join = bsp_on_join,
    .on_push = bsp_on_push,
    .on_tick = bsp_on_tick,
    .on_leave = bsp_on_leave,
    .wake_ns = bsp_wake_ns,
    .status = bsp_status,
};
