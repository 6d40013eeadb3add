/*
 * Pace (ours): rounds in which everybody works for the same time, a soft barrier, and an outer
 * Nesterov momentum.
 *
 *     steps_i = v_i T,   T = h / mean(v),   h local steps on average
 *
 * h is local_steps, or else 8, more where a commit takes longer than six mean steps. A round ends
 * when all members have pushed, or at a deadline after its first push; then the mean of what came,
 * D = sum w U / M, enters: B = m B + D, W += rate (D + m B). A push that missed its round enters
 * the next one, with w = 1 / (1 + rounds missed); all others have w = 1. So nobody holds up the
 * rest, and a worker that jitters, freezes or comes and goes only weighs less.
 *
 * With overlap workers compute on while they wait for the end of the round: a round then takes T
 * however long a commit takes. By default it is on until commits are measured and where one takes
 * more than three mean steps, off below two. Without it each worker's time is shortened by how much
 * longer than the mean its commits take, and a late worker makes only what fits into the rest of
 * the round.
 *
 * A worker whose speed is not known yet pushes after one step.
 */
#include "base/assert.h"
#include "sync/policy_internal.h"

#include <math.h>

static const double steps_mean = 8;
static const double steps_per_commit = 1.25; /* h is at least so many mean commit times long */
static const double slack_share = 0.5;       /* of T: the deadline after a round's first push */
static const double slack_steps = 2;         /* of the slowest: at least so long */
static const double slack_first = 8;         /* rounds without speeds: of the time until then */
static const double overlap_steps_off = 2, overlap_steps_on = 3; /* a commit's mean steps */
static const double rate_default = 0.7, momentum_default = 0.9;

struct pace_worker {
    double speed;            /* v_i; 0: unknown */
    double commit_s;         /* O_i; 0: unknown */
    uint32_t steps, overlap; /* as last set */
    uint64_t round;          /* whose model it has */
    bool is_held;
};

struct pace {
    struct sync_policy policy;
    struct pace_worker workers[SYNC_WORKER_MAX];
    uint64_t round;
    int64_t round_ns;    /* its start */
    int64_t deadline_ns; /* INT64_MAX: nobody has pushed yet */
    uint32_t held_count; /* members that wait for the end of the round */
    uint32_t gathered_count;
    struct sync_outer outer;
    uint32_t overlap;
};

static struct pace *pace_of(struct sync_policy *policy)
{
    return (struct pace *)policy;
}

static void pace_open(struct sync_policy *policy)
{
    struct pace *pace = pace_of(policy);
    const struct sync_settings *settings = &policy->settings;
    pace->overlap = sync_overlap_of(settings, SYNC_OVERLAP_ON);
    pace->outer = sync_outer_nesterov(sync_outer_rate_of(settings, rate_default),
                                      sync_outer_momentum_of(settings, momentum_default));
    pace->deadline_ns = INT64_MAX;
}

/* Means over the members that are measured. */
struct pace_means {
    double speed, commit_s;
    double speed_min;
    double steps;    /* h */
    double period_s; /* T; 0: nothing is known */
};

static struct pace_means means_of(const struct pace *pace)
{
    struct pace_means means = {.speed_min = (double)INFINITY};
    uint32_t count = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        const struct pace_worker *worker = &pace->workers[i];
        if (!pace->policy.is_member[i] || worker->speed <= 0)
            continue;
        means.speed += worker->speed;
        means.commit_s += worker->commit_s;
        means.speed_min = fmin(means.speed_min, worker->speed);
        count++;
    }
    if (count == 0)
        return (struct pace_means){0};
    means.speed /= count;
    means.commit_s /= count;
    const double given = pace->policy.settings.local_steps;
    const double commit_steps = steps_per_commit * means.commit_s * means.speed;
    means.steps = given > 0 ? given : fmax(steps_mean, ceil(commit_steps));
    means.period_s = means.steps / means.speed;
    return means;
}

/* Steps made on a model that is past are worth less: they pay only where commits are dear. */
static void overlap_choose(struct pace *pace, const struct pace_means *means)
{
    const double commit_steps = means->commit_s * means->speed;
    if (pace->policy.settings.overlap != SYNC_OVERLAP_DEFAULT)
        return;
    if (means->commit_s <= 0 && pace->round < 1)
        return; /* as at the start: a commit may take any time */
    if (commit_steps < overlap_steps_off)
        pace->overlap = 0;
    else if (commit_steps > overlap_steps_on)
        pace->overlap = SYNC_OVERLAP_FREE;
}

/* What the worker does within `span_s` from its answer to its push's arrival. */
static uint32_t steps_within(const struct pace *pace, const struct pace_worker *worker,
                             double span_s)
{
    if (worker->speed <= 0)
        return 1;
    const double exact = worker->speed * span_s;
    const double whole = pace->overlap > 0 ? round(exact) : floor(exact);
    return (uint32_t)fmin(1e6, fmax(1, whole));
}

static uint32_t steps_of(const struct pace *pace, const struct pace_worker *worker,
                         const struct pace_means *means)
{
    double span_s = means->period_s;
    if (pace->overlap == 0)
        span_s += means->commit_s - worker->commit_s;
    return steps_within(pace, worker, span_s);
}

