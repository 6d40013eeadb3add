/*
 * HSP (Siren, INFOCOM 2019): asynchronous inside an epoch with a bound on staleness, a barrier
 * between epochs.
 *
 * The version of the model is the number of pushes that entered it. A push whose worker got version
 * v and that enters as update u is u - v late, and never more than `staleness`: what is given, or
 * twice the members there are when the worker gets its model. So a worker that computes has a
 * deadline, the version at which its push enters at the latest. A push waits where its entering
 * now would make another that is under way too late, by the order of their deadlines: the one with
 * the first never waits. It is the rule of functions too (function/epoch_plan.h).
 *
 * An answer waits where one more that computes would be too late, or make another so: no more than
 * staleness + 1 compute at a time. Who joins gets its model at once, whatever there is: one that
 * has no place then is a guest, whose push is left out if it comes too late. By default there is a
 * place for everybody.
 *
 * Once the work of all workers makes up an epoch (epoch_steps, else one pass over the data where
 * its size is known, else 1000 steps), who pushes is held; when all members have, nobody computes:
 * that is the barrier. There the loss is measured and the driver may let members go; then all go
 * on. What was done beyond the epoch counts for the next.
 *
 * The paper adds each update in full; here W += rate / M U, rate = outer_rate or 1, so that one
 * learning rate serves any number of workers.
 */
#include "base/assert.h"
#include "sync/policy_internal.h"

#include <string.h>

enum { EPOCH_STEPS = 1000, STALENESS_OF_EACH = 2 };

struct hsp_worker {
    uint64_t version;  /* of the model it got last */
    uint64_t deadline; /* the last version at which its push may enter */
    bool has_place;    /* it is in `under_way` */
    bool has_pushed;   /* a push that has not entered yet */
    bool is_waiting;   /* nothing of it is under way: it is to be answered */
    uint64_t turn;     /* among those that wait */
    uint32_t steps;    /* of its push */
    uint64_t samples;
};

struct hsp {
    struct sync_policy policy;
    struct hsp_worker workers[SYNC_WORKER_MAX];
    uint32_t under_way[SYNC_WORKER_MAX]; /* who computes or has pushed, by deadline */
    uint32_t under_way_count, waiting_count;
    uint64_t version, turn;
    uint64_t staleness_seen;
    uint64_t steps, samples; /* of this epoch so far */
    uint64_t epoch;          /* that are over */
    bool is_ending;          /* this one has all its steps */
    bool is_at_barrier;
    uint32_t pusher; /* of the call at hand, not answered yet; SYNC_WORKER_MAX: nobody */
};

static struct hsp *hsp_of(struct sync_policy *policy)
{
    return (struct hsp *)policy;
}

static void hsp_open(struct sync_policy *policy)
{
    hsp_of(policy)->pusher = SYNC_WORKER_MAX;
}

static uint64_t staleness_now(const struct hsp *hsp)
{
    const uint64_t given = hsp->policy.settings.staleness;
    return given > 0 ? given : STALENESS_OF_EACH * (uint64_t)hsp->policy.member_count;
}

/* ---- Who is under way ------------------------------------------------------------------------ */

/* Where one with this deadline belongs: behind those that are as early. */
static uint32_t place_of(const struct hsp *hsp, uint64_t deadline)
{
    uint32_t at = hsp->under_way_count;
    while (at > 0 && hsp->workers[hsp->under_way[at - 1]].deadline > deadline)
        at--;
    return at;
}

/* Whether one more that gets the model now is in time, and everybody else still is. */
static bool may_begin(const struct hsp *hsp)
{
    const uint64_t deadline = hsp->version + staleness_now(hsp);
    const uint32_t place = place_of(hsp, deadline);
    if (hsp->version + place > deadline)
        return false;
    for (uint32_t i = place; i < hsp->under_way_count; i++)
        if (hsp->version + i + 1 > hsp->workers[hsp->under_way[i]].deadline)
            return false;
    return true;
}

