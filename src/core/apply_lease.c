/*
 * Events about leases.
 *
 * What a lease costs is computed again from the state and compared, so a replay is an audit of
 * every price lock, quote and bill.
 */
#include "core/core_internal.h"

/* One more lease of a job that is under way: the successor of a server or of a rank, a replica, or
 * the next rank. */
static bool is_more(const struct job *job, enum lease_role role, uint64_t rank)
{
    if (job->lease_count >= JOB_LEASES_MAX)
        return false;
    if (role != LEASE_ROLE_WORKER)
        return rank < job_request_server_ranks(&job->request) && job_lost_server(job, rank) == rank;
    return (job_can_grow(job) && rank == job_growth_rank(job)) ||
           (rank < job->worker_count && job_lost_rank(job, rank) == rank);
}

static bool is_expected_part(const struct job *job, enum lease_role role, uint64_t rank)
{
    const size_t servers = job_request_servers(&job->request);
    const bool is_server = job->lease_count < servers;
    const size_t most = (size_t)job_request_nodes_first(&job->request) + servers;
    return job->lease_count < most && role == (is_server ? LEASE_ROLE_SERVER : LEASE_ROLE_WORKER) &&
           rank == job->lease_count - (is_server ? 0 : servers);
}

/* Its units at its machine's speed, the prices of its slots or its lender's own minimum, and the
 * most that they come to. */
static bool is_priced_right(const struct core *core, const struct event *event,
                            const struct job *job, const struct offer *offer, bool is_first)
{
    const __typeof__(event->lease_offered) *offered = &event->lease_offered;
    const int64_t now_ms = event->time_ms;
    const struct price_units units =
        price_units(offered->resources, machine_speed_milli(offer->machine));
    if (job->request.is_spare) {
        const struct price_lock free = price_lock_flat((struct price_vector){0});
        return price_units_equal(&units, &offered->units) &&
               price_lock_equal(&free, &offered->lock) && offered->quote_micro == 0;
    }
    struct price_lock posted =
        core_price_lock(core, now_ms, offered->start_by_ms + offered->max_run_ms);
    if (is_first)
        core_keep_booked(job, &posted);
    struct price_lock own = price_lock_flat(offer->terms.minimum);
    posted.rush_ms = own.rush_ms = offered->lock.rush_ms;
    if (offered->lock.rush_ms != 0 &&
        !(is_first && job->request.is_rush && offered->lock.rush_ms == CORE_RUSH_MS))
        return false;
    return price_units_equal(&units, &offered->units) &&
           (price_lock_equal(&posted, &offered->lock) || price_lock_equal(&own, &offered->lock)) &&
           offered->quote_micro == price_quote_lock_micro(units, &offered->lock, now_ms,
                                                          offered->start_by_ms,
                                                          offered->max_run_ms);
}

/* Of a lease beside others: a job's first ones are judged together, when it starts. */
static bool is_within_limits(const struct job *job, const struct event *event)
{
    const __typeof__(event->lease_offered) *offered = &event->lease_offered;
    const struct job_request *request = &job->request;
    const int64_t total_micro = price_add_micro(job_committed_micro(job), offered->quote_micro);
    const int64_t hourly_micro = price_add_micro(
        job_hourly_micro(job), price_hourly_lock_micro(offered->units, &offered->lock));
    return (request->max_total_micro == 0 || total_micro <= request->max_total_micro) &&
           (request->max_hourly_micro == 0 || hourly_micro <= request->max_hourly_micro);
}

static int check_offered(const struct core *core, const struct event *event, const struct job *job,
                         const struct offer *offer, struct error *error)
{
    const __typeof__(event->lease_offered) *offered = &event->lease_offered;
    const bool is_first = job->state == JOB_STATE_PENDING;
    if (!(is_first ? is_expected_part(job, offered->role, offered->rank)
                   : is_more(job, offered->role, offered->rank)))
        return apply_misfit(event, "its job does not wait for this part", error);
    if (!apply_is_next_id(core, offered->lease) || offered->fence != core->last_fence + 1 ||
        offered->payee != offer->machine->owner)
        return apply_misfit(event, "the id, the fence or the payee is not the next one", error);
    if (offered->start_by_ms != event->time_ms + core->settings.start_ms ||
        offered->max_run_ms != job_run_left_ms(job, event->time_ms) || offered->max_run_ms < 1)
        return apply_misfit(event, "it would start later, or not run as long as its job", error);
    const struct resources wanted =
        offered->role == LEASE_ROLE_SERVER ? job->request.server : job->request.worker;
    const bool is_spare = job->request.is_spare;
    if (!resources_are_valid(offered->resources) || !resources_fit(wanted, offered->resources) ||
        machine_spare_in_way(offer->machine, offer, offered->resources) ||
        !resources_fit(offered->resources, offer_free(offer)))
        return apply_misfit(event, "it is less than is wanted, or more than is free", error);
    if (is_spare && (!offer->terms.is_spare || !core_may_have_spare(core, job->request.account)))
        return apply_misfit(event, "spare time is not offered there, or not to this account",
                            error);
    if (!is_priced_right(core, event, job, offer, is_first))
        return apply_misfit(event, "its price does not follow from those posted", error);
    if (!is_first && !is_within_limits(job, event))
        return apply_misfit(event, "the job would cost more than its maximum", error);
    return 0;
}

