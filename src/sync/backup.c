/*
 * Backup workers (Chen et al. 2016): rounds that end with the first k of n pushes, k = M - backups
 * (by default a tenth of the members are backups, at least one).
 *
 * Who comes later has worked on a model that is past: its push is dropped, and it is answered at
 * once with the new one.
 */
#include "sync/round.h"

struct backup {
    struct sync_policy policy;
    struct sync_round round;
    uint64_t round_of[SYNC_WORKER_MAX]; /* whose model the worker has */
};

static struct backup *backup_of(struct sync_policy *policy)
{
    return (struct backup *)policy;
}

/* How many may be missing at the end of a round; somebody always pushes. */
static uint32_t backup_count(const struct sync_policy *policy)
{
    const uint32_t members = policy->member_count;
    const uint32_t given = policy->settings.backups;
    const uint32_t wanted = given > 0 ? given : (members + 9) / 10;
    return members == 0 ? 0 : wanted < members ? wanted : members - 1;
}

static void round_end_if_complete(struct backup *backup, struct sync_actions *actions)
{
    if (!sync_round_is_complete(&backup->round, &backup->policy, backup_count(&backup->policy)))
        return;
    sync_round_fold(&backup->round, &(struct sync_outer){0}, actions);
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (backup->round.is_held[i])
            backup->round_of[i] = backup->round.number;
    sync_round_release(&backup->round, actions);
}

static void backup_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                           struct sync_actions *actions)
{
    (void)now_ns;
    backup_of(policy)->round_of[worker] = backup_of(policy)->round.number;
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
}

static void backup_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                           struct sync_actions *actions)
{
    (void)now_ns;
    struct backup *backup = backup_of(policy);
    if (backup->round_of[push->worker] < backup->round.number) {
        backup->round_of[push->worker] = backup->round.number;
        sync_simple(actions, SYNC_REPLY, push->worker);
        return;
    }
    sync_round_take(&backup->round, push->worker, 1, actions);
    round_end_if_complete(backup, actions);
}

static void backup_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                            struct sync_actions *actions)
{
    (void)now_ns;
    sync_round_leave(&backup_of(policy)->round, worker);
    round_end_if_complete(backup_of(policy), actions);
}

static void backup_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->round = ((const struct backup *)policy)->round.number;
    out_status->local_steps = policy->settings.local_steps;
}

const struct sync_policy_ops sync_backup_ops = {
    .name = "backup",
    .size = sizeof(struct backup),
    .local_steps = 1,
    .on_join = backup_on_join,
    .on_push = backup_on_push,
    .on_leave = backup_on_leave,
    .status = backup_status,
};
