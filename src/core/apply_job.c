/*
 * Events about jobs.
 */
#include "base/memory.h"
#include "core/core_internal.h"

int apply_job_submitted(struct core *core, const struct event *event, struct error *error)
{
    const struct job_request *request = &event->job_submitted.request;
    if (job_request_check(request, error) < 0)
        return apply_unfit(event, error);
    uint8_t key[CORE_JOB_KEY_SIZE];
    const bool has_key = core_job_key(request, key);
    if (!apply_is_next_id(core, event->job_submitted.job) ||
        !core_account(core, request->account) || request->account == ACCOUNT_MINT)
        return apply_misfit(event, "a job needs a new id and an account that can pay", error);
    if (has_key && map_get_text(&core->jobs_by_key, core_bytes(key, sizeof(key))))
        return apply_misfit(event, "its idempotency key was used before", error);
    struct job *job = slab_take(&core->job_slab);
    job->id = core->last_id = event->job_submitted.job;
    job->request = *request;
    char *spec = memory_zeroed(1, request->spec.size + 1);
    if (request->spec.size)
        memcpy(spec, request->spec.data, request->spec.size);
    job->request.spec.data = spec;
    job->quote_micro = event->job_submitted.quote_micro;
    job->workers_wanted = request->workers_first;
    job->submitted_ms = event->time_ms;
    job->start_ms = event->job_submitted.start_ms;
    if (request->start == JOB_START_CHEAPEST) {
        const struct price_lock booked =
            core_booked_lock(core, job->start_ms ? job->start_ms : event->time_ms);
        job->booked = price_locks_take(&core->price_locks, &booked);
    }
    struct account *account = map_get(&core->accounts, request->account);
    if (core->settings.economy == ECONOMY_KARMA) {
        job->turn = core_karma_turn(core, account->id);
    } else if (!request->is_spare) {
        job->turn = queue_take_turn(&core->queue, account->queue_finish_tag, job->quote_micro);
        account->queue_finish_tag = job->turn.finish_tag;
    }
    map_put(&core->jobs, job->id, job);
    if (has_key)
        map_put_text(&core->jobs_by_key, core_bytes(key, sizeof(key)), job);
    core_set_job_timers(core, job);
    if (!request->is_spare)
        match_rounds_expect(core->rounds, job);
    core_index_job(core, job);
    apply_see_account(core, request->account, event->time_ms);
    core_count_submitted(core, job);
    return 0;
}

int apply_job_due(struct core *core, const struct event *event, struct error *error)
{
    struct job *job = map_get(&core->jobs, event->job_due.job);
    if (!job || job->state != JOB_STATE_PENDING || job->start_ms == 0 ||
        job->start_ms > event->time_ms)
        return apply_misfit(event, "no such job waits for this time", error);
    job->start_ms = 0;
    core_index_job(core, job);
    return 0;
}

int apply_job_waits(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->job_waits) *waits = &event->job_waits;
    struct job *job = map_get(&core->jobs, waits->job);
    if (!job || !job->waiting_numbers[0] || (waits->is_unhurried && !job->request.is_rush) ||
        (job->is_short == waits->is_short && job->is_unhurried == waits->is_unhurried))
        return apply_misfit(event, "no such job waits, or it was known", error);
    core_set_unhurried(core, job, waits->is_unhurried);
    core_mark_short(core, job, waits->is_short);
    return 0;
}

int apply_job_noted(struct core *core, const struct event *event, struct error *error)
{
    struct job *job = map_get(&core->jobs, event->job_noted.job);
    if (!job || (job->state != JOB_STATE_STARTING && job->state != JOB_STATE_RUNNING) ||
        strcmp(job->reason, event->job_noted.reason) == 0)
        return apply_misfit(event, "no such job runs, or it was known", error);
    memcpy(job->reason, event->job_noted.reason, sizeof(job->reason));
    return 0;
}

static bool has_enough_leases(const struct job *job)
{
    return job->lease_count >= (size_t)job->request.num_nodes + job_request_servers(&job->request);
}

