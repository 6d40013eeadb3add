/*
 * Renewing: a lease locks the prices of eight slots at most; one that runs on gets those of the
 * next, as they are then.
 *
 * Neither the job's maximum per hour nor its budget is passed: a worker for which they do not reach
 * is let go, and a job without its server or its last worker stops, with the reason said. It
 * follows the end of a slot, so that the new prices hold before their time begins to be billed.
 */
#include "base/units.h"
#include "core/core_internal.h"

/* One lease of a job whose lock has run out. */
struct renewal {
    const struct lease *lease;
    struct lease_terms terms;
    bool is_refused;
};

/* Says why in `reason`, unless the job may come to that. */
static bool is_affordable(const struct core *core, const struct job *job, int64_t total_micro,
                          int64_t hourly_micro, char reason[LEASE_REASON_SIZE])
{
    const struct job_request *request = &job->request;
    const int64_t more_micro = total_micro - job->quote_micro;
    const int64_t available_micro = ledger_holdable_micro(core_balance(core, request->account));
    char cost[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
    if (request->max_hourly_micro > 0 && hourly_micro > request->max_hourly_micro) {
        snprintf(reason, LEASE_REASON_SIZE,
                 "at the next prices its job would cost %s an hour, more than its maximum of %s",
                 units_format_credits(hourly_micro, cost),
                 units_format_credits(request->max_hourly_micro, limit));
        return false;
    }
    if (request->max_total_micro > 0 && total_micro > request->max_total_micro) {
        snprintf(reason, LEASE_REASON_SIZE,
                 "at the next prices its job would cost %s, more than its maximum of %s",
                 units_format_credits(total_micro, cost),
                 units_format_credits(request->max_total_micro, limit));
        return false;
    }
    if (more_micro > available_micro) {
        snprintf(reason, LEASE_REASON_SIZE,
                 "at the next prices its job would cost %s more, and %s are available",
                 units_format_credits(more_micro, cost),
                 units_format_credits(available_micro, limit));
        return false;
    }
    return true;
}

static int64_t hourly_before(const struct renewal *renewal)
{
    return price_hourly_lock_micro(renewal->lease->units, renewal->lease->lock);
}

static int64_t hourly_after(const struct renewal *renewal)
{
    return price_hourly_lock_micro(renewal->lease->units, &renewal->terms.lock);
}

/* All of them if that keeps to the job's limits; else one by one, as long as it does. One that is
 * refused costs what it did until it has ended. */
static void judge(const struct core *core, const struct job *job, struct renewal *renewals,
                  size_t count, char reason[LEASE_REASON_SIZE])
{
    int64_t hourly_micro = job_hourly_micro(job), total_micro = job_committed_micro(job);
    int64_t all_hourly_micro = hourly_micro, all_total_micro = total_micro;
    for (size_t i = 0; i < count; i++) {
        struct renewal *renewal = &renewals[i];
        renewal->is_refused = !core_renewed_terms(core, renewal->lease, &renewal->terms);
        if (renewal->is_refused) {
            snprintf(reason, LEASE_REASON_SIZE,
                     "its prices have run out, and too little of its time was verified");
            continue;
        }
        all_hourly_micro += hourly_after(renewal) - hourly_before(renewal);
        all_total_micro += renewal->terms.quote_micro - renewal->lease->quote_micro;
    }
    if (is_affordable(core, job, all_total_micro, all_hourly_micro, reason))
        return;
    for (size_t i = 0; i < count; i++) {
        struct renewal *renewal = &renewals[i];
        if (renewal->is_refused)
            continue;
        const int64_t hourly = hourly_micro + hourly_after(renewal) - hourly_before(renewal);
        const int64_t total =
            total_micro + renewal->terms.quote_micro - renewal->lease->quote_micro;
        renewal->is_refused = !is_affordable(core, job, total, hourly, reason);
        hourly_micro = renewal->is_refused ? hourly_micro : hourly;
        total_micro = renewal->is_refused ? total_micro : total;
    }
}

static void emit_renewed(struct decision *decision, const struct renewal *renewal)
{
    const struct lease *lease = renewal->lease;
    const struct job *job = core_job(decision->core, lease->job);
    const int64_t total_micro =
        job_committed_micro(job) - lease->quote_micro + renewal->terms.quote_micro;
    if (total_micro > job->quote_micro)
        decision_hold_more(decision, job, total_micro - job->quote_micro);
    struct event event = {.kind = EVENT_LEASE_RENEWED,
                          .lease_renewed = {.lease = lease->id,
                                            .job = lease->job,
                                            .machine = lease->machine,
                                            .fence = lease->fence,
                                            .lock = renewal->terms.lock,
                                            .quote_micro = renewal->terms.quote_micro}};
    decision_emit(decision, &event);
}

/* How a job needs its leases: each of the first, some of the second, none of the last. */
enum need { NEED_SERVER, NEED_WORKER, NEED_REPLICA, NEED_COUNT };

static enum need need_of(const struct job *job, const struct lease *lease)
{
    if (lease->role == LEASE_ROLE_WORKER)
        return NEED_WORKER;
    return lease->rank < job_request_servers(&job->request) ? NEED_SERVER : NEED_REPLICA;
}

/* Whether it can go on without those that are refused. */
static bool goes_on(const struct job *job, const struct renewal *renewals, size_t count)
{
    size_t workers = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        workers += lease_is_open(job->workers[i]) && job->workers[i]->stop_wanted_ms == 0;
    for (size_t i = 0; i < count; i++) {
        const enum need need = need_of(job, renewals[i].lease);
        if (renewals[i].is_refused && need == NEED_SERVER)
            return false;
        workers -= renewals[i].is_refused && need == NEED_WORKER;
    }
    return workers > 0;
}

static void renew_job(struct decision *decision, const struct job *job)
{
    char reason[LEASE_REASON_SIZE] = "";
    struct renewal *renewals =
        arena_alloc(decision->out->arena, (job->lease_count + 1) * sizeof(*renewals));
    size_t count = 0;
    /* Whoever comes first is paid first: a lead that was a replica stands behind the workers. */
    for (enum need need = 0; need < NEED_COUNT; need++)
        for (size_t i = 0; i < job->lease_count; i++)
            if (need_of(job, job->leases[i]) == need &&
                core_is_renewal_due(job->leases[i], decision->now_ms))
                renewals[count++] = (struct renewal){.lease = job->leases[i]};
    if (count == 0)
        return;
    judge(decision->core, job, renewals, count, reason);
    if (!goes_on(job, renewals, count)) {
        decision_stop_job(decision, job, reason);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!renewals[i].is_refused)
            emit_renewed(decision, &renewals[i]);
    for (size_t i = 0; i < count; i++)
        if (renewals[i].is_refused)
            decision_want_stop(decision, renewals[i].lease, reason);
    decision_settle_job(decision, job);
}

void decide_renewals(struct decision *decision)
{
    const struct id_list *active = &decision->core->active;
    for (size_t i = 0; i < active->count;) {
        const struct job *job = active->items[i].value;
        if (job->state != JOB_STATE_STOPPING)
            renew_job(decision, job);
        /* A job that ended left the list, and the next took its place. */
        if (job_state_has_leases(job->state))
            i++;
    }
}