int64_t core_withheld_basis_points(const struct core *core, const struct job *job,
                                   const struct machine *machine)
{
    const bool is_trusted = !machine->is_unproven || core->settings.economy == ECONOMY_KARMA ||
                            core_is_self_trade(core, job->request.account, machine->owner);
    return is_trusted ? 0 : core->settings.withheld_basis_points;
}

int apply_lease_offered(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_offered) *offered = &event->lease_offered;
    struct job *job = map_get(&core->jobs, offered->job);
    struct offer *offer = map_get(&core->offers, offered->offer);
    if (!job || !offer || offer->machine->id != offered->machine)
        return apply_misfit(event, "there is no such job, or the machine has no such offer", error);
    if (check_offered(core, event, job, offer, error) < 0)
        return -1;
    const bool is_first = job->state == JOB_STATE_PENDING;
    const int64_t committed =
        is_first ? 0 : price_add_micro(job_committed_micro(job), offered->quote_micro);
    struct machine *machine = offer->machine;
    struct lease *lease = slab_take(&core->lease_slab);
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
                            .is_spare = job->request.is_spare,
                            .resources = offered->resources,
                            .units = offered->units,
                            .lock = price_locks_take(&core->price_locks, &offered->lock),
                            .max_run_ms = offered->max_run_ms,
                            .quote_micro = offered->quote_micro,
                            .fee_basis_points = core->settings.fee_basis_points,
                            .withheld_basis_points = core_withheld_basis_points(core, job, machine),
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

/* The old lead has ended; the replica's fence is the higher one, so it is the later term. */
int apply_lease_promoted(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_promoted) *promoted = &event->lease_promoted;
    struct lease *lease = NULL;
    if (find_lease(core, event, promoted->lease, promoted->fence, &lease, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, lease->job);
    if (promoted->job != job->id || job_orphan(job) != lease || !job_can_promote(job))
        return apply_misfit(event, "it is no replica of a lead that is gone", error);
    job->servers[lease->rank] = NULL;
    lease->rank = 0;
    job->servers[0] = lease;
    core_index_workers(core, job);
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
    core_count_lease_running(core, lease, event->time_ms);
    lease->state = LEASE_STATE_RUNNING;
    lease->started_ms = event->time_ms;
    if (job->started_ms == 0) {
        job->started_ms = event->time_ms;
        core_set_lease_ends(core, job);
    }
    return 0;
}

static int check_tick(const struct event *event, const struct lease *lease, struct error *error)
{
    const __typeof__(event->lease_ticked) *ticked = &event->lease_ticked;
    if (ticked->job != lease->job || lease->state != LEASE_STATE_RUNNING ||
        ticked->tick_index <= lease->tick_index || ticked->wall_ms < lease->wall_ms ||
        lease_billable_ms(lease, ticked->wall_ms, event->time_ms) != ticked->wall_ms)
        return apply_misfit(event, "the tick is not a later one of a running lease", error);
    const struct lease_bill bill = lease_bill(lease, ticked->wall_ms);
    if (ticked->bill_micro != bill.bill_micro || ticked->amount_micro != bill.amount_micro ||
        ticked->fee_micro != bill.fee_micro)
        return apply_misfit(event, "the bill is not what the time comes to", error);
    return 0;
}