static void steps_set(struct pace *pace, uint32_t index, uint32_t steps,
                      struct sync_actions *actions)
{
    struct pace_worker *worker = &pace->workers[index];
    if (worker->steps == steps && worker->overlap == pace->overlap)
        return;
    worker->steps = steps;
    worker->overlap = pace->overlap;
    sync_set_steps(actions, index, steps, pace->overlap);
}

static void round_end(struct pace *pace, int64_t now_ns, struct sync_actions *actions)
{
    const struct pace_means means = means_of(pace);
    overlap_choose(pace, &means);
    const double members = fmax(1, pace->policy.member_count);
    sync_append(actions,
                (struct sync_action){.kind = SYNC_FOLD, .weight = members, .outer = pace->outer});
    pace->round++;
    pace->round_ns = now_ns;
    pace->deadline_ns = INT64_MAX;
    pace->held_count = pace->gathered_count = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        struct pace_worker *worker = &pace->workers[i];
        if (!worker->is_held)
            continue;
        worker->is_held = false;
        worker->round = pace->round;
        steps_set(pace, i, steps_of(pace, worker, &means), actions);
        sync_simple(actions, SYNC_RELEASE, i);
    }
}

static void round_end_if_complete(struct pace *pace, int64_t now_ns, struct sync_actions *actions)
{
    const bool is_full = pace->held_count >= pace->policy.member_count;
    if (pace->gathered_count > 0 && (is_full || now_ns >= pace->deadline_ns))
        round_end(pace, now_ns, actions);
}

static void deadline_begin(struct pace *pace, int64_t now_ns)
{
    const struct pace_means means = means_of(pace);
    double slack_s = 1e-3 * (double)pace->policy.settings.deadline_ms;
    if (slack_s <= 0)
        slack_s =
            fmax(slack_share * means.period_s, means.speed > 0 ? slack_steps / means.speed_min : 0);
    if (pace->policy.settings.deadline_ms == 0 && pace->round == 0)
        slack_s = fmax(slack_s, slack_first * 1e-9 * (double)(now_ns - pace->round_ns));
    pace->deadline_ns = now_ns + (int64_t)(1e9 * slack_s);
}

static void pace_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    struct pace *pace = pace_of(policy);
    if (policy->member_count == 1 && pace->gathered_count == 0)
        pace->round_ns = now_ns;
    pace->workers[worker] = (struct pace_worker){.round = pace->round};
    steps_set(pace, worker, 1, actions);
}

/* Without overlap a late worker would wait for nothing: it works in what is left of the round. */
static bool reply_if_late(struct pace *pace, int64_t now_ns, uint32_t index, uint64_t age,
                          struct sync_actions *actions)
{
    struct pace_worker *worker = &pace->workers[index];
    if (pace->overlap > 0 || age == 0)
        return false;
    const struct pace_means means = means_of(pace);
    const double past_s = 1e-9 * (double)(now_ns - pace->round_ns);
    const double left_s = means.period_s + means.commit_s - past_s - worker->commit_s;
    if (worker->speed * left_s < 1)
        return false;
    worker->round = pace->round;
    steps_set(pace, index, steps_within(pace, worker, left_s), actions);
    sync_simple(actions, SYNC_REPLY, index);
    return true;
}

static void pace_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                         struct sync_actions *actions)
{
    struct pace *pace = pace_of(policy);
    struct pace_worker *worker = &pace->workers[push->worker];
    ASSERT(!worker->is_held);
    if (push->compute_ns > 0)
        sync_smooth(&worker->speed, push->steps / (1e-9 * (double)push->compute_ns));
    if (push->commit_ns > 0)
        sync_smooth(&worker->commit_s, 1e-9 * (double)push->commit_ns);

    const uint64_t age = pace->round - worker->round;
    sync_gather(actions, push->worker, 1 / (1 + (double)age));
    pace->gathered_count++;
    if (pace->deadline_ns == INT64_MAX)
        deadline_begin(pace, now_ns);
    if (!reply_if_late(pace, now_ns, push->worker, age, actions)) {
        worker->is_held = true;
        pace->held_count++;
        sync_simple(actions, SYNC_HOLD, push->worker);
    }
    round_end_if_complete(pace, now_ns, actions);
}

static void pace_on_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                         struct sync_actions *actions)
{
    (void)loss;
    round_end_if_complete(pace_of(policy), now_ns, actions);
}

static void pace_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                          struct sync_actions *actions)
{
    struct pace *pace = pace_of(policy);
    if (pace->workers[worker].is_held)
        pace->held_count--;
    pace->workers[worker] = (struct pace_worker){0};
    if (policy->member_count > 0)
        round_end_if_complete(pace, now_ns, actions);
}

static int64_t pace_wake_ns(const struct sync_policy *policy)
{
    return ((const struct pace *)policy)->deadline_ns;
}

static void pace_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    const struct pace *pace = (const struct pace *)policy;
    const struct pace_means means = means_of(pace);
    out_status->round = pace->round;
    out_status->local_steps = means.steps;
    if (means.period_s > 0)
        out_status->commit_rate = 1e-3 * (double)policy->settings.gamma_ms / means.period_s;
}

const struct sync_policy_ops sync_pace_ops = {
    .name = "pace",
    .size = sizeof(struct pace),
    .local_steps = 0, /* from the commit times */
    .open = pace_open,
    .on_join = pace_on_join,
    .on_push = pace_on_push,
    .on_tick = pace_on_tick,
    .on_leave = pace_on_leave,
    .wake_ns = pace_wake_ns,
    .status = pace_status,
};
