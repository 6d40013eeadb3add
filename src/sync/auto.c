/*
 * Auto: runs another policy, which it picks and tunes from what it measures, and says why.
 *
 * It begins with pace, whose first rounds measure everybody. Once all members have been measured
 * over four steps after their first push, or after a minute (gamma, if shorter), it picks by the
 * table of rules below; at each check, every
 * gamma, it looks again, and changes when the rules have said the same other thing twice. It also
 * watches the loss: when that is not finite or three tenths above its lowest at two checks running,
 * it goes back to the model kept at the last good check and takes the next more careful line.
 *
 * A change takes nothing from anybody: what was gathered is folded in, who is held is released.
 */
#include "base/assert.h"
#include "sync/policy_internal.h"

#include <math.h>
#include <stdio.h>

enum { CAREFUL_MAX = 2, STREAK = 2, BATCH = 32, MEASURED_STEPS = 4 };
static const int64_t measure_ns_max = INT64_C(60000000000);
static const double loss_rise = 1.3;
static const double even_most = 1.05;   /* H below which machines are called equal */
static const double steady_most = 0.02; /* spread below which speeds are called steady */

struct auto_worker {
    double speed, commit_s;
    double spread;  /* mean relative deviation of the speed from push to push */
    uint32_t steps; /* behind the speed: those of its first push, which may be slow, do not count */
    bool is_warm;   /* it has pushed before */
    bool is_held;   /* by the policy in force */
    uint32_t batch; /* as it set them; 0: the usual */
};

/* What the rules go by, over the members that are measured. */
struct auto_facts {
    uint32_t members, measured;
    double speed_mean, speed_min;
    double commit_steps; /* O in mean steps */
    double unevenness;   /* H: mean speed over the smallest */
    double spread;
    uint32_t careful; /* how often the loss ran away */
};

struct auto_choice {
    const char *policy;
    uint32_t local_steps;
    double momentum;
    enum sync_overlap overlap;
};

struct auto_policy {
    struct sync_policy policy;
    struct auto_worker workers[SYNC_WORKER_MAX];
    struct sync_policy *inner;
    struct auto_choice choice, wish;
    uint32_t wish_streak;
    uint32_t rise_streak;
    uint32_t careful;
    bool has_chosen, has_kept;
    bool is_asked, has_inner_asked; /* for a loss */
    double gathered;                /* weight in the driver's sum */
    double loss_min;
    int64_t start_ns, check_ns;
    char reason[SYNC_REASON_SIZE];
};

static struct auto_policy *auto_of(struct sync_policy *policy)
{
    return (struct auto_policy *)policy;
}

/* --- the rules: the first that fits is taken --- */

struct auto_rule {
    bool (*fits)(const struct auto_facts *facts);
    struct auto_choice choice;
    const char *why;
};

static bool is_alone(const struct auto_facts *facts)
{
    return facts->members <= 1;
}

static bool is_wild(const struct auto_facts *facts)
{
    return facts->careful >= 2;
}

static bool is_shaky(const struct auto_facts *facts)
{
    return facts->careful == 1;
}

static bool always(const struct auto_facts *facts)
{
    (void)facts;
    return true;
}

static const struct auto_rule rules[] = {
    {is_alone, {"tap", 0, 0, SYNC_OVERLAP_ON}, "one worker has nobody to keep in step with"},
    {is_wild, {"adsp", 0, -1, SYNC_OVERLAP_ON}, "the loss rose twice under outer momentum"},
    {is_shaky, {"pace", 0, 0.5, SYNC_OVERLAP_DEFAULT}, "the loss rose under full outer momentum"},
    {always, {"pace", 0, 0, SYNC_OVERLAP_DEFAULT}, "equal time for all and outer momentum"},
};

static struct auto_facts facts_of(const struct auto_policy *self)
{
    struct auto_facts facts = {.members = self->policy.member_count,
                               .speed_min = (double)INFINITY,
                               .careful = self->careful};
    double commit_s = 0;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        const struct auto_worker *worker = &self->workers[i];
        if (!self->policy.is_member[i] || worker->speed <= 0)
            continue;
        facts.measured++;
        facts.speed_mean += worker->speed;
        facts.speed_min = fmin(facts.speed_min, worker->speed);
        facts.spread += worker->spread;
        commit_s += worker->commit_s;
    }
    if (facts.measured == 0)
        return facts;
    facts.speed_mean /= facts.measured;
    facts.spread /= facts.measured;
    facts.unevenness = facts.speed_mean / facts.speed_min;
    facts.commit_steps = commit_s / facts.measured * facts.speed_mean;
    return facts;
}

