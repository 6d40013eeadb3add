/*
 * ADSP (Hu, Wang, Wu, AAAI 2020): nobody waits; in each check period every worker makes the same
 * number of commits, however fast it is; the number is searched for while training.
 *
 * At each check the cumulative target grows by the rate, and worker i is sent
 *     period_i = max(smallest interval, G / dC_i - O_i),   dC_i = target - c_i
 * counted from the answer to its last commit. An update enters as W += U / M; with an outer
 * momentum m as B = m B + U / M, W += B (the paper's code, by default without).
 *
 * Beyond the paper: a search runs without stopping anybody; who falls more than a period behind or
 * joins late is not made to catch up what lies further back; the first rate comes from measured
 * speeds and commit times. With overlap commits take nobody's time, and the model moves only when
 * they come: the interval is the shortest there is, one step of the slowest and 3 largest O (2 from
 * an answer to the next push, so that a link is idle for most of the time). Without overlap it is
 * at least 8 mean and 4 largest O, so that commits take at most a quarter of anybody's time.
 */
#include "base/assert.h"
#include "sync/policy_internal.h"
#include "sync/search.h"

#include <math.h>
#include <stdlib.h>

enum { RESEARCH_PERIODS = 20 };
static const double loss_rise = 1.3;    /* of one check over the one before: search again */
static const double target_share = 0.9; /* of the loss at the start of a search */
static const double answer_commits = 2; /* from an answer to the next push at least, in O_i */
static const double rate_drift = 2.0;   /* of the measured start rate: search again */
static const int64_t probe_ns_min = 50000000, probe_ns_max = 1000000000;

struct adsp_worker {
    double commits;  /* c_i, counted as if it had always been here */
    double speed;    /* v_i, steps per second; 0: unknown */
    double commit_s; /* O_i; 0: unknown */
    int64_t period_ns;
    double wanted; /* dC_i of this period */
};

struct adsp {
    struct sync_policy policy;
    struct adsp_worker workers[SYNC_WORKER_MAX];
    bool has_started;     /* the first rate is chosen */
    int64_t joined_ns;    /* the first join */
    int64_t check_ns;     /* start of this check period */
    uint32_t rate;        /* commits per period */
    uint32_t start_rate;  /* what measurements said when the search began */
    double target;        /* cumulative commits at the end of this period */
    uint32_t check_count; /* since the search ended */
    struct rate_search search;
    struct sync_loss points[3]; /* of this period */
    uint32_t point_count;
    uint32_t asked_count; /* evaluations asked for in this period */
    double target_loss;   /* of this search */
    double check_loss;    /* at the last check; 0: none */
    bool has_loss_risen;  /* by loss_rise from one check to the next */
};

static struct adsp *adsp_of(struct sync_policy *policy)
{
    return (struct adsp *)policy;
}

static const struct adsp *adsp_of_const(const struct sync_policy *policy)
{
    return (const struct adsp *)policy;
}

static double gamma_s(const struct adsp *adsp)
{
    return 1e-3 * (double)adsp->policy.settings.gamma_ms;
}

static int64_t gamma_ns(const struct adsp *adsp)
{
    return adsp->policy.settings.gamma_ms * 1000000;
}

static int64_t probe_ns(const struct adsp *adsp)
{
    const int64_t wanted = gamma_ns(adsp) / 20;
    return wanted < probe_ns_min ? probe_ns_min : wanted > probe_ns_max ? probe_ns_max : wanted;
}

/* Only tells the worker when it changed by more than a hundredth. */
static void period_set(struct adsp *adsp, uint32_t index, double period_s,
                       struct sync_actions *actions)
{
    struct adsp_worker *worker = &adsp->workers[index];
    const int64_t period_ns = (int64_t)(1e9 * period_s);
    const int64_t change = llabs(period_ns - worker->period_ns);
    if (worker->period_ns > 0 && change * 100 <= worker->period_ns)
        return;
    worker->period_ns = period_ns;
    const struct sync_action action = {
        .kind = SYNC_SET_PERIOD,
        .worker = index,
        .period_ns = period_ns,
        .overlap = sync_overlap_of(&adsp->policy.settings, SYNC_OVERLAP_ON),
    };
    sync_append(actions, action);
}