int apply_lease_ticked(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_ticked) *ticked = &event->lease_ticked;
    struct lease *lease = NULL;
    if (find_lease(core, event, ticked->lease, ticked->fence, &lease, error) < 0 ||
        check_tick(event, lease, error) < 0)
        return -1;
    struct machine *machine = map_get(&core->machines, lease->machine);
    const struct lease_bill bill = lease_bill(lease, ticked->wall_ms);
    const struct ledger_post post = {.job = lease->job,
                                     .lease = lease->id,
                                     .payee = lease->payee,
                                     .amount_micro = bill.amount_micro,
                                     .fee_micro = bill.fee_micro,
                                     .withheld_micro =
                                         lease_withholds_micro(lease, machine, &bill)};
    if (ticked->amount_micro > 0 && ledger_plan_post(core->ledger, &post, &core->due, error) < 0)
        return apply_unfit(event, error);
    struct job *job = map_get(&core->jobs, lease->job);
    lease->tick_index = ticked->tick_index;
    lease->wall_ms = ticked->wall_ms;
    lease->posted_micro = ticked->bill_micro;
    lease->fee_micro += ticked->fee_micro;
    const int64_t withheld_micro = ticked->amount_micro > 0 ? core_due_withheld_micro(core) : 0;
    lease->withheld_micro += withheld_micro;
    machine->withheld_micro += withheld_micro;
    if (!lease->is_self_trade)
        reputation_earn(&machine->reputation, bill.amount_micro - bill.fee_micro);
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
    if (wanted->is_surplus && (wanted->is_reclaim || lease->role != LEASE_ROLE_WORKER ||
                               lease->rank < job_workers_wanted(map_get(&core->jobs, lease->job))))
        return apply_misfit(event, "its job wants it still", error);
    lease->stop_wanted_ms = event->time_ms;
    lease->is_reclaimed = wanted->is_reclaim;
    lease->is_surplus = wanted->is_surplus;
    core_wake_lease(core, lease);
    core_index_workers(core, map_get(&core->jobs, lease->job));
    return 0;
}

/* Of an owner with itself nothing is counted. Spare time is free for whoever has an account: that
 * it went well says nothing, that its owner took it back breaks no promise, that it was lost does.
 */
static void count_reputation(const struct lease *lease, struct machine *machine)
{
    if (lease->is_self_trade || (lease->is_spare && lease->outcome != LEASE_OUTCOME_LOST))
        return;
    const struct reputation_lease ended = {
        .outcome = lease->outcome,
        .has_started = lease->started_ms > 0,
        .leased_ms = lease->started_ms ? lease->ended_ms - lease->started_ms : 0,
        .delivered_ms = lease->wall_ms,
        .ticks = lease->tick_index < INT32_MAX ? (int64_t)lease->tick_index : INT32_MAX,
    };
    reputation_count(&machine->reputation, &ended);
}

/* Ticks are posted as work goes on, so a lease that sent garbage has been paid before it is found.
 * What is withheld of it is its lender's for a moment, to go back with the rest. */
static void plan_refund(struct core *core, const struct job *job, const struct lease *lease)
{
    struct machine *machine = map_get(&core->machines, lease->machine);
    int64_t withheld_micro = 0;
    if (machine->owner == lease->payee)
        withheld_micro = lease->withheld_micro < machine->withheld_micro ? lease->withheld_micro
                                                                         : machine->withheld_micro;
    machine->withheld_micro -= withheld_micro;
    const struct ledger_refund refund = {.lease = lease->id,
                                         .payee = lease->payee,
                                         .payer = job->request.account,
                                         .amount_micro = lease->posted_micro - lease->fee_micro,
                                         .fee_micro = lease->fee_micro,
                                         .withheld_micro = withheld_micro};
    ledger_plan_refund(core->ledger, &refund, &core->due);
}

/* What one that was let go may not cost any more is its borrower's at once: unlike that of one that
 * was lost, it is not kept for a successor. */
static int plan_give_back(struct core *core, const struct event *event, struct job *job,
                          const struct lease *lease, struct error *error)
{
    const int64_t amount_micro = lease->quote_micro - lease->posted_micro;
    if (amount_micro == 0)
        return 0;
    if (ledger_plan_void(core->ledger, job->id, amount_micro, &core->due, error) < 0)
        return apply_unfit(event, error);
    job->quote_micro -= amount_micro;
    return 0;
}

