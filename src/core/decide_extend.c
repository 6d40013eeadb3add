/*
 * Extending: a job that runs gets more time, if its lenders' terms and its borrower's credits
 * allow.
 *
 * Every open lease keeps the prices it locked and locks those of the slots that are added, as they
 * are forecast now. Either all leases are extended or none, but for a replica: one whose lender
 * does not lend for that long goes, and another is looked for.
 */
#include "base/units.h"
#include "core/core_internal.h"

#include <inttypes.h>

/* The terms of its offer as they are now. */
static int check_terms(const struct core *core, const struct lease *lease,
                       const struct lease_terms *extended, int64_t now_ms, struct error *error)
{
    const struct offer *offer = core_offer(core, lease->offer);
    const char *name = core_machine(core, lease->machine)->name;
    char longest[UNITS_TEXT_SIZE];
    if (!offer)
        return error_set(error, ERROR_REFUSED, "machine \"%s\": its offer was withdrawn", name);
    if (offer->terms.max_lease_ms > 0 && offer->terms.max_lease_ms < extended->max_run_ms)
        return error_set(error, ERROR_REFUSED, "machine \"%s\" is lent for %s at most", name,
                         units_format_duration(offer->terms.max_lease_ms, longest));
    if (!offer_is_open(offer, now_ms) ||
        window_open_until_ms(offer_window(offer), now_ms) <
            (lease->started_ms ? lease->started_ms : lease->start_by_ms) + extended->max_run_ms)
        return error_set(error, ERROR_REFUSED, "machine \"%s\" is not lent for that long", name);
    return 0;
}

static int check_costs(const struct core *core, const struct job *job, int64_t total_micro,
                       int64_t hourly_micro, struct error *error)
{
    const struct job_request *request = &job->request;
    char cost[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
    if (request->max_total_micro > 0 && total_micro > request->max_total_micro)
        return error_set(error, ERROR_EXHAUSTED, "it would cost %s, more than its maximum of %s",
                         units_format_credits(total_micro, cost),
                         units_format_credits(request->max_total_micro, limit));
    if (request->max_hourly_micro > 0 && hourly_micro > request->max_hourly_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s an hour, more than its maximum of %s",
                         units_format_credits(hourly_micro, cost),
                         units_format_credits(request->max_hourly_micro, limit));
    const int64_t available_micro = ledger_holdable_micro(core_balance(core, request->account));
    if (total_micro - job->quote_micro > available_micro)
        return error_set(error, ERROR_EXHAUSTED, "it would cost %s more, and %s are available",
                         units_format_credits(total_micro - job->quote_micro, cost),
                         units_format_credits(available_micro, limit));
    return 0;
}

/* *out_extended: one for each lease of the job, made once: the first event may close a slot, and
 * then the forecasts are others. Of a replica that has to go it runs for no time. */
static int check_extension(const struct decision *decision, const struct job *job, int64_t more_ms,
                           struct lease_terms *out_extended, int64_t *out_total_micro,
                           struct error *error)
{
    const struct core *core = decision->core;
    int64_t total_micro = 0, hourly_micro = 0;
    const struct core_forecast forecast = core_forecast(core);
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (!lease_is_open(lease)) {
            total_micro = price_add_micro(total_micro, lease->posted_micro);
            continue;
        }
        struct lease_terms *extended = &out_extended[i];
        *extended = core_extended_terms(lease, more_ms, decision->now_ms, &forecast);
        if (check_terms(core, lease, extended, decision->now_ms, error) < 0) {
            if (!job_is_replica(job, lease))
                return -1;
            *extended = (struct lease_terms){0};
            total_micro = price_add_micro(total_micro, lease->quote_micro);
            continue;
        }
        total_micro = price_add_micro(total_micro, extended->quote_micro);
        hourly_micro =
            price_add_micro(hourly_micro, price_hourly_lock_micro(lease->units, &extended->lock));
    }
    *out_total_micro = total_micro > job->quote_micro ? total_micro : job->quote_micro;
    return check_costs(core, job, *out_total_micro, hourly_micro, error);
}

static void emit_lease(struct decision *decision, const struct lease *lease,
                       const struct lease_terms *extended)
{
    struct event event = {.kind = EVENT_LEASE_EXTENDED,
                          .lease_extended = {.lease = lease->id,
                                             .job = lease->job,
                                             .machine = lease->machine,
                                             .fence = lease->fence,
                                             .max_run_ms = extended->max_run_ms,
                                             .lock = extended->lock,
                                             .quote_micro = extended->quote_micro}};
    decision_emit(decision, &event);
}

int decide_extend_job(struct decision *decision, const struct command *command, struct error *error)
{
    const __typeof__(command->extend_job) *wanted = &command->extend_job;
    const struct job *job = core_job(decision->core, wanted->job);
    if (!job)
        return error_set(error, ERROR_NOT_FOUND, "job %" PRIu64 " does not exist", wanted->job);
    if (job->request.account != wanted->account)
        return error_set(error, ERROR_REFUSED, "job %" PRIu64 " belongs to another account",
                         job->id);
    if (job->state != JOB_STATE_STARTING && job->state != JOB_STATE_RUNNING)
        return error_set(error, ERROR_CONFLICT,
                         "job %" PRIu64 " is %s: only one that runs can be "
                         "extended",
                         job->id, job_state_name(job->state));
    const int64_t more_ms =
        wanted->max_run_ms ? wanted->max_run_ms - job->request.max_run_ms : wanted->more_ms;
    const int64_t most_ms = PRICE_RUN_MS_MAX - job->request.max_run_ms;
    if (more_ms < 1 || more_ms > most_ms)
        return error_set(error, ERROR_INVALID,
                         "a job of %" PRId64 " ms can be extended by 1 to %" PRId64 " ms",
                         job->request.max_run_ms, most_ms);
    int64_t total_micro;
    struct lease_terms *extended =
        arena_alloc(decision->out->arena, (job->lease_count + 1) * sizeof(*extended));
    if (check_extension(decision, job, more_ms, extended, &total_micro, error) < 0)
        return -1;
    decision->subject = job->id;
    decision_hold_more(decision, job, total_micro - job->quote_micro);
    struct event event = {
        .kind = EVENT_JOB_EXTENDED,
        .job_extended = {.job = job->id, .max_run_ms = job->request.max_run_ms + more_ms}};
    decision_emit(decision, &event);
    for (size_t i = 0; i < job->lease_count; i++)
        if (lease_is_open(job->leases[i]) && extended[i].max_run_ms > 0)
            emit_lease(decision, job->leases[i], &extended[i]);
        else if (lease_is_open(job->leases[i]))
            decision_want_stop(decision, job->leases[i],
                               "its machine is not lent for as long as the job goes on");
    decision->should_match = true; /* there may be time for a successor now */
    return 0;
}