static void worker_steer(struct adsp *adsp, uint32_t index, struct sync_actions *actions)
{
    struct adsp_worker *worker = &adsp->workers[index];
    const double gamma = gamma_s(adsp);
    const double behind_max = 2.0 * adsp->rate;
    worker->wanted = fmin(adsp->target - worker->commits, behind_max);
    double period = worker->wanted < 1 ? gamma : gamma / worker->wanted;
    period -= worker->commit_s;
    const double least = adsp->policy.settings.commit_interval_min_ms > 0
                             ? 1e-3 * (double)adsp->policy.settings.commit_interval_min_ms
                             : answer_commits * worker->commit_s;
    period_set(adsp, index, fmax(fmax(period, least), 1e-3), actions);
}

/* The most commits per period that keep to the limits above, and the rate to start from. */
struct rate_bounds {
    uint32_t start, most;
};

static struct rate_bounds rate_bounds_of(const struct adsp *adsp)
{
    double step_max = 0, commit_max = 0, commit_sum = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        const struct adsp_worker *worker = &adsp->workers[i];
        if (!adsp->policy.is_member[i])
            continue;
        if (worker->speed > 0)
            step_max = fmax(step_max, 1 / worker->speed);
        commit_max = fmax(commit_max, worker->commit_s);
        commit_sum += worker->commit_s;
    }
    const double commit_mean = commit_sum / fmax(1, adsp->policy.member_count);
    const bool is_busy = sync_overlap_of(&adsp->policy.settings, SYNC_OVERLAP_ON) > 0;
    double least = fmax(step_max, (is_busy ? 1 + answer_commits : 4) * commit_max);
    least = fmax(least, 1e-3 * (double)adsp->policy.settings.commit_interval_min_ms);
    least = fmax(least, 1e-3);
    const double start = is_busy ? least : fmax(least, 8 * commit_mean);
    const double gamma = gamma_s(adsp);
    return (struct rate_bounds){
        .start = (uint32_t)fmin(1e6, fmax(1, floor(gamma / start))),
        .most = (uint32_t)fmin(1e6, fmax(1, floor(gamma / least))),
    };
}

/* A new check period: everybody gets the next target. */
static void period_begin(struct adsp *adsp, int64_t now_ns, struct sync_actions *actions)
{
    /* A search waits for the loss at its end: what was due meanwhile is part of the target. */
    const int64_t late_ns = now_ns - (adsp->check_ns + gamma_ns(adsp));
    if (adsp->target > 0 && late_ns > 0)
        adsp->target += adsp->rate * (double)late_ns / (double)gamma_ns(adsp);
    adsp->check_ns = now_ns;
    adsp->rate = adsp->search.candidate;
    adsp->target += adsp->rate;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        if (!adsp->policy.is_member[i])
            continue;
        adsp->workers[i].commits = fmax(adsp->workers[i].commits, adsp->target - 2.0 * adsp->rate);
        worker_steer(adsp, i, actions);
    }
    adsp->asked_count = 1;
    if (adsp->point_count == 0)
        sync_append(actions, (struct sync_action){.kind = SYNC_EVALUATE});
}

static void search_begin(struct adsp *adsp)
{
    const struct rate_bounds bounds = rate_bounds_of(adsp);
    adsp->start_rate = bounds.start;
    const bool is_again = adsp->check_count > 0;
    uint32_t rate = is_again && adsp->rate <= bounds.most ? adsp->rate : bounds.start;
    rate_search_begin(&adsp->search, adsp->policy.settings.search, rate, bounds.most);
    adsp->check_count = 0;
    const double given = adsp->policy.settings.target_loss;
    adsp->target_loss = given > 0 ? given : target_share * adsp->check_loss;
}