static void begin(struct hsp *hsp, uint32_t index)
{
    struct hsp_worker *worker = &hsp->workers[index];
    *worker = (struct hsp_worker){.version = hsp->version,
                                  .deadline = hsp->version + staleness_now(hsp),
                                  .has_place = may_begin(hsp)};
    if (!worker->has_place)
        return;
    const uint32_t place = place_of(hsp, worker->deadline);
    memmove(&hsp->under_way[place + 1], &hsp->under_way[place],
            (hsp->under_way_count - place) * sizeof(*hsp->under_way));
    hsp->under_way[place] = index;
    hsp->under_way_count++;
}

static void take_out(struct hsp *hsp, uint32_t index)
{
    if (!hsp->workers[index].has_place)
        return;
    hsp->workers[index].has_place = false;
    uint32_t at = 0;
    while (hsp->under_way[at] != index)
        at++;
    hsp->under_way_count--;
    memmove(&hsp->under_way[at], &hsp->under_way[at + 1],
            (hsp->under_way_count - at) * sizeof(*hsp->under_way));
}

/* ---- Pushes enter ---------------------------------------------------------------------------- */

/* Whether all others that are under way can still enter in time, one after the other. */
static bool may_enter(const struct hsp *hsp, uint32_t index)
{
    uint64_t version = hsp->version + 1;
    for (uint32_t i = 0; i < hsp->under_way_count; i++) {
        const uint32_t other = hsp->under_way[i];
        if (other == index)
            continue;
        if (version > hsp->workers[other].deadline)
            return false;
        version++;
    }
    return true;
}

static uint64_t epoch_size(const struct hsp *hsp, bool *out_is_samples)
{
    const uint64_t steps = hsp->policy.settings.epoch_steps;
    *out_is_samples = steps == 0 && hsp->policy.pass_samples > 0;
    return *out_is_samples ? hsp->policy.pass_samples : steps > 0 ? steps : EPOCH_STEPS;
}

static void wait_for_answer(struct hsp *hsp, uint32_t index)
{
    struct hsp_worker *worker = &hsp->workers[index];
    take_out(hsp, index);
    worker->has_pushed = false;
    worker->is_waiting = true;
    worker->turn = hsp->turn++;
    hsp->waiting_count++;
}

static void enter(struct hsp *hsp, uint32_t index, struct sync_actions *actions)
{
    const struct hsp_worker *worker = &hsp->workers[index];
    const uint64_t late = hsp->version - worker->version;
    bool is_samples;
    ASSERT(hsp->version <= worker->deadline);
    if (late > hsp->staleness_seen)
        hsp->staleness_seen = late;
    sync_apply(actions, index,
               sync_outer_rate_of(&hsp->policy.settings, 1) / hsp->policy.member_count);
    hsp->version++;
    hsp->steps += worker->steps;
    hsp->samples += worker->samples;
    hsp->is_ending |= epoch_size(hsp, &is_samples) <= (is_samples ? hsp->samples : hsp->steps);
    wait_for_answer(hsp, index);
}

/* A guest's push has no deadline that others keep free. */
static bool enter_guest(struct hsp *hsp, uint32_t index, struct sync_actions *actions)
{
    const struct hsp_worker *worker = &hsp->workers[index];
    if (!worker->has_pushed || worker->has_place)
        return false;
    if (hsp->version > worker->deadline)
        wait_for_answer(hsp, index);
    else if (may_enter(hsp, index))
        enter(hsp, index, actions);
    else
        return false;
    return true;
}