static const struct auto_rule *rule_for(const struct auto_facts *facts)
{
    const struct auto_rule *rule = rules;
    while (!rule->fits(facts))
        rule++;
    return rule;
}

static struct auto_choice choice_for(const struct auto_policy *self, const struct auto_facts *facts)
{
    struct auto_choice choice = rule_for(facts)->choice;
    const double given = self->policy.settings.local_steps;
    const double commits = fmin(1000, ceil(4 * facts->commit_steps));
    choice.local_steps = (uint32_t)(given > 0 ? given : is_alone(facts) ? fmax(1, commits) : 0);
    return choice;
}

static bool choice_equal(const struct auto_choice *left, const struct auto_choice *right)
{
    return left->policy == right->policy && left->momentum == right->momentum &&
           left->overlap == right->overlap;
}

/* --- the policy in force --- */

/* Notes what the inner policy has done from action `first` on. */
static void observe(struct auto_policy *self, const struct sync_actions *actions, uint32_t first)
{
    for (uint32_t i = first; i < actions->count; i++) {
        const struct sync_action *action = &actions->items[i];
        struct auto_worker *worker = &self->workers[action->worker];
        if (action->kind == SYNC_HOLD)
            worker->is_held = true;
        else if (action->kind == SYNC_RELEASE || action->kind == SYNC_REPLY)
            worker->is_held = false;
        else if (action->kind == SYNC_GATHER)
            self->gathered += action->weight;
        else if (action->kind == SYNC_FOLD)
            self->gathered = 0;
        else if (action->kind == SYNC_SET_BATCH)
            worker->batch = action->batch;
        else if (action->kind == SYNC_EVALUATE)
            self->has_inner_asked = true;
    }
}

static struct sync_policy *inner_new(const struct auto_policy *self,
                                     const struct auto_choice *choice)
{
    struct sync_settings settings = self->policy.settings;
    struct sync_policy *inner = NULL;
    struct error error;
    settings.local_steps = choice->local_steps;
    if (settings.outer_momentum == 0)
        settings.outer_momentum = choice->momentum;
    if (settings.overlap == SYNC_OVERLAP_DEFAULT)
        settings.overlap = choice->overlap;
    /* Names and settings are those of the table above: there is nothing that could be wrong. */
    const int result = sync_policy_new(text_of(choice->policy), &settings, &inner, &error);
    ASSERT(result == 0);
    return inner;
}

/* The policy that comes may know nothing of batches. */
static void batch_restore(struct auto_policy *self, uint32_t index, struct sync_actions *actions)
{
    const uint32_t usual = self->policy.settings.batch > 0 ? self->policy.settings.batch : BATCH;
    struct auto_worker *worker = &self->workers[index];
    if (worker->batch == 0 || worker->batch == usual)
        return;
    worker->batch = usual;
    sync_append(actions,
                (struct sync_action){.kind = SYNC_SET_BATCH, .worker = index, .batch = usual});
}

static void change(struct auto_policy *self, int64_t now_ns, const struct auto_choice *choice,
                   struct sync_actions *actions)
{
    struct sync_policy *inner = inner_new(self, choice);
    if (self->gathered > 0)
        sync_simple(actions, SYNC_FOLD, 0);
    self->gathered = 0;
    sync_policy_free(self->inner);
    self->inner = inner;
    self->has_inner_asked = false;
    self->choice = *choice;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++) {
        if (!self->policy.is_member[i])
            continue;
        batch_restore(self, i, actions);
        const uint32_t first = actions->count;
        sync_policy_join(inner, now_ns, i, actions);
        observe(self, actions, first);
        if (self->workers[i].is_held)
            sync_simple(actions, SYNC_RELEASE, i);
        self->workers[i].is_held = false;
    }
}

