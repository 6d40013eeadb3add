/* The jobs of a replay: from the first submit to the last lease. */
#include "base/assert.h"
#include "sim/replay_internal.h"

#include <inttypes.h>

static uint32_t index_of(const struct replay *replay, const struct replay_job *job)
{
    return (uint32_t)(job - replay->jobs);
}

static const struct sim_job *wish_of(const struct replay *replay, const struct replay_job *job)
{
    return &replay->workload->jobs[index_of(replay, job)];
}

static int64_t latest_start_ms(const struct replay *replay, const struct replay_job *job)
{
    const struct sim_job *wish = wish_of(replay, job);
    const int64_t for_the_end_ms = wish->latest_s * 1000 - job->left_ms;
    const bool has_started = replay->outcome->fates[index_of(replay, job)].has_started;
    return REPLAY_START + (!has_started && wish->start_s * 1000 < for_the_end_ms
                               ? wish->start_s * 1000
                               : for_the_end_ms);
}

static void leave(struct replay *replay, struct replay_job *job)
{
    struct job_fate *fate = &replay->outcome->fates[index_of(replay, job)];
    job->state = REPLAY_OVER;
    job->generation++;
    if (!fate->has_started)
        fate->wait_h = (double)(replay->now_ms - REPLAY_START) / (double)HOUR_MS -
                       (double)wish_of(replay, job)->arrival_s / 3600;
}

/* Too dear now: prices change when the next slot begins. */
static void ask_again_later(struct replay *replay, struct replay_job *job)
{
    const int64_t next_ms = (replay->now_ms / SLOT_MS + 1) * SLOT_MS;
    if (next_ms > latest_start_ms(replay, job)) {
        leave(replay, job);
        return;
    }
    job->state = REPLAY_AWAY;
    job->generation++;
    replay_schedule(replay, next_ms, REPLAY_SUBMIT, index_of(replay, job));
}

/* What was done is lost unless the job finishes, so the rest is worth all of it. */
static int64_t maximum_micro(const struct replay *replay, const struct replay_job *job)
{
    const struct sim_job *wish = wish_of(replay, job);
    const double maximum =
        (double)wish->maximum_micro * (double)wish->run_s * 1000 / (double)job->left_ms;
    return maximum < 1 ? 1 : maximum > 1e15 ? (int64_t)1e15 : (int64_t)maximum;
}

/* It is worth going ahead of others when even the dearest slot of its run, doubled, is not too
 * dear. */
static bool wants_rush(const struct replay *replay, const struct replay_job *job)
{
    if (!replay->options.has_rush || replay->options.is_karma)
        return false;
    const struct price_lock lock =
        core_price_lock(replay->core, replay->now_ms, replay->now_ms + job->left_ms);
    const struct resources width = sim_job_resources(wish_of(replay, job));
    const int64_t rate_micro = price_hourly_lock_micro(price_units(width, 1000), &lock);
    return maximum_micro(replay, job) >= 2 * rate_micro;
}

int replay_submit(struct replay *replay, uint32_t index, struct error *error)
{
    struct replay_job *job = &replay->jobs[index];
    const struct sim_job *wish = &replay->workload->jobs[index];
    if (replay->now_ms > latest_start_ms(replay, job)) {
        leave(replay, job);
        return 0;
    }
    job->is_rush = wants_rush(replay, job);
    struct command command = {
        .kind = COMMAND_SUBMIT_JOB,
        .submit_job = {
            .account = replay->accounts[wish->member],
            .name = "simulated",
            .spec = TEXT("{}"),
            .num_nodes = wish->node_count,
            .worker = wish->node,
            .max_hourly_micro = replay->options.is_karma ? 0 : maximum_micro(replay, job),
            /* A minute more, so that it ends by itself. */
            .max_run_ms = job->left_ms + 60000,
            .expected_run_ms = job->left_ms,
            .tick_ms = HOUR_MS,
            .start = wish->start,
            .deadline_ms = wish->start == JOB_START_NOW ? 0 : latest_start_ms(replay, job),
            .is_rush = job->is_rush}};
    struct error refusal;
    if (replay_do(replay, &command, &refusal) < 0) {
        if (refusal.code != ERROR_EXHAUSTED)
            return error_set(error, refusal.code, "job %" PRIu32 ": %.200s", index,
                             refusal.message);
        replay->counts.refused++;
        ask_again_later(replay, job);
        return 0;
    }
    job->id = replay->events.subject;
    job->state = REPLAY_PENDING;
    job->running_count = 0;
    job->is_again = false;
    job->generation++;
    map_put(&replay->job_index, job->id, job);
    replay_schedule(replay, latest_start_ms(replay, job) + 1, REPLAY_GIVE_UP, index);
    return 0;
}

