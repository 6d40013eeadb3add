/*
 * Pace (ours): rounds in which everybody works for the same time, a soft barrier, and an outer
 * Nesterov momentum.
 *
 *     steps_i = v_i T,   T = h / mean(v),   h local steps on average
 *
 * h is local_steps, or else follows from how long a commit takes: the number of rounds to a loss
 * falls about as the root of h, so that their time is least where h is about a commit, and flat
 * around it: twice a commit, at least one step. A round ends when all members have pushed, or at a
 * deadline after its first push; then the mean of what came, D = sum w U / M, enters: B = m B + D,
 * W += rate (D + m B). m is r / (r + 2) in round r until that has grown to the momentum asked for.
 * A push that missed its round enters the next one, with w = 1 / (1 + rounds missed). So nobody
 * holds up the rest, and a worker that jitters, freezes or comes and goes only weighs less.
 *
 * With overlap workers compute on while they wait for the end of the round: a round then takes T
 * however long a commit takes, and h is a commit and one step more, so that an answer is there
 * before the next push is due. By default it is on until commits are measured and where one takes
 * more than half a mean step, off below a quarter. Without it each worker's time is shortened by
 * how much longer than the mean its commits take, and a late worker makes only what fits into the
 * rest of the round.
 *
 * Unless they are given, rate and m follow from the outer gain, rate / (1 - m): it is 10, but at
 * most M, since a mean of M updates has 1 / M of their noise. The rate is 0.7, and more only where
 * m would be above 0.9.
 *
 * The momentum u of the workers' own steps is left to the server where it remembers no fewer steps,
 * h / (1 - m) >= 1 / (1 - u): they make plain steps at their rate / (1 - u), for a velocity at each
 * spans many rounds of a slow worker. Where they keep it, a round leaves u^h of a velocity to the
 * next, so that a gradient comes again in 1 / (1 - u^h) rounds: the gain, then 7 at most, is
 * divided by that to the power 3/4, down to 1.
 *
 * Who makes fewer than four steps a round fills it by the size of its batches, and w is in
 * proportion to that: a sum of gradients has the least noise where all samples weigh the same; but
 * with keeps_batch, where what a whole batch is nobody knows, a step is a step. A
 * worker whose speed is not known yet pushes after one step; the speed of that step is forgotten at
 * its next push.
 */
#include "base/assert.h"
#include "sync/policy_internal.h"

#include <math.h>

enum { BATCH = 32, BATCH_PARTS = 8 };
static const double trimmed_steps = 4; /* who makes fewer has its batches trimmed */
static const double commits_apart = 2; /* h is so many mean commit times long, >= 1 step */
static const double slack_share = 0.5; /* of T: the deadline after a round's first push */
static const double slack_steps = 2;   /* of the slowest: at least so long */
static const double slack_first = 8;   /* rounds without speeds: of the time until then */
static const double overlap_steps_off = 0.25, overlap_steps_on = 0.5; /* a commit's mean steps */
static const double rate_default = 0.7, momentum_default = 0.9;
static const double gain_most = 10, gain_kept = 7; /* where workers keep their momentum */
static const double span_back = 0.75;   /* of theirs that the server remembers: they get it back */
static const double grown_rounds = 2;   /* m is r / (r + so many) at first */
static const double again_power = 0.75; /* how much gradients that come again take of the gain */

struct pace_worker {
    double speed;                   /* v_i, of whole batches; 0: unknown */
    double commit_s;                /* O_i; 0: unknown */
    bool is_warm;                   /* its speed is of more than its first push */
    uint32_t steps, overlap, batch; /* as last set */
    bool is_plain;
    uint64_t round; /* whose model it has */
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
    bool has_taken; /* the workers' momentum */
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
    const double commit_steps = means.commit_s * means.speed;
    const double own = pace->overlap > 0 ? 1 + commit_steps : fmax(1, commits_apart * commit_steps);
    means.steps = given > 0 ? given : own;
    means.period_s = means.steps / means.speed;
    return means;
}

/* Steps made on a model that is past are worth less: they pay where waiting would cost more. */
static void overlap_choose(struct pace *pace)
{
    const struct pace_means means = means_of(pace);
    const double commit_steps = means.commit_s * means.speed;
    if (pace->policy.settings.overlap != SYNC_OVERLAP_DEFAULT)
        return;
    if (means.commit_s <= 0 && pace->round < 1)
        return; /* as at the start: a commit may take any time */
    if (commit_steps < overlap_steps_off)
        pace->overlap = 0;
    else if (commit_steps > overlap_steps_on)
        pace->overlap = SYNC_OVERLAP_FREE;
}

static uint32_t whole_batch(const struct pace *pace)
{
    return pace->policy.settings.batch > 0 ? pace->policy.settings.batch : BATCH;
}

/* What a worker does in a round. */
struct pace_work {
    uint32_t steps, batch;
};

/* What the worker does within `span_s` from its answer to its push's arrival. Few whole steps would
 * fill it badly: their batches are trimmed, in eighths. */
static struct pace_work work_within(const struct pace *pace, const struct pace_worker *worker,
                                    double span_s)
{
    struct pace_work work = {1, whole_batch(pace)};
    if (worker->speed <= 0)
        return work;
    const double exact = worker->speed * span_s;
    if (exact >= trimmed_steps || work.batch < BATCH_PARTS || pace->policy.settings.keeps_batch) {
        const double whole = pace->overlap > 0 ? round(exact) : floor(exact);
        work.steps = (uint32_t)fmin(1e6, fmax(1, whole));
        return work;
    }
    const double steps = fmax(1, ceil(exact - 1e-6));
    const double parts = fmin(BATCH_PARTS, fmax(1, floor(BATCH_PARTS * exact / steps + 1e-6)));
    work.steps = (uint32_t)steps;
    work.batch = (uint32_t)(work.batch * parts / BATCH_PARTS);
    return work;
}