/* What the rules went by, in words. */
static void facts_tell(const struct auto_facts *facts, char *out, size_t size)
{
    char speeds[48], steady[32];
    if (facts->measured == 0) {
        snprintf(out, size, "%u workers, none measured yet", facts->members);
        return;
    }
    if (facts->measured == 1)
        snprintf(speeds, sizeof speeds, "alone");
    else if (facts->unevenness < even_most)
        snprintf(speeds, sizeof speeds, "all about as fast");
    else
        snprintf(speeds, sizeof speeds, "the slowest %.1f times slower than the mean",
                 facts->unevenness);
    if (facts->spread < steady_most)
        snprintf(steady, sizeof steady, "steady");
    else
        snprintf(steady, sizeof steady, "%.0f %% up and down", 100 * facts->spread);
    snprintf(out, size, "%u worker%s, %u measured: %s, speed%s %s, a commit takes %.1f mean steps",
             facts->members, facts->members == 1 ? "" : "s", facts->measured, speeds,
             facts->measured == 1 ? "" : "s", steady, facts->commit_steps);
}

static void choose(struct auto_policy *self, int64_t now_ns, struct sync_actions *actions)
{
    const struct auto_facts facts = facts_of(self);
    const struct auto_choice choice = choice_for(self, &facts);
    if (!choice_equal(&choice, &self->choice))
        change(self, now_ns, &choice, actions);
    self->has_chosen = true;
    self->wish_streak = 0;
    char told[160];
    facts_tell(&facts, told, sizeof told);
    const int size = snprintf(self->reason, sizeof self->reason, "%s: %s (%s)", choice.policy,
                              rule_for(&facts)->why, told);
    ASSERT(size > 0 && (size_t)size < sizeof self->reason);
}

static bool is_time_to_choose(const struct auto_policy *self, int64_t now_ns)
{
    const int64_t gamma_ns = self->policy.settings.gamma_ms * 1000000;
    const int64_t limit_ns = gamma_ns < measure_ns_max ? gamma_ns : measure_ns_max;
    if (now_ns >= self->start_ns + limit_ns)
        return true;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (self->policy.is_member[i] &&
            (self->workers[i].commit_s <= 0 || self->workers[i].steps < MEASURED_STEPS))
            return false;
    return true;
}

static void choose_first(struct auto_policy *self, int64_t now_ns, struct sync_actions *actions)
{
    if (self->has_chosen || self->policy.member_count == 0 || !is_time_to_choose(self, now_ns))
        return;
    self->check_ns = now_ns;
    choose(self, now_ns, actions);
}

/* --- the watch --- */

static void ask(struct auto_policy *self, struct sync_actions *actions)
{
    self->is_asked = true;
    sync_simple(actions, SYNC_EVALUATE, 0);
}

static void run_away(struct auto_policy *self, int64_t now_ns, struct sync_actions *actions)
{
    self->rise_streak = 0;
    if (self->careful == CAREFUL_MAX)
        return; /* nothing more careful is known */
    self->careful++;
    if (self->has_kept) {
        sync_simple(actions, SYNC_RETURN, 0);
        self->gathered = 0;
    }
    choose(self, now_ns, actions);
}

static void loss_take(struct auto_policy *self, int64_t now_ns, double loss,
                      struct sync_actions *actions)
{
    self->is_asked = false;
    const bool is_bad =
        !isfinite(loss) || (self->loss_min > 0 && loss > loss_rise * self->loss_min);
    if (is_bad) {
        self->rise_streak++;
        if (self->rise_streak >= STREAK || !isfinite(loss))
            run_away(self, now_ns, actions);
        else
            ask(self, actions); /* a second look at once */
        return;
    }
    self->rise_streak = 0;
    if (self->loss_min > 0 && loss >= self->loss_min)
        return;
    self->loss_min = loss;
    self->has_kept = true;
    sync_simple(actions, SYNC_KEEP, 0);
}

static void check(struct auto_policy *self, int64_t now_ns, struct sync_actions *actions)
{
    self->check_ns = now_ns;
    if (!self->is_asked)
        ask(self, actions);
    const struct auto_facts facts = facts_of(self);
    const struct auto_choice wish = choice_for(self, &facts);
    if (facts.members == 0 || choice_equal(&wish, &self->choice)) {
        self->wish_streak = 0;
        return;
    }
    self->wish_streak = choice_equal(&wish, &self->wish) ? self->wish_streak + 1 : 1;
    self->wish = wish;
    if (self->wish_streak >= STREAK)
        choose(self, now_ns, actions);
}

/* --- the ops --- */

static void auto_open(struct sync_policy *policy)
{
    struct auto_policy *self = auto_of(policy);
    self->choice = rules[sizeof rules / sizeof *rules - 1].choice;
    self->choice.local_steps = policy->settings.local_steps;
    self->inner = inner_new(self, &self->choice);
    const int size =
        snprintf(self->reason, sizeof self->reason,
                 "%s, while speeds and commit times are measured", self->choice.policy);
    ASSERT(size > 0);
}

