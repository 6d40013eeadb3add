/*
 * AdaComm (Wang, Joshi 2019): all make tau steps, then W += mean(U); tau falls with the loss.
 *
 * After every interval of gamma: cand = ceil(tau_0 sqrt(F / F_0)); tau = cand if that is smaller
 * than tau, else ceil(tau / 2). A new tau holds from the end of a round on, so that all have made
 * the same number of steps. tau_0 is local_steps (40), or the best of `taus`: each is tried for
 * gamma from the same first model, and the one with the smallest loss is taken, from there again.
 * At the end of a trial everybody waits for its loss.
 */
#include "base/assert.h"
#include "sync/round.h"

#include <math.h>

struct adacomm {
    struct sync_policy policy;
    struct sync_round round;
    uint32_t tau_first, tau;
    double loss_first; /* F_0; 0: not measured yet */
    bool has_started;
    int64_t interval_ns; /* its start */
    bool is_asked;       /* for the loss that ends the interval, or F_0 */

    uint32_t trial;     /* index into taus, tau_count once they are over */
    bool is_trial_over; /* all are held until its loss comes */
    double trial_loss;  /* the smallest so far; INFINITY: none */
};

static struct adacomm *adacomm_of(struct sync_policy *policy)
{
    return (struct adacomm *)policy;
}

static int64_t gamma_ns(const struct adacomm *adacomm)
{
    return adacomm->policy.settings.gamma_ms * 1000000;
}

static bool is_trying(const struct adacomm *adacomm)
{
    return adacomm->trial < adacomm->policy.settings.tau_count;
}

static void adacomm_open(struct sync_policy *policy)
{
    struct adacomm *adacomm = adacomm_of(policy);
    adacomm->tau_first = policy->settings.local_steps;
    adacomm->tau = is_trying(adacomm) ? policy->settings.taus[0] : adacomm->tau_first;
    adacomm->trial_loss = (double)INFINITY;
}

static void ask(struct adacomm *adacomm, struct sync_actions *actions)
{
    adacomm->is_asked = true;
    sync_simple(actions, SYNC_EVALUATE, 0);
}

static void release_with_tau(struct adacomm *adacomm, struct sync_actions *actions)
{
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (adacomm->policy.is_member[i])
            sync_set_steps(actions, i, adacomm->tau, 0);
    sync_round_release(&adacomm->round, actions);
}

static void round_end_if_complete(struct adacomm *adacomm, int64_t now_ns,
                                  struct sync_actions *actions)
{
    if (adacomm->is_trial_over || !sync_round_is_complete(&adacomm->round, &adacomm->policy, 0))
        return;
    sync_round_fold(&adacomm->round, &(struct sync_outer){0}, actions);
    if (is_trying(adacomm) && now_ns >= adacomm->interval_ns + gamma_ns(adacomm)) {
        adacomm->is_trial_over = true;
        ask(adacomm, actions);
        return;
    }
    release_with_tau(adacomm, actions);
}

/* The loss at the end of a trial: on to the next one, or to training with the best. */
static void trial_end(struct adacomm *adacomm, int64_t now_ns, double loss,
                      struct sync_actions *actions)
{
    const struct sync_settings *settings = &adacomm->policy.settings;
    if (loss < adacomm->trial_loss || adacomm->trial == 0) {
        adacomm->trial_loss = isfinite(loss) ? loss : (double)INFINITY;
        adacomm->tau_first = settings->taus[adacomm->trial];
    }
    adacomm->trial++;
    adacomm->is_trial_over = false;
    adacomm->tau = is_trying(adacomm) ? settings->taus[adacomm->trial] : adacomm->tau_first;
    adacomm->interval_ns = now_ns;
    sync_simple(actions, SYNC_RETURN, 0);
    adacomm->round.gathered_count = 0; /* of who joined meanwhile: made on a model that is gone */
    release_with_tau(adacomm, actions);
}

static void interval_end(struct adacomm *adacomm, double loss)
{
    const double candidate = ceil(adacomm->tau_first * sqrt(loss / adacomm->loss_first));
    adacomm->tau = candidate < adacomm->tau ? (uint32_t)fmax(1, candidate) : (adacomm->tau + 1) / 2;
}

static void adacomm_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                            struct sync_actions *actions)
{
    struct adacomm *adacomm = adacomm_of(policy);
    sync_set_steps(actions, worker, adacomm->tau, 0);
    if (adacomm->has_started)
        return;
    adacomm->has_started = true;
    adacomm->interval_ns = now_ns;
    if (is_trying(adacomm))
        sync_simple(actions, SYNC_KEEP, 0);
    ask(adacomm, actions);
}

static void adacomm_on_push(struct sync_policy *policy, int64_t now_ns,
                            const struct sync_push *push, struct sync_actions *actions)
{
    struct adacomm *adacomm = adacomm_of(policy);
    sync_round_take(&adacomm->round, push->worker, 1, actions);
    round_end_if_complete(adacomm, now_ns, actions);
}

static void adacomm_on_tick(struct sync_policy *policy, int64_t now_ns,
                            const struct sync_loss *loss, struct sync_actions *actions)
{
    struct adacomm *adacomm = adacomm_of(policy);
    if (!adacomm->has_started)
        return;
    if (loss && adacomm->is_asked) {
        adacomm->is_asked = false;
        if (adacomm->is_trial_over) {
            trial_end(adacomm, now_ns, loss->loss, actions);
        } else if (adacomm->loss_first <= 0) {
            adacomm->loss_first = isfinite(loss->loss) ? loss->loss : 0;
        } else if (isfinite(loss->loss) && loss->loss > 0) {
            interval_end(adacomm, loss->loss);
        }
    }
    const bool is_over = now_ns >= adacomm->interval_ns + gamma_ns(adacomm);
    if (is_over && !adacomm->is_asked && !is_trying(adacomm)) {
        adacomm->interval_ns = now_ns;
        ask(adacomm, actions);
    }
}

static void adacomm_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                             struct sync_actions *actions)
{
    struct adacomm *adacomm = adacomm_of(policy);
    sync_round_leave(&adacomm->round, worker);
    round_end_if_complete(adacomm, now_ns, actions);
}

static int64_t adacomm_wake_ns(const struct sync_policy *policy)
{
    const struct adacomm *adacomm = (const struct adacomm *)policy;
    const bool waits = !adacomm->has_started || adacomm->is_asked || is_trying(adacomm);
    return waits ? INT64_MAX : adacomm->interval_ns + gamma_ns(adacomm);
}

static void adacomm_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    const struct adacomm *adacomm = (const struct adacomm *)policy;
    out_status->round = adacomm->round.number;
    out_status->local_steps = adacomm->tau;
    out_status->is_searching = is_trying(adacomm);
}

const struct sync_policy_ops sync_adacomm_ops = {
    .name = "adacomm",
    .size = sizeof(struct adacomm),
    .local_steps = 40,
    .open = adacomm_open,
    .on_join = adacomm_on_join,
    .on_push = adacomm_on_push,
    .on_tick = adacomm_on_tick,
    .on_leave = adacomm_on_leave,
    .wake_ns = adacomm_wake_ns,
    .status = adacomm_status,
};