int apply_lease_ended(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_ended) *ended = &event->lease_ended;
    struct lease *lease = NULL;
    if (find_lease(core, event, ended->lease, ended->fence, &lease, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, lease->job);
    if (ended->outcome == LEASE_OUTCOME_NONE || !job_state_has_leases(job->state) ||
        (ended->outcome == LEASE_OUTCOME_PREEMPTED && !lease->is_spare))
        return apply_misfit(event, "it has no outcome, or its job none of its leases", error);
    if (lease->is_surplus && ended->outcome != LEASE_OUTCOME_FAULTY &&
        plan_give_back(core, event, job, lease, error) < 0)
        return -1;
    core_count_lease_end(core, lease, ended->outcome, event->time_ms);
    struct machine *machine = map_get(&core->machines, lease->machine);
    lease->outcome = ended->outcome;
    lease->exit_code = ended->exit_code;
    lease->ended_ms = event->time_ms;
    /* Before its offers are listed again: they are by their machine's reliability. */
    count_reputation(lease, machine);
    core_detach_lease(core, machine, lease, event->time_ms);
    lease->state = LEASE_STATE_ENDED;
    apply_see_account(core, lease->payee, event->time_ms);
    lease->reason = core_copy_reason(ended->reason);
    core_index_workers(core, job);
    if (ended->outcome == LEASE_OUTCOME_FAULTY)
        plan_refund(core, job, lease);
    return 0;
}

/* The job's dearest hour with other terms for one of its leases. With the others of its renewals
 * yet to come they count once they are there. */
static bool is_hourly_kept(const struct event *event, const struct job *job,
                           const struct lease *lease, const struct lease_terms *terms)
{
    const int64_t own_micro = price_hourly_lock_micro(lease->units, &terms->lock);
    int64_t hourly_micro = own_micro, sure_micro = own_micro;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *other = job->leases[i];
        if (other == lease || !lease_is_open(other))
            continue;
        const int64_t other_micro = price_hourly_lock_micro(other->units, other->lock);
        hourly_micro = price_add_micro(hourly_micro, other_micro);
        if (event->kind == EVENT_LEASE_EXTENDED || !core_is_renewal_due(other, event->time_ms))
            sure_micro = price_add_micro(sure_micro, other_micro);
    }
    const int64_t max_micro = job->request.max_hourly_micro;
    return max_micro == 0 || hourly_micro <= max_micro || sure_micro <= max_micro;
}

static int take_terms(struct core *core, const struct event *event, struct lease *lease,
                      const struct lease_terms *terms, struct error *error)
{
    struct job *job = map_get(&core->jobs, lease->job);
    const int64_t total_micro = job_committed_micro(job) - lease->quote_micro + terms->quote_micro;
    if ((job->request.max_total_micro > 0 && total_micro > job->request.max_total_micro) ||
        !is_hourly_kept(event, job, lease, terms))
        return apply_misfit(event, "the job would cost more than its maximum", error);
    lease->max_run_ms = terms->max_run_ms;
    const struct price_lock *before = lease->lock;
    lease->lock = price_locks_take(&core->price_locks, &terms->lock);
    price_locks_give(&core->price_locks, before);
    lease->quote_micro = terms->quote_micro;
    if (total_micro > job->quote_micro)
        job->quote_micro = total_micro;
    return 0;
}

int apply_lease_extended(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_extended) *extended = &event->lease_extended;
    struct lease *lease = NULL;
    if (find_lease(core, event, extended->lease, extended->fence, &lease, error) < 0)
        return -1;
    const struct job *job = map_get(&core->jobs, lease->job);
    if (extended->max_run_ms <= lease->max_run_ms || extended->max_run_ms > job->request.max_run_ms)
        return apply_misfit(event, "it gives no more time, or more than its job has", error);
    const struct lease_terms said = {extended->lock, extended->max_run_ms, extended->quote_micro};
    const int64_t more_ms = extended->max_run_ms - lease->max_run_ms;
    const struct core_forecast now = core_forecast(core);
    struct lease_terms terms = core_extended_terms(lease, more_ms, event->time_ms, &now);
    if (!lease_terms_equal(&said, &terms) && core->prices.seen_ms == event->time_ms)
        terms = core_extended_terms(lease, more_ms, event->time_ms, &core->prices.seen);
    if (!lease_terms_equal(&said, &terms))
        return apply_misfit(event, "its price does not follow from those forecast", error);
    return take_terms(core, event, lease, &terms, error);
}

int apply_lease_renewed(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_renewed) *renewed = &event->lease_renewed;
    struct lease *lease = NULL;
    if (find_lease(core, event, renewed->lease, renewed->fence, &lease, error) < 0)
        return -1;
    const struct lease_terms said = {renewed->lock, lease->max_run_ms, renewed->quote_micro};
    struct lease_terms terms;
    if (renewed->job != lease->job || !core_is_renewal_due(lease, event->time_ms) ||
        !core_renewed_terms(core, lease, &terms) || !lease_terms_equal(&said, &terms))
        return apply_misfit(event, "its prices have not run out, or the next ones are others",
                            error);
    return take_terms(core, event, lease, &terms, error);
}