static void auto_close(struct sync_policy *policy)
{
    sync_policy_free(auto_of(policy)->inner);
}

static void auto_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    struct auto_policy *self = auto_of(policy);
    if (self->start_ns == 0)
        self->start_ns = now_ns;
    self->workers[worker] = (struct auto_worker){0};
    const uint32_t first = actions->count;
    sync_policy_join(self->inner, now_ns, worker, actions);
    observe(self, actions, first);
}

static void measure(struct auto_policy *self, const struct sync_push *push)
{
    struct auto_worker *worker = &self->workers[push->worker];
    const uint32_t usual = self->policy.settings.batch > 0 ? self->policy.settings.batch : BATCH;
    if (push->commit_ns > 0)
        sync_smooth(&worker->commit_s, 1e-9 * (double)push->commit_ns);
    const bool is_first = !worker->is_warm;
    worker->is_warm = true;
    if (push->compute_ns <= 0 || is_first)
        return;
    const bool has_batches = push->samples > 0 && !self->policy.settings.keeps_batch;
    const double steps = has_batches ? (double)push->samples / usual : push->steps;
    const double speed = steps / (1e-9 * (double)push->compute_ns);
    if (worker->speed > 0)
        sync_smooth(&worker->spread, fabs(speed - worker->speed) / worker->speed);
    sync_smooth(&worker->speed, speed);
    worker->steps += push->steps;
}

static void auto_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                         struct sync_actions *actions)
{
    struct auto_policy *self = auto_of(policy);
    measure(self, push);
    const uint32_t first = actions->count;
    sync_policy_push(self->inner, now_ns, push, actions);
    observe(self, actions, first);
    choose_first(self, now_ns, actions);
}

static void auto_on_tick(struct sync_policy *policy, int64_t now_ns, const struct sync_loss *loss,
                         struct sync_actions *actions)
{
    struct auto_policy *self = auto_of(policy);
    const uint32_t first = actions->count;
    const struct sync_loss *inner_loss = self->has_inner_asked ? loss : NULL;
    if (inner_loss)
        self->has_inner_asked = false;
    sync_policy_tick(self->inner, now_ns, inner_loss, actions);
    observe(self, actions, first);
    choose_first(self, now_ns, actions);
    if (!self->has_chosen)
        return;
    if (loss && self->is_asked)
        loss_take(self, now_ns, loss->loss, actions);
    if (now_ns >= self->check_ns + policy->settings.gamma_ms * 1000000)
        check(self, now_ns, actions);
}

static void auto_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                          struct sync_actions *actions)
{
    struct auto_policy *self = auto_of(policy);
    self->workers[worker] = (struct auto_worker){0};
    const uint32_t first = actions->count;
    sync_policy_leave(self->inner, now_ns, worker, actions);
    observe(self, actions, first);
    choose_first(self, now_ns, actions);
}

static int64_t auto_wake_ns(const struct sync_policy *policy)
{
    const struct auto_policy *self = (const struct auto_policy *)policy;
    const int64_t inner_ns = sync_policy_wake_ns(self->inner);
    const int64_t gamma_ns = policy->settings.gamma_ms * 1000000;
    if (policy->member_count == 0 && !self->has_chosen)
        return inner_ns;
    int64_t own_ns = self->check_ns + gamma_ns;
    if (!self->has_chosen)
        own_ns = self->start_ns + (gamma_ns < measure_ns_max ? gamma_ns : measure_ns_max);
    return own_ns < inner_ns ? own_ns : inner_ns;
}

static void auto_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    const struct auto_policy *self = (const struct auto_policy *)policy;
    *out_status = sync_policy_status(self->inner);
    out_status->is_searching |= !self->has_chosen;
    memcpy(out_status->reason, self->reason, sizeof out_status->reason);
}

const struct sync_policy_ops sync_auto_ops = {
    .name = "auto",
    .size = sizeof(struct auto_policy),
    .local_steps = 0, /* from what it measures */
    .open = auto_open,
    .close = auto_close,
    .on_join = auto_on_join,
    .on_push = auto_on_push,
    .on_tick = auto_on_tick,
    .on_leave = auto_on_leave,
    .wake_ns = auto_wake_ns,
    .status = auto_status,
};