static struct pace_work work_of(const struct pace *pace, const struct pace_worker *worker,
                                const struct pace_means *means)
{
    double span_s = means->period_s;
    if (pace->overlap == 0)
        span_s += means->commit_s - worker->commit_s;
    return work_within(pace, worker, span_s);
}

static void work_set(struct pace *pace, uint32_t index, struct pace_work work,
                     struct sync_actions *actions)
{
    struct pace_worker *worker = &pace->workers[index];
    if (worker->batch != work.batch)
        sync_append(actions, (struct sync_action){
                                 .kind = SYNC_SET_BATCH, .worker = index, .batch = work.batch});
    if (worker->steps != work.steps || worker->overlap != pace->overlap ||
        worker->is_plain != pace->has_taken)
        sync_append(actions, (struct sync_action){.kind = SYNC_SET_STEPS,
                                                  .worker = index,
                                                  .steps = work.steps,
                                                  .overlap = pace->overlap,
                                                  .is_plain = pace->has_taken});
    worker->batch = work.batch;
    worker->steps = work.steps;
    worker->overlap = pace->overlap;
    worker->is_plain = pace->has_taken;
}

/* The outer step once m has grown. */
static struct sync_outer outer_grown(const struct pace *pace, double steps)
{
    const struct sync_settings *settings = &pace->policy.settings;
    const double rate = pace->outer.rate, members = pace->policy.member_count;
    if (settings->outer_momentum != 0) /* given */
        return pace->outer;
    const double kept = pace->has_taken ? 0 : settings->momentum;
    const double once = pow(1 - pow(kept, steps), again_power);
    double most = kept > 0 ? gain_kept : gain_most;
    if (settings->outer_rate > 0) /* given */
        most = rate / (1 - momentum_default);
    const double gain = fmax(1, fmin(most, members) * once);
    const double momentum = fmin(momentum_default, fmax(0, 1 - rate / gain));
    return sync_outer_nesterov(fmax(rate, gain * (1 - momentum)), momentum);
}

/* Nesterov's own sequence until it has grown to m: early rounds point the wrong way soon. */
static struct sync_outer outer_now(const struct pace *pace, double steps)
{
    const struct sync_outer outer = outer_grown(pace, steps);
    const double grown = (double)pace->round / ((double)pace->round + grown_rounds);
    return sync_outer_nesterov(outer.rate, fmin(outer.momentum, grown));
}

/* Who gives the outer momentum has the workers' own in mind. */
static void momentum_choose(struct pace *pace, struct sync_actions *actions)
{
    const struct sync_settings *settings = &pace->policy.settings;
    const bool had_taken = pace->has_taken;
    if (settings->momentum <= 0 || settings->keeps_momentum || settings->outer_momentum != 0)
        return;
    const double steps = fmax(1, means_of(pace).steps);
    pace->has_taken = true; /* what it would remember then */
    const double remembered = steps / (1 - outer_grown(pace, steps).momentum);
    const double needed = (had_taken ? span_back : 1) / (1 - settings->momentum);
    pace->has_taken = remembered >= needed - 1e-9;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX && pace->has_taken != had_taken; i++) {
        const struct pace_worker *worker = &pace->workers[i];
        if (pace->policy.is_member[i] && worker->steps > 0)
            work_set(pace, i, (struct pace_work){worker->steps, worker->batch}, actions);
    }
}

static void round_end(struct pace *pace, int64_t now_ns, struct sync_actions *actions)
{
    overlap_choose(pace);
    momentum_choose(pace, actions);
    const struct pace_means means = means_of(pace);
    const double members = fmax(1, pace->policy.member_count);
    const struct sync_outer outer = outer_now(pace, means.steps);
    sync_append(actions,
                (struct sync_action){.kind = SYNC_FOLD, .weight = members, .outer = outer});
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
        work_set(pace, i, work_of(pace, worker, &means), actions);
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
    pace->workers[worker] = (struct pace_worker){.round = pace->round, .batch = whole_batch(pace)};
    momentum_choose(pace, actions);
    work_set(pace, worker, (struct pace_work){1, whole_batch(pace)}, actions);
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
    work_set(pace, index, work_within(pace, worker, left_s), actions);
    sync_simple(actions, SYNC_REPLY, index);
    return true;
}

/* A first step may take many times as long as those that follow: it is only a first guess. */
static void speed_take(struct pace_worker *worker, double speed)
{
    const bool is_guess = worker->speed > 0 && !worker->is_warm;
    if (is_guess)
        worker->speed = 0;
    worker->is_warm |= is_guess;
    sync_smooth(&worker->speed, speed);
}

/* What its steps are of steps of whole batches. */
static double share_of(const struct pace *pace, const struct sync_push *push)
{
    const uint64_t set = (uint64_t)push->steps * pace->workers[push->worker].batch;
    const uint64_t samples = push->samples > 0 ? push->samples : set;
    if (pace->policy.settings.keeps_batch || push->steps == 0)
        return 1;
    return (double)samples / push->steps / whole_batch(pace);
}

static void pace_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                         struct sync_actions *actions)
{
    struct pace *pace = pace_of(policy);
    struct pace_worker *worker = &pace->workers[push->worker];
    ASSERT(!worker->is_held);
    const double share = share_of(pace, push);
    if (push->compute_ns > 0)
        speed_take(worker, share * push->steps / (1e-9 * (double)push->compute_ns));
    if (push->commit_ns > 0)
        sync_smooth(&worker->commit_s, 1e-9 * (double)push->commit_ns);

    const uint64_t age = pace->round - worker->round;
    sync_gather(actions, push->worker, fmin(1, share) / (1 + (double)age));
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