static void start(struct adsp *adsp, int64_t now_ns, struct sync_actions *actions)
{
    adsp->has_started = true;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        adsp->workers[i].commits = 0;
    adsp->target = 0;
    search_begin(adsp);
    period_begin(adsp, now_ns, actions);
}

static bool is_measured(const struct adsp *adsp)
{
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (adsp->policy.is_member[i] && adsp->workers[i].commit_s <= 0)
            return false;
    return adsp->policy.member_count > 0;
}

static void adsp_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    struct adsp *adsp = adsp_of(policy);
    if (adsp->joined_ns == 0)
        adsp->joined_ns = now_ns;
    adsp->workers[worker] = (struct adsp_worker){0};
    if (!adsp->has_started) {
        period_set(adsp, worker, 1e-9 * (double)probe_ns(adsp), actions);
        return;
    }
    /* As if it had kept pace so far: the rest of this period is its part of the rate. */
    const double past = (double)(now_ns - adsp->check_ns) / (double)gamma_ns(adsp);
    adsp->workers[worker].commits = adsp->target - adsp->rate * fmax(0, 1 - past);
    adsp->workers[worker].wanted = adsp->rate;
    period_set(adsp, worker, gamma_s(adsp) / adsp->rate, actions);
}

static void adsp_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                         struct sync_actions *actions)
{
    struct adsp *adsp = adsp_of(policy);
    struct adsp_worker *worker = &adsp->workers[push->worker];
    worker->commits += 1;
    if (push->steps > 0 && push->compute_ns > 0)
        sync_smooth(&worker->speed, push->steps / (1e-9 * (double)push->compute_ns));
    if (push->commit_ns > 0)
        sync_smooth(&worker->commit_s, 1e-9 * (double)push->commit_ns);

    const double momentum = sync_outer_momentum_of(&policy->settings, 0);
    const struct sync_outer heavy_ball = {.rate = 1, .momentum = momentum, .carried = 1};
    const struct sync_action apply = {
        .kind = SYNC_APPLY,
        .worker = push->worker,
        .weight = sync_outer_rate_of(&policy->settings, 1) / policy->member_count,
        .outer = momentum > 0 ? heavy_ball : (struct sync_outer){0},
    };
    sync_append(actions, apply);
    sync_simple(actions, SYNC_REPLY, push->worker);
    if (!adsp->has_started && is_measured(adsp))
        start(adsp, now_ns, actions);
}

/* The finished period's reward, when its three losses came. */
static void search_advance(struct adsp *adsp)
{
    if (adsp->point_count < 3) {
        rate_search_abandon(&adsp->search); /* no evaluation in time: nothing to steer by */
        return;
    }
    if (adsp->target_loss <= 0)
        adsp->target_loss = target_share * adsp->points[0].loss;
    const struct sync_reward reward = sync_reward_of(adsp->points, adsp->target_loss);
    rate_search_feed(&adsp->search, &reward);
}

static bool wants_search(const struct adsp *adsp)
{
    if (adsp->check_count >= RESEARCH_PERIODS || adsp->has_loss_risen)
        return true;
    const double start_rate = rate_bounds_of(adsp).start;
    return start_rate > rate_drift * adsp->start_rate || start_rate * rate_drift < adsp->start_rate;
}

static void check(struct adsp *adsp, int64_t now_ns, struct sync_actions *actions)
{
    if (adsp->search.is_active) {
        search_advance(adsp);
    } else {
        adsp->check_count++;
        const uint32_t most = rate_bounds_of(adsp).most;
        if (wants_search(adsp))
            search_begin(adsp);
        else if (adsp->search.candidate > most)
            adsp->search.candidate = most;
    }
    adsp->has_loss_risen = false;
    /* The loss that ends one period of a search begins the next. */
    if (adsp->point_count == 3) {
        adsp->points[0] = adsp->points[2];
        adsp->point_count = 1;
    } else {
        adsp->point_count = 0;
    }
    period_begin(adsp, now_ns, actions);
}