static int cancel(struct replay *replay, const struct replay_job *job, struct error *error)
{
    const struct command command = {
        .kind = COMMAND_CANCEL_JOB,
        .cancel_job = {.account = replay->accounts[wish_of(replay, job)->member], .job = job->id}};
    return replay_do(replay, &command, error);
}

int replay_reconsider(struct replay *replay, struct error *error)
{
    for (size_t i = 0; i < replay->workload->job_count; i++) {
        struct replay_job *job = &replay->jobs[i];
        if (job->state != REPLAY_PENDING || job->running_count > 0 ||
            core_job(replay->core, job->id)->state != JOB_STATE_PENDING ||
            wants_rush(replay, job) == job->is_rush)
            continue;
        if (cancel(replay, job, error) < 0)
            return -1;
    }
    return 0;
}

int replay_give_up(struct replay *replay, uint32_t index, struct error *error)
{
    struct replay_job *job = &replay->jobs[index];
    if (job->state != REPLAY_PENDING)
        return 0;
    leave(replay, job);
    return cancel(replay, job, error);
}

int replay_tick(struct replay *replay, const struct lease *lease, struct error *error)
{
    const int64_t wall_ms = replay->now_ms - lease->started_ms;
    if (wall_ms <= lease->wall_ms)
        return 0;
    const struct command tick = {.kind = COMMAND_TICK_LEASE,
                                 .tick_lease = {.lease = lease->id,
                                                .fence = lease->fence,
                                                .tick_index = lease->tick_index + 1,
                                                .wall_ms = wall_ms}};
    return replay_do(replay, &tick, error);
}

static int end_lease(struct replay *replay, uint64_t id, enum lease_outcome outcome,
                     struct error *error)
{
    const struct lease *lease = core_lease(replay->core, id);
    if (!lease_is_open(lease))
        return 0;
    const bool has_run = lease->state == LEASE_STATE_RUNNING;
    const struct command end = {
        .kind = COMMAND_END_LEASE,
        .end_lease = {.lease = lease->id,
                      .fence = lease->fence,
                      .outcome = outcome,
                      .tick_index = has_run ? lease->tick_index + 1 : 0,
                      .wall_ms = has_run ? replay->now_ms - lease->started_ms : 0}};
    return replay_do(replay, &end, error);
}

int replay_finish(struct replay *replay, uint32_t index, struct error *error)
{
    struct replay_job *job = &replay->jobs[index];
    const struct sim_job *wish = &replay->workload->jobs[index];
    struct job_fate *fate = &replay->outcome->fates[index];
    if (job->state != REPLAY_RUNNING)
        return 0;
    fate->is_finished = true;
    replay->outcome->worth_micro += (double)wish->worth_micro * (double)wish->run_s / 3600;
    job->left_ms = 0;
    job->state = REPLAY_OVER;
    job->generation++;
    const struct job *seen = core_job(replay->core, job->id);
    uint64_t leases[JOB_NODES_MAX];
    const size_t count = seen->lease_count;
    ASSERT(count <= JOB_NODES_MAX);
    for (size_t i = 0; i < count; i++)
        leases[i] = seen->leases[i]->id;
    for (size_t i = 0; i < count; i++)
        if (end_lease(replay, leases[i], LEASE_OUTCOME_SUCCEEDED, error) < 0)
            return -1;
    return 0;
}

/* ---- What the core says ---------------------------------------------------------------------- */

static int take_offer(struct replay *replay, uint64_t lease, uint64_t fence, struct error *error)
{
    replay->counts.leases++;
    if (!lease_is_open(core_lease(replay->core, lease)))
        return 0;
    const struct command running = {.kind = COMMAND_LEASE_RUNNING,
                                    .lease_running = {.lease = lease, .fence = fence}};
    return replay_do(replay, &running, error);
}

