/*
 * Events about jobs and their leases.
 */
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
    struct job *job = apply_allocate(sizeof(*job));
    job->id = core->last_id = event->job_submitted.job;
    job->request = *request;
    char *spec = apply_allocate(request->spec.size + 1);
    if (request->spec.size)
        memcpy(spec, request->spec.data, request->spec.size);
    job->request.spec.data = spec;
    job->quote_micro = event->job_submitted.quote_micro;
    job->submitted_ms = event->time_ms;
    job->start_ms = event->job_submitted.start_ms;
    struct account *account = map_get(&core->accounts, request->account);
    if (core->settings.economy == ECONOMY_KARMA) {
        job->turn = core_karma_turn(core, account->id);
    } else {
        job->turn = queue_take_turn(&core->queue, account->queue_finish_tag, job->quote_micro);
        account->queue_finish_tag = job->turn.finish_tag;
    }
    map_put(&core->jobs, job->id, job);
    if (has_key)
        map_put_text(&core->jobs_by_key, core_bytes(key, sizeof(key)), job);
    core_set_job_timers(core, job);
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

static bool has_enough_leases(const struct job *job)
{
    return job->lease_count >= (size_t)job->request.num_nodes + job_has_server(job);
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
    case JOB_STATE_PENDING:
    case JOB_STATE_COUNT:
        break;
    }
    return false;
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
    if (job->state == JOB_STATE_PENDING && changed->state != JOB_STATE_CANCELLED)
        core_count_wait(core, job, event->time_ms);
    job->state = changed->state;
    job->outcome = changed->outcome;
    memcpy(job->reason, changed->reason, sizeof(job->reason));
    if (job->state == JOB_STATE_STARTING) {
        job->matched_ms = event->time_ms;
        if (core->settings.economy != ECONOMY_KARMA)
            queue_serve(&core->queue, job->turn);
        job->quote_micro = 0;
        for (size_t i = 0; i < job->lease_count; i++)
            job->quote_micro = price_add_micro(job->quote_micro, job->leases[i]->quote_micro);
    }
    if (job->state == JOB_STATE_STOPPING)
        job->stopping_ms = event->time_ms;
    if (job_state_is_final(job->state)) {
        job->ended_ms = event->time_ms;
        core_count_ended(core, job);
    }
    core_index_job(core, job);
    return 0;
}

/* One more worker of a job that is under way: the successor of a rank, or the next rank. */
static bool is_more(const struct job *job, enum lease_role role, uint64_t rank)
{
    if (role != LEASE_ROLE_WORKER || job->lease_count >= JOB_LEASES_MAX)
        return false;
    return rank == job->worker_count ? job_can_grow(job)
                                     : rank < job->worker_count && job_lost_rank(job, rank) == rank;
}

static bool is_expected_part(const struct job *job, enum lease_role role, uint64_t rank)
{
    const bool is_server = job_has_server(job) && job->lease_count == 0;
    const size_t most = (size_t)job_request_nodes_max(&job->request) + job_has_server(job);
    return job->lease_count < most && role == (is_server ? LEASE_ROLE_SERVER : LEASE_ROLE_WORKER) &&
           rank == (is_server ? 0 : job->lease_count - job_has_server(job));
}

int apply_lease_offered(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_offered) *offered = &event->lease_offered;
    struct machine *machine = NULL;
    if (apply_find_machine(core, event, offered->machine, &machine, error) < 0)
        return -1;
    struct offer *offer = map_get(&core->offers, offered->offer);
    if (!offer || offer->machine != machine)
        return apply_misfit(event, "the machine has no such offer", error);
    struct job *job = map_get(&core->jobs, offered->job);
    const bool is_first = job && job->state == JOB_STATE_PENDING;
    if (!job || !(is_first ? is_expected_part(job, offered->role, offered->rank)
                           : is_more(job, offered->role, offered->rank)))
        return apply_misfit(event, "no such job waits for this part", error);
    const int64_t committed =
        is_first ? 0 : price_add_micro(job_committed_micro(job), offered->quote_micro);
    if (job->request.max_total_micro > 0 && committed > job->request.max_total_micro)
        return apply_misfit(event, "the job would cost more than its maximum", error);
    if (offered->max_run_ms < 1 || offered->max_run_ms > job->request.max_run_ms)
        return apply_misfit(event, "it would run longer than its job", error);
    if (!apply_is_next_id(core, offered->lease) || offered->fence != core->last_fence + 1 ||
        offered->payee != machine->owner)
        return apply_misfit(event, "the id, the fence or the payee is not the next one", error);
    if (offered->lock.slot_count < 1)
        return apply_misfit(event, "it has no price", error);
    if (!resources_are_valid(offered->resources) ||
        !resources_fit(offered->resources, offer_free(offer)))
        return apply_misfit(event, "the offer has not that much free", error);
    struct lease *lease = apply_allocate(sizeof(*lease));
    *lease = (struct lease){.id = offered->lease,
                            .job = job->id,
                            .machine = machine->id,
                            .offer = offer->id,
                            .payee = offered->payee,
                            .fence = offered->fence,
                            .role = offered->role,
                            .rank = offered->rank,
                            .is_self_trade =
                                core_is_self_trade(core, job->request.account, offered->payee),
                            .resources = offered->resources,
                            .units = offered->units,
                            .lock = offered->lock,
                            .max_run_ms = offered->max_run_ms,
                            .quote_micro = offered->quote_micro,
                            .offered_ms = event->time_ms,
                            .start_by_ms = offered->start_by_ms};
    core->last_id = lease->id;
    core->last_fence = lease->fence;
    map_put(&core->leases, lease->id, lease);
    core_count_lease_start(core, lease, event->time_ms);
    core_attach_lease(core, job, machine, lease, event->time_ms);
    if (committed > job->quote_micro)
        job->quote_micro = committed;
    core_index_workers(core, job);
    return 0;
}