static void loss_take(struct adsp *adsp, const struct sync_loss *loss)
{
    const uint32_t count = adsp->point_count;
    if (!isfinite(loss->loss) || count == 3 ||
        (count > 0 && loss->at_ns <= adsp->points[count - 1].at_ns))
        return;
    adsp->points[adsp->point_count++] = *loss;
    if (count == 0 || count == 2) {
        if (adsp->check_loss > 0 && loss->loss >= loss_rise * adsp->check_loss)
            adsp->has_loss_risen = true;
        adsp->check_loss = loss->loss;
    }
}

static void adsp_on_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                         struct sync_actions *actions)
{
    struct adsp *adsp = adsp_of(policy);
    if (!adsp->has_started) {
        /* A worker that cannot finish two commits within a period must not hold up the rest. */
        if (policy->member_count > 0 && now_ns >= adsp->joined_ns + gamma_ns(adsp))
            start(adsp, now_ns, actions);
        return;
    }
    if (loss)
        loss_take(adsp, loss);
    /* The next loss is asked for once the one before is there: each is of its own moment. */
    while (adsp->search.is_active && adsp->asked_count < 3 &&
           adsp->asked_count == adsp->point_count &&
           now_ns >= adsp->check_ns + adsp->asked_count * gamma_ns(adsp) / 2) {
        adsp->asked_count++;
        sync_append(actions, (struct sync_action){.kind = SYNC_EVALUATE});
    }
    /* While searching, the period lasts until its last loss is known, twice as long at most. */
    const int64_t end_ns = adsp->check_ns + gamma_ns(adsp);
    const bool can_end =
        !adsp->search.is_active || adsp->point_count == 3 || now_ns >= end_ns + gamma_ns(adsp);
    if (now_ns >= end_ns && can_end)
        check(adsp, now_ns, actions);
}

static void adsp_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                          struct sync_actions *actions)
{
    struct adsp *adsp = adsp_of(policy);
    adsp->workers[worker] = (struct adsp_worker){0};
    if (!adsp->has_started && is_measured(adsp))
        start(adsp, now_ns, actions);
}

static int64_t adsp_wake_ns(const struct sync_policy *policy)
{
    const struct adsp *adsp = adsp_of_const(policy);
    if (policy->member_count == 0 && !adsp->has_started)
        return INT64_MAX;
    if (!adsp->has_started)
        return adsp->joined_ns + gamma_ns(adsp);
    const int64_t end_ns = adsp->check_ns + gamma_ns(adsp);
    if (!adsp->search.is_active)
        return end_ns;
    if (adsp->asked_count < 3 && adsp->asked_count == adsp->point_count)
        return adsp->check_ns + adsp->asked_count * gamma_ns(adsp) / 2;
    return end_ns + gamma_ns(adsp);
}

static void adsp_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    const struct adsp *adsp = adsp_of_const(policy);
    out_status->commit_rate = adsp->rate;
    out_status->commit_target = adsp->target;
    out_status->is_searching = adsp->has_started && adsp->search.is_active;
    double sum = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        const struct adsp_worker *worker = &adsp->workers[i];
        if (policy->is_member[i] && worker->speed > 0 && worker->wanted > 0)
            sum += gamma_s(adsp) / (worker->wanted * worker->speed);
    }
    if (policy->member_count > 0)
        out_status->implicit_momentum = 1 - 1 / (1 + (1 - 1.0 / policy->member_count) * sum);
}

const struct sync_policy_ops sync_adsp_ops = {
    .name = "adsp",
    .size = sizeof(struct adsp),
    .local_steps = 1,
    .on_join = adsp_on_join,
    .on_push = adsp_on_push,
    .on_tick = adsp_on_tick,
    .on_leave = adsp_on_leave,
    .wake_ns = adsp_wake_ns,
    .status = adsp_status,
};
