/*
 * HSP (Siren, INFOCOM 2019): asynchronous inside an epoch, a barrier between epochs.
 *
 * Inside an epoch every push is applied and answered at once. Once the steps of all workers make up
 * an epoch (epoch_steps), who pushes is held; when all members have, they are released together
 * and the next epoch begins. How many there are may change at any time; it is asked for at the
 * barrier, where the loss is measured.
 *
 * The paper adds each update in full; here W += rate / M U, rate = outer_rate or 1, so that one
 * learning rate serves any number of workers.
 */
#include "sync/policy_internal.h"

enum { EPOCH_STEPS = 1000 };

struct hsp {
    struct sync_policy policy;
    bool is_held[SYNC_WORKER_MAX];
    uint32_t held_count;
    uint64_t epoch_steps; /* in one epoch */
    uint64_t steps;       /* in this one so far */
    uint64_t epoch;       /* that are over */
};

static struct hsp *hsp_of(struct sync_policy *policy)
{
    return (struct hsp *)policy;
}

static void hsp_open(struct sync_policy *policy)
{
    const uint64_t given = policy->settings.epoch_steps;
    hsp_of(policy)->epoch_steps = given > 0 ? given : EPOCH_STEPS;
}

static void epoch_end_if_complete(struct hsp *hsp, struct sync_actions *actions)
{
    if (hsp->held_count == 0 || hsp->held_count < hsp->policy.member_count)
        return;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        if (!hsp->is_held[i])
            continue;
        hsp->is_held[i] = false;
        sync_simple(actions, SYNC_RELEASE, i);
    }
    hsp->held_count = 0;
    hsp->steps = 0;
    hsp->epoch++;
    sync_simple(actions, SYNC_EVALUATE, 0);
}

static void hsp_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                        struct sync_actions *actions)
{
    (void)now_ns;
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
}

static void hsp_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                        struct sync_actions *actions)
{
    (void)now_ns;
    struct hsp *hsp = hsp_of(policy);
    hsp->steps += push->steps;
    sync_apply(actions, push->worker,
               sync_outer_rate_of(&policy->settings, 1) / policy->member_count);
    if (hsp->steps < hsp->epoch_steps) {
        sync_simple(actions, SYNC_REPLY, push->worker);
        return;
    }
    hsp->is_held[push->worker] = true;
    hsp->held_count++;
    sync_simple(actions, SYNC_HOLD, push->worker);
    epoch_end_if_complete(hsp, actions);
}

static void hsp_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    (void)now_ns;
    struct hsp *hsp = hsp_of(policy);
    if (hsp->is_held[worker]) {
        hsp->is_held[worker] = false;
        hsp->held_count--;
    }
    epoch_end_if_complete(hsp, actions);
}

static void hsp_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->round = ((const struct hsp *)policy)->epoch;
    out_status->local_steps = policy->settings.local_steps;
}

const struct sync_policy_ops sync_hsp_ops = {
    .name = "hsp",
    .size = sizeof(struct hsp),
    .local_steps = 1,
    .open = hsp_open,
    .on_join = hsp_on_join,
    .on_push = hsp_on_push,
    .on_leave = hsp_on_leave,
    .status = hsp_status,
};