static bool may_pass(const struct job *job, enum job_state to)
{
    switch (to) {
    case JOB_STATE_STARTING:
        return job->state == JOB_STATE_PENDING && has_enough_leases(job);
    case JOB_STATE_RUNNING:
        return job->state == JOB_STATE_STARTING;
    case JOB_STATE_STOPPING:
        return job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING;
    case JOB_STATE_SUCCEEDED:
    case JOB_STATE_FAILED:
        return job_state_has_leases(job->state) && job_all_leases_ended(job);
    case JOB_STATE_CANCELLED:
        return !job_state_is_final(job->state) && job_all_leases_ended(job);
    case JOB_STATE_PENDING: {
        char reason[JOB_REASON_SIZE];
        return (job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING) &&
               job->request.is_spare && job_all_leases_ended(job) &&
               job_judge(job, reason) == JOB_VERDICT_WAITS;
    }
    case JOB_STATE_COUNT:
        break;
    }
    return false;
}

/* As if it had just been submitted. */
static void wait_again(struct job *job)
{
    for (size_t i = 0; i < job->lease_count; i++)
        job->leases[i]->is_former = true;
    job->former_count += job->lease_count;
    job->lease_count = job->worker_count = 0;
    memset(job->servers, 0, sizeof(job->servers));
    job->matched_ms = job->started_ms = 0;
    job->workers_wanted = job->request.workers_first;
}

static bool is_within_limits(const struct job *job)
{
    const struct job_request *request = &job->request;
    return (request->max_total_micro == 0 ||
            job_committed_micro(job) <= request->max_total_micro) &&
           (request->max_hourly_micro == 0 || job_hourly_micro(job) <= request->max_hourly_micro);
}

int apply_job_state_changed(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->job_state_changed) *changed = &event->job_state_changed;
    struct job *job = map_get(&core->jobs, changed->job);
    if (!job || !may_pass(job, changed->state))
        return apply_misfit(event, "no such job is in a state before this one", error);
    if (changed->state == JOB_STATE_STOPPING ? !job_state_is_final(changed->outcome)
                                             : changed->outcome != changed->state)
        return apply_misfit(event, "the outcome is not one", error);
    if (changed->state == JOB_STATE_STARTING && !is_within_limits(job))
        return apply_misfit(event, "its leases cost more than its maximum", error);
    if (core_is_cancelled_late(job, event->time_ms) && changed->state == JOB_STATE_CANCELLED &&
        !core_is_forfeited(core, job))
        return apply_misfit(event, "what cancelling it so late costs was not paid", error);
    if (job->state == JOB_STATE_PENDING)
        core_count_wait(core, job, changed->state == JOB_STATE_CANCELLED, event->time_ms);
    job->state = changed->state;
    job->outcome = changed->outcome;
    memcpy(job->reason, changed->reason, sizeof(job->reason));
    if (job->state == JOB_STATE_STARTING) {
        job->matched_ms = event->time_ms;
        if (core->settings.economy != ECONOMY_KARMA && !job->request.is_spare)
            queue_serve(&core->queue, job->turn);
        job->quote_micro = 0;
        for (size_t i = 0; i < job->lease_count; i++)
            job->quote_micro = price_add_micro(job->quote_micro, job->leases[i]->quote_micro);
    }
    if (job->state == JOB_STATE_PENDING)
        wait_again(job);
    if (job->state == JOB_STATE_STOPPING)
        job->stopping_ms = event->time_ms;
    if (job_state_is_final(job->state)) {
        job->ended_ms = event->time_ms;
        core_count_ended(core, job);
    }
    core_index_job(core, job);
    return 0;
}

int apply_job_resized(struct core *core, const struct event *event, struct error *error)
{
    const int64_t workers = event->job_resized.workers;
    struct job *job = map_get(&core->jobs, event->job_resized.job);
    if (!job || (job->state != JOB_STATE_STARTING && job->state != JOB_STATE_RUNNING) ||
        job->workers_wanted == 0 || workers == job->workers_wanted)
        return apply_misfit(event, "no such job runs by a schedule, or it was known", error);
    if (workers < job->request.num_nodes || workers > job_request_nodes_max(&job->request))
        return apply_misfit(event, "these are not as many workers as the job may have", error);
    job->workers_wanted = workers;
    core_index_workers(core, job);
    return 0;
}

int apply_job_extended(struct core *core, const struct event *event, struct error *error)
{
    struct job *job = map_get(&core->jobs, event->job_extended.job);
    if (!job || (job->state != JOB_STATE_STARTING && job->state != JOB_STATE_RUNNING) ||
        event->job_extended.max_run_ms <= job->request.max_run_ms)
        return apply_misfit(event, "no such job runs for less", error);
    job->request.max_run_ms = event->job_extended.max_run_ms;
    core_set_lease_ends(core, job);
    return 0;
}