/* One that may; false: none does. */
static bool enter_one(struct hsp *hsp, struct sync_actions *actions)
{
    for (uint32_t i = 0; i < hsp->under_way_count; i++) {
        const uint32_t index = hsp->under_way[i];
        if (!hsp->workers[index].has_pushed || !may_enter(hsp, index))
            continue;
        enter(hsp, index, actions);
        return true;
    }
    if (hsp->under_way_count + hsp->waiting_count == hsp->policy.member_count)
        return false; /* there are no guests */
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (hsp->policy.is_member[i] && enter_guest(hsp, i, actions))
            return true;
    return false;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static uint32_t longest_waiting(const struct hsp *hsp)
{
    uint32_t found = SYNC_WORKER_MAX;
    for (uint32_t i = 0; i < SYNC_WORKER_MAX; i++)
        if (hsp->workers[i].is_waiting &&
            (found == SYNC_WORKER_MAX || hsp->workers[i].turn < hsp->workers[found].turn))
            found = i;
    return found;
}

static void answer_who_may(struct hsp *hsp, struct sync_actions *actions)
{
    while (hsp->waiting_count > 0 && may_begin(hsp)) {
        const uint32_t index = longest_waiting(hsp);
        hsp->waiting_count--;
        begin(hsp, index);
        sync_simple(actions, index == hsp->pusher ? SYNC_REPLY : SYNC_RELEASE, index);
        if (index == hsp->pusher)
            hsp->pusher = SYNC_WORKER_MAX;
    }
}

static void go_as_far_as_possible(struct hsp *hsp, struct sync_actions *actions)
{
    if (hsp->is_at_barrier)
        return;
    while (enter_one(hsp, actions))
        continue;
    if (!hsp->is_ending) {
        answer_who_may(hsp, actions);
    } else if (hsp->waiting_count > 0 && hsp->waiting_count == hsp->policy.member_count) {
        hsp->is_at_barrier = true;
        hsp->epoch++;
    }
}

/* The pusher is answered or held; the barrier comes after that. */
static void act(struct hsp *hsp, uint32_t pusher, struct sync_actions *actions)
{
    const bool was_at_barrier = hsp->is_at_barrier;
    hsp->pusher = pusher;
    go_as_far_as_possible(hsp, actions);
    if (hsp->pusher != SYNC_WORKER_MAX)
        sync_simple(actions, SYNC_HOLD, pusher);
    hsp->pusher = SYNC_WORKER_MAX;
    if (!hsp->is_at_barrier || was_at_barrier)
        return;
    sync_simple(actions, SYNC_EVALUATE, 0);
    sync_simple(actions, SYNC_BARRIER, 0);
}

static void hsp_on_join(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                        struct sync_actions *actions)
{
    (void)now_ns;
    begin(hsp_of(policy), worker);
    sync_set_steps(actions, worker, policy->settings.local_steps, 0);
}

static void hsp_on_push(struct sync_policy *policy, int64_t now_ns, const struct sync_push *push,
                        struct sync_actions *actions)
{
    (void)now_ns;
    struct hsp *hsp = hsp_of(policy);
    hsp->workers[push->worker].has_pushed = true;
    hsp->workers[push->worker].steps = push->steps;
    hsp->workers[push->worker].samples = push->samples;
    act(hsp, push->worker, actions);
}

static void hsp_on_leave(struct sync_policy *policy, int64_t now_ns, uint32_t worker,
                         struct sync_actions *actions)
{
    (void)now_ns;
    struct hsp *hsp = hsp_of(policy);
    take_out(hsp, worker);
    hsp->waiting_count -= hsp->workers[worker].is_waiting;
    hsp->workers[worker] = (struct hsp_worker){0};
    act(hsp, SYNC_WORKER_MAX, actions);
}

static void hsp_on_go_on(struct sync_policy *policy, int64_t now_ns, struct sync_actions *actions)
{
    (void)now_ns;
    struct hsp *hsp = hsp_of(policy);
    bool is_samples;
    ASSERT(hsp->is_at_barrier);
    const uint64_t size = epoch_size(hsp, &is_samples);
    uint64_t *done = is_samples ? &hsp->samples : &hsp->steps;
    const uint64_t beyond = *done % size;
    hsp->steps = hsp->samples = 0;
    *done = beyond;
    hsp->is_at_barrier = hsp->is_ending = false;
    act(hsp, SYNC_WORKER_MAX, actions);
}

static void hsp_status(const struct sync_policy *policy, struct sync_status *out_status)
{
    out_status->round = ((const struct hsp *)policy)->epoch;
    out_status->local_steps = policy->settings.local_steps;
    out_status->staleness = ((const struct hsp *)policy)->staleness_seen;
}

const struct sync_policy_ops sync_hsp_ops = {
    .name = "hsp",
    .size = sizeof(struct hsp),
    .local_steps = 1,
    .open = hsp_open,
    .on_join = hsp_on_join,
    .on_push = hsp_on_push,
    .on_leave = hsp_on_leave,
    .on_go_on = hsp_on_go_on,
    .status = hsp_status,
};