static void note_start(struct replay *replay, uint64_t lease)
{
    struct replay_job *job = map_get(&replay->job_index, core_lease(replay->core, lease)->job);
    if (!job || job->state != REPLAY_PENDING)
        return;
    const struct sim_job *wish = wish_of(replay, job);
    if (++job->running_count < (size_t)wish->node_count)
        return;
    struct job_fate *fate = &replay->outcome->fates[index_of(replay, job)];
    if (!fate->has_started) {
        fate->has_started = true;
        fate->wait_h = (double)(replay->now_ms - REPLAY_START) / (double)HOUR_MS -
                       (double)wish->arrival_s / 3600;
    }
    job->state = REPLAY_RUNNING;
    job->running_since_ms = replay->now_ms;
    job->generation++;
    replay_schedule(replay, replay->now_ms + job->left_ms, REPLAY_FINISH, index_of(replay, job));
}

/* What the lease used, what it cost its lender, what was paid for it. */
static void account_lease(struct replay *replay, const struct lease *lease)
{
    if (lease->started_ms == 0)
        return;
    const struct sim_lender *lender = map_get(&replay->lender_index, lease->machine);
    const size_t index = (size_t)(lender - replay->workload->lenders);
    const struct replay_job *job = map_get(&replay->job_index, lease->job);
    ASSERT(lender && job);
    const uint32_t member = wish_of(replay, job)->member;
    struct outcome *outcome = replay->outcome;
    const double hours = (double)(replay->now_ms - lease->started_ms) / (double)HOUR_MS;
    const double cost_micro = (double)sim_rate_micro(lease->resources, price_cold_start()) * hours *
                              (double)lender->cost_milli / 1000;
    const double paid_micro = (double)lease->posted_micro;
    outcome->used_hours[0] += hours * (double)lease->resources.cores_milli / 1000;
    outcome->used_hours[1] +=
        hours * (double)lease->resources.ram_bytes / (double)(INT64_C(1) << 30);
    outcome->used_hours[2] += hours * (double)lease->resources.gpus_milli / 1000;
    outcome->cost_micro += cost_micro;
    outcome->lender_cost_micro[index] += cost_micro;
    outcome->lender_income_micro[index] += paid_micro;
    outcome->lent_micro[lender->member] += paid_micro;
    outcome->spent_micro[member] += paid_micro;
    outcome->fates[index_of(replay, job)].paid_micro += paid_micro;
}

/* A part was lost: the others stop too, and it goes on from its last checkpoint. */
static int note_end(struct replay *replay, uint64_t lease_id, struct error *error)
{
    const struct lease *lease = core_lease(replay->core, lease_id);
    struct replay_job *job = map_get(&replay->job_index, lease->job);
    if (!job)
        return 0; /* a lender's with itself: what it pays it gets */
    account_lease(replay, lease);
    const bool is_lost =
        lease->outcome == LEASE_OUTCOME_LOST || lease->outcome == LEASE_OUTCOME_RECLAIMED;
    replay->counts.lost_leases += is_lost;
    if (!is_lost || job->is_again || job->state == REPLAY_OVER)
        return 0;
    if (job->state == REPLAY_RUNNING) {
        const int64_t done_ms = replay->now_ms - job->running_since_ms;
        job->left_ms -= done_ms / CHECKPOINT_MS * CHECKPOINT_MS;
    }
    job->state = REPLAY_AWAY;
    job->generation++;
    job->is_again = true;
    if (job_state_is_final(core_job(replay->core, job->id)->state))
        return 0;
    return cancel(replay, job, error);
}

static void note_final_state(struct replay *replay, uint64_t id)
{
    struct replay_job *job = map_get(&replay->job_index, id);
    if (!job || job->id != id || job->state == REPLAY_OVER)
        return;
    job->id = 0;
    job->state = REPLAY_AWAY;
    job->generation++;
    replay_schedule(replay, replay->now_ms, REPLAY_SUBMIT, index_of(replay, job));
}

int replay_handle(struct replay *replay, const struct event *event, struct error *error)
{
    switch (event->kind) {
    case EVENT_LEASE_OFFERED:
        return take_offer(replay, event->lease_offered.lease, event->lease_offered.fence, error);
    case EVENT_LEASE_STARTED:
        note_start(replay, event->lease_started.lease);
        return 0;
    case EVENT_LEASE_STOP_WANTED:
        return end_lease(replay, event->lease_stop_wanted.lease, LEASE_OUTCOME_STOPPED, error);
    case EVENT_LEASE_ENDED:
        return note_end(replay, event->lease_ended.lease, error);
    case EVENT_JOB_STATE_CHANGED:
        if (job_state_is_final(event->job_state_changed.state))
            note_final_state(replay, event->job_state_changed.job);
        return 0;
    default:
        return 0; /* nothing that a lender or a member would act on */
    }
}
