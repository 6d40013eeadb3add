/*
 * BatchTune (a baseline of the ADSP paper): batches in proportion to speed, so that all steps take
 * the same time, in the rounds of bsp (`batchtune`) or of fixed AdaComm (`batchtune-fixed`).
 *
 *     batch_i = total r_i / sum r,   total = batch * M,   r_i samples per second
 *
 * rounded so that the sum is the total and nobody has less than one. Each update weighs as many
 * samples as its steps had. Batches are set at the end of a round, once all members are measured,
 * and again when one should change by more than a tenth.
 */
#include "base/assert.h"
#include "sync/round.h"

#include <math.h>
#include <stdlib.h>

enum { BATCH = 32, BATCH_MAX = 65536 };
static const double change_min = 0.1;

struct batchtune {
    struct sync_policy policy;
    struct sync_round round;
    double speed[SYNC_WORKER_MAX]; /* r_i; 0: unknown */
    uint32_t batch[SYNC_WORKER_MAX];
    uint32_t batch_first;
};

static struct batchtune *batchtune_of(struct sync_policy *policy)
{
    return (struct batchtune *)policy;
}

static void batchtune_open(struct sync_policy *policy)
{
    const uint32_t given = policy->settings.batch;
    batchtune_of(policy)->batch_first = given > 0 ? given : BATCH;
}

/* Sum of the members' speeds; 0 when one is not known. */
static double speed_sum(const struct batchtune *tune)
{
    double sum = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        if (!tune->policy.is_member[i])
            continue;
        if (tune->speed[i] <= 0)
            return 0;
        sum += tune->speed[i];
    }
    return sum;
}

/* Largest remainder: the parts rounded down, then one more for those that lost most. */
static void batches_share(const struct batchtune *tune, double sum, uint32_t *out_batches)
{
    const uint64_t total = (uint64_t)tune->batch_first * tune->policy.member_count;
    double lost[SYNC_WORKER_MAX];
    uint64_t given = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        out_batches[i] = 0;
        lost[i] = -1;
        if (!tune->policy.is_member[i])
            continue;
        const double exact = fmin(BATCH_MAX, (double)total * tune->speed[i] / sum);
        out_batches[i] = exact < 1 ? 1 : (uint32_t)exact;
        lost[i] = exact - out_batches[i];
        given += out_batches[i];
    }
    for (; given < total; given++) {
        uint32_t most = 0;
        for (uint32_t i = 1; i < SYNC_WORKER_MAX; i++)
            if (lost[i] > lost[most])
                most = i;
        if (lost[most] <= 0)
            return; /* all have what they may */
        out_batches[most]++;
        lost[most] = 0;
    }
}

static void tune_batches(struct batchtune *tune, struct sync_actions *actions)
{
    const double sum = speed_sum(tune);
    if (sum <= 0)
        return;
    uint32_t wanted[SYNC_WORKER_MAX];
    batches_share(tune, sum, wanted);
    bool has_changed = false;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        const double change = fabs((double)wanted[i] - tune->batch[i]);
        has_changed |= tune->policy.is_member[i] && change > change_min * tune->batch[i];
    }
    for (uint32_t i = 0; has_changed && i < SYNC_WORKER_MAX; i++) {
        if (!tune->policy.is_member[i] || wanted[i] == tune->batch[i])
            continue;
        tune->batch[i] = wanted[i];
        sync_append(actions,
                    (struct sync_action){.kind = SYNC_SET_BATCH, .worker = i, .batch = wanted[i]});
    }
}

static void round_end_if_complete(struct batchtune *tune, struct sync_actions *actions)
{
    if (!sync_round_is_complete(&tune->round, &tune->policy, 0))
        return;
    sync_round_fold(&tune->round, &(struct sync_outer){0}, actions);
    tune_batches(tune, actions);
    sync_round_release(&tune->round, actions);
}

static void batchtune_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                              struct sync_actions *actions)
{
    (void)now_ns;
    struct batchtune *tune = batchtune_of(policy);
    tune->speed[worker] = 0;
    tune->batch[worker] = tune->batch_first;
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
    /* It may have been here before, with another. */
    sync_append(actions, (struct sync_action){
                             .kind = SYNC_SET_BATCH, .worker = worker, .batch = tune->batch_first});
}

static void batchtune_on_push(struct sync_policy *policy, int64_t now_ns,
                              const struct sync_push *push, struct sync_actions *actions)
{
    (void)now_ns;
    struct batchtune *tune = batchtune_of(policy);
    const uint64_t told = push->samples;
    const uint64_t samples = told > 0 ? told : (uint64_t)push->steps * tune->batch[push->worker];
    if (push->compute_ns > 0)
        sync_smooth(&tune->speed[push->worker],
                    (double)samples / (1e-9 * (double)push->compute_ns));
    sync_round_take(&tune->round, push->worker, (double)samples, actions);
    round_end_if_complete(tune, actions);
}

static void batchtune_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                               struct sync_actions *actions)
{
    (void)now_ns;
    sync_round_leave(&batchtune_of(policy)->round, worker);
    round_end_if_complete(batchtune_of(policy), actions);
}

static void batchtune_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->round = ((const struct batchtune *)policy)->round.number;
    out_status->local_steps = policy->settings.local_steps;
}

const struct sync_policy_ops sync_batchtune_ops = {
    .name = "batchtune",
    .size = sizeof(struct batchtune),
    .local_steps = 1,
    .open = batchtune_open,
    .on_join = batchtune_on_join,
    .on_push = batchtune_on_push,
    .on_leave = batchtune_on_leave,
    .status = batchtune_status,
};

const struct sync_policy_ops sync_batchtune_fixed_ops = {
    .name = "batchtune-fixed",
    .size = sizeof(struct batchtune),
    .local_steps = 40,
    .open = batchtune_open,
    .on_join = batchtune_on_join,
    .on_push = batchtune_on_push,
    .on_leave = batchtune_on_leave,
    .status = batchtune_status,
};