static int find_lease(const struct core *core, const struct event *event, uint64_t id,
                      uint64_t fence, struct lease **out_lease, struct error *error)
{
    struct lease *lease = map_get(&core->leases, id);
    if (!lease || lease->fence != fence || !lease_is_open(lease))
        return apply_misfit(event, "no such lease is open under that fence", error);
    *out_lease = lease;
    return 0;
}

int apply_lease_started(struct core *core, const struct event *event, struct error *error)
{
    struct lease *lease = NULL;
    if (find_lease(core, event, event->lease_started.lease, event->lease_started.fence, &lease,
                   error) < 0)
        return -1;
    if (lease->state != LEASE_STATE_OFFERED || lease->start_by_ms < event->time_ms)
        return apply_misfit(event, "it runs already, or starts too late", error);
    struct job *job = map_get(&core->jobs, lease->job);
    lease->state = LEASE_STATE_RUNNING;
    lease->started_ms = event->time_ms;
    if (job->started_ms == 0) {
        job->started_ms = event->time_ms;
        core_set_lease_ends(core, job);
    }
    return 0;
}

int apply_lease_ticked(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_ticked) *ticked = &event->lease_ticked;
    struct lease *lease = NULL;
    if (find_lease(core, event, ticked->lease, ticked->fence, &lease, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, lease->job);
    if (ticked->job != job->id || lease->state != LEASE_STATE_RUNNING ||
        ticked->tick_index <= lease->tick_index || ticked->wall_ms < lease->wall_ms ||
        ticked->wall_ms > lease->max_run_ms)
        return apply_misfit(event, "the tick is not a later one of a running lease", error);
    if (ticked->bill_micro > lease->quote_micro ||
        ticked->amount_micro > job->quote_micro - job->posted_micro ||
        ticked->bill_micro - ticked->amount_micro != lease->posted_micro ||
        ticked->fee_micro > ticked->amount_micro)
        return apply_misfit(
            event, "the bill does not follow from the one before, or passes the quote", error);
    lease->tick_index = ticked->tick_index;
    lease->wall_ms = ticked->wall_ms;
    lease->posted_micro = ticked->bill_micro;
    lease->fee_micro += ticked->fee_micro;
    job->posted_micro += ticked->amount_micro;
    job->fee_micro += ticked->fee_micro;
    return 0;
}

int apply_lease_stop_wanted(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_stop_wanted) *wanted = &event->lease_stop_wanted;
    struct lease *lease = NULL;
    if (find_lease(core, event, wanted->lease, wanted->fence, &lease, error) < 0)
        return -1;
    if (lease->stop_wanted_ms > 0)
        return apply_misfit(event, "it was asked to stop before", error);
    lease->stop_wanted_ms = event->time_ms;
    lease->is_reclaimed = wanted->is_reclaim;
    core_index_workers(core, map_get(&core->jobs, lease->job));
    return 0;
}

/* Of an owner with itself nothing is counted. */
static void count_reputation(const struct lease *lease, struct machine *machine)
{
    if (lease->is_self_trade)
        return;
    const struct reputation_lease ended = {
        .outcome = lease->outcome,
        .has_started = lease->started_ms > 0,
        .leased_ms = lease->started_ms ? lease->ended_ms - lease->started_ms : 0,
        .delivered_ms = lease->wall_ms,
        .ticks = lease->tick_index < INT32_MAX ? (int64_t)lease->tick_index : INT32_MAX,
        .earned_micro = lease->posted_micro - lease->fee_micro,
    };
    reputation_count(&machine->reputation, &ended);
}

int apply_lease_ended(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_ended) *ended = &event->lease_ended;
    struct lease *lease = NULL;
    if (find_lease(core, event, ended->lease, ended->fence, &lease, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, lease->job);
    if (ended->outcome == LEASE_OUTCOME_NONE || !job_state_has_leases(job->state))
        return apply_misfit(event, "it has no outcome, or its job none of its leases", error);
    core_count_lease_end(core, lease, event->time_ms);
    struct machine *machine = map_get(&core->machines, lease->machine);
    lease->outcome = ended->outcome;
    lease->ended_ms = event->time_ms;
    /* Before its offers are listed again: they are by their machine's reliability. */
    count_reputation(lease, machine);
    core_detach_lease(core, machine, lease, event->time_ms);
    lease->state = LEASE_STATE_ENDED;
    apply_see_account(core, lease->payee, event->time_ms);
    memcpy(lease->reason, ended->reason, sizeof(lease->reason));
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

int apply_lease_extended(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_extended) *extended = &event->lease_extended;
    struct lease *lease = NULL;
    if (find_lease(core, event, extended->lease, extended->fence, &lease, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, lease->job);
    if (extended->max_run_ms <= lease->max_run_ms ||
        extended->max_run_ms > job->request.max_run_ms ||
        extended->quote_micro < lease->quote_micro || extended->lock.slot_count < 1)
        return apply_misfit(event, "it gives no more time, or more than its job has", error);
    const int64_t committed = job_committed_micro(job) - lease->quote_micro + extended->quote_micro;
    if (job->request.max_total_micro > 0 && committed > job->request.max_total_micro)
        return apply_misfit(event, "the job would cost more than its maximum", error);
    lease->max_run_ms = extended->max_run_ms;
    lease->lock = extended->lock;
    lease->quote_micro = extended->quote_micro;
    if (committed > job->quote_micro)
        job->quote_micro = committed;
    return 0;
}
