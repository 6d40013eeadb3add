/*
 * Commands about jobs: submit, cancel, stop, finish.
 */
#include "base/units.h"
#include "core/core_internal.h"

#include <inttypes.h>

/* ---- Small steps ----------------------------------------------------------------------------- */

/* A reason from a machine is shown to people: wrong bytes become '?', and what is too long is cut
 * between characters. */
void decision_copy_reason(struct text reason, char out[LEASE_REASON_SIZE])
{
    size_t used = 0;
    while (reason.size > 0) {
        const size_t length = text_utf8_length(reason);
        const size_t step = length ? length : 1;
        if (used + step >= LEASE_REASON_SIZE)
            break;
        const unsigned char first = (unsigned char)reason.data[0];
        if (length == 0 || first < 0x20 || first == 0x7f)
            out[used] = length == 0 ? '?' : ' ';
        else
            memcpy(out + used, reason.data, step);
        used += step;
        reason.data += step;
        reason.size -= step;
    }
    out[used] = '\0';
}

void decision_emit_job_state(struct decision *decision, const struct job *job, enum job_state state,
                             enum job_state outcome, const char *reason)
{
    struct event event = {
        .kind = EVENT_JOB_STATE_CHANGED,
        .job_state_changed = {.job = job->id, .state = state, .outcome = outcome}};
    snprintf(event.job_state_changed.reason, JOB_REASON_SIZE, "%s", reason);
    decision_emit(decision, &event);
}

void decision_note_wait(struct decision *decision, const struct job *job, bool is_short,
                        bool is_unhurried)
{
    if (job->is_short == is_short && job->is_unhurried == is_unhurried)
        return;
    struct event event = {
        .kind = EVENT_JOB_WAITS,
        .job_waits = {.job = job->id, .is_short = is_short, .is_unhurried = is_unhurried}};
    decision_emit(decision, &event);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static bool ended_well(const struct lease *lease)
{
    return lease->outcome == LEASE_OUTCOME_SUCCEEDED || lease->outcome == LEASE_OUTCOME_STOPPED;
}

/* A job that was to end well still needs its server lease, or without one some worker, to. */
static bool can_succeed(const struct job *job)
{
    if (job_has_server(job))
        return ended_well(job_lead(job));
    for (size_t i = 0; i < job->lease_count; i++)
        if (ended_well(job->leases[i]))
            return true;
    return false;
}

/* A job of programs that ended well may have done so without what some rank left. */
static void say_what_is_lost(const struct core *core, const struct job *job,
                             char reason[JOB_REASON_SIZE])
{
    const struct lease *first = NULL;
    size_t lost = 0;
    for (size_t i = 0; i < job->worker_count && !job_has_server(job); i++)
        if (job->workers[i]->outcome == LEASE_OUTCOME_LOST) {
            first = first ? first : job->workers[i];
            lost++;
        }
    if (!first)
        return;
    char others[48] = "";
    if (lost > 1)
        snprintf(others, sizeof(others), ", and of %zu others", lost - 1);
    const size_t size = strlen(reason);
    snprintf(reason + size, JOB_REASON_SIZE - size,
             "%sthe files of rank %" PRIu64 " and the end of its log are lost with %.64s%s",
             size > 0 ? "; " : "", first->rank, core_machine(core, first->machine)->name, others);
}

void decision_finish_job(struct decision *decision, const struct job *job, enum job_state outcome,
                         const char *reason)
{
    char final_reason[JOB_REASON_SIZE];
    snprintf(final_reason, sizeof(final_reason), "%s", reason);
    if (outcome == JOB_STATE_SUCCEEDED && !can_succeed(job)) {
        outcome = JOB_STATE_FAILED;
        snprintf(final_reason, sizeof(final_reason), "%.60s%sbut it did not finish: %.100s", reason,
                 reason[0] ? ", " : "",
                 lease_reason(job_has_server(job) ? job_lead(job) : job->leases[0]));
    }
    if (outcome == JOB_STATE_SUCCEEDED)
        say_what_is_lost(decision->core, job, final_reason);
    struct text whole = text_of(final_reason);
    while (!text_is_utf8(whole)) /* a cut character at the end */
        final_reason[--whole.size] = '\0';
    const int64_t held_micro = core_held_micro(decision->core, job->id);
    if (held_micro > 0) {
        struct ledger_plan plan;
        struct error error;
        ASSERT(ledger_plan_void(decision->core->ledger, job->id, held_micro, &plan, &error) == 0);
        decision_emit_plan(decision, &plan, "job ended");
    }
    decision_emit_job_state(decision, job, outcome, outcome, final_reason);
    decision->should_match = true;
}

enum stop_order { STOP_ALL, STOP_LEAD_FIRST };

static void begin_stop(struct decision *decision, const struct job *job, enum job_state outcome,
                       const char *reason, enum stop_order order)
{
    decision_emit_job_state(decision, job, JOB_STATE_STOPPING, outcome, reason);
    const char *told = reason[0] ? reason : "the job is done";
    if (order == STOP_LEAD_FIRST && job_has_server(job))
        decision_want_stop(decision, job_lead(job), told);
    else
        decision_want_all_stopped(decision, job, told);
}

/* What is left of it ends at once, too. */
static void wait_again(struct decision *decision, const struct job *job, const char *reason)
{
    for (size_t i = 0; i < job->lease_count; i++)
        if (lease_is_open(job->leases[i]))
            decision_end_lease(decision, job->leases[i], LEASE_OUTCOME_PREEMPTED,
                               "its job lost another machine to one who pays");
    decision_emit_job_state(decision, job, JOB_STATE_PENDING, JOB_STATE_PENDING, reason);
}

/* After anything that ended a lease: draws the consequences for its job. Safe to repeat. */
void decision_settle_job(struct decision *decision, const struct job *job)
{
    if (!job_state_has_leases(job->state))
        return;
    char reason[JOB_REASON_SIZE];
    if (job->state != JOB_STATE_STOPPING) {
        decision_replace_lost(decision, job);
        const enum job_verdict verdict = job_judge(job, reason);
        if (verdict == JOB_VERDICT_GOES_ON)
            return;
        if (verdict == JOB_VERDICT_WAITS) {
            wait_again(decision, job, reason);
            return;
        }
        const enum job_state outcome =
            verdict == JOB_VERDICT_SUCCEEDED ? JOB_STATE_SUCCEEDED : JOB_STATE_FAILED;
        if (job_all_leases_ended(job)) {
            decision_finish_job(decision, job, outcome, reason);
            return;
        }
        begin_stop(decision, job, outcome, reason, STOP_ALL);
    } else if (!job_has_server(job) || !lease_is_open(job_lead(job))) {
        decision_want_all_stopped(decision, job, job->reason[0] ? job->reason : "the job is done");
    }
    if (job_all_leases_ended(job)) {
        memcpy(reason, job->reason, sizeof(reason));
        decision_finish_job(decision, job, job->outcome, reason);
    }
}

void decision_stop_job(struct decision *decision, const struct job *job, const char *reason)
{
    char copy[JOB_REASON_SIZE];
    snprintf(copy, sizeof(copy), "%s", reason);
    /* A parameter server leaves the model it has; a command that is cut off has not finished. */
    begin_stop(decision, job, job_has_server(job) ? JOB_STATE_SUCCEEDED : JOB_STATE_FAILED, copy,
               STOP_LEAD_FIRST);
    decision_settle_job(decision, job);
}

/* ---- Submitting ---------------------------------------------------------------------------- */

static int check_money(const struct core *core, const struct job_request *request,
                       struct match_quote quote, struct error *error)
{
    char cost[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
    /* One that can wait for a better price is not refused for today's. */
    const bool can_wait = request->start != JOB_START_NOW;
    if (can_wait && request->max_total_micro > 0 && quote.total_micro > request->max_total_micro)
        quote.total_micro = request->max_total_micro;
    if (request->max_total_micro > 0 && quote.total_micro > request->max_total_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s over its longest run, more than its maximum of %s",
                         units_format_credits(quote.total_micro, cost),
                         units_format_credits(request->max_total_micro, limit));
    if (!can_wait && request->max_hourly_micro > 0 &&
        quote.hourly_micro > request->max_hourly_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s an hour, more than its maximum of %s",
                         units_format_credits(quote.hourly_micro, cost),
                         units_format_credits(request->max_hourly_micro, limit));
    const struct ledger_account *balance = core_balance(core, request->account);
    const int64_t available_micro = ledger_holdable_micro(balance);
    if (balance->is_frozen || balance->is_closed)
        return error_set(error, ERROR_REFUSED, "the account is %s: no credits can be held",
                         balance->is_frozen ? "frozen" : "closed");
    if (quote.total_micro > available_micro)
        return error_set(error, ERROR_EXHAUSTED, "it may cost %s, and %s are available",
                         units_format_credits(quote.total_micro, cost),
                         units_format_credits(available_micro, limit));
    return 0;
}

static struct booking book(const struct decision *decision, const struct job_request *request,
                           bool is_rush)
{
    if (request->start == JOB_START_CHEAPEST)
        return decide_booking(decision, request, is_rush);
    struct match_wish wish = core_wish(decision->core, request, 0, decision->now_ms);
    wish.lock.rush_ms = is_rush ? CORE_RUSH_MS : 0;
    return (struct booking){.quote = match_quote_wish(&wish)};
}

/* Who cannot pay for its rush is quoted the usual price: it takes its usual turn. */
static int book_affordably(const struct decision *decision, const struct job_request *request,
                           struct booking *out_booking, struct error *error)
{
    struct error too_dear;
    *out_booking = book(decision, request, request->is_rush);
    if (request->is_rush && check_money(decision->core, request, out_booking->quote, &too_dear) < 0)
        *out_booking = book(decision, request, /* is_rush= */ false);
    return check_money(decision->core, request, out_booking->quote, error);
}

/* A slot may have ended since the last event: what is chosen now must be of the one that runs. If
 * that has become too dear the job waits for less. */
static void book_anew(struct decision *decision, const struct job_request *request,
                      struct booking *booking)
{
    const struct match_quote before = booking->quote;
    struct error too_dear;
    decide_close_slots(decision);
    if (book_affordably(decision, request, booking, &too_dear) < 0)
        booking->quote = before;
}

void decision_hold_more(struct decision *decision, const struct job *job, int64_t amount_micro)
{
    struct ledger_plan plan;
    struct error error;
    if (amount_micro == 0)
        return;
    ASSERT(ledger_plan_hold(decision->core->ledger, job->request.account, job->id, amount_micro,
                            &plan, &error) == 0);
    decision_emit_plan(decision, &plan, NULL);
}

static int check_spare(const struct core *core, const struct job_request *request,
                       struct error *error)
{
    if (!request->is_spare)
        return 0;
    if (!core_may_have_spare(core, request->account))
        return error_set(
            error, ERROR_REFUSED,
            "spare time is for members with less than 1 credit: leave out market.spare");
    if (core_account(core, request->account)->spare_waiting_count >= CORE_SPARE_WAITING_MAX)
        return error_set(error, ERROR_CONFLICT,
                         "%d jobs of the account wait for spare time already: cancel one, or wait "
                         "until one has started",
                         CORE_SPARE_WAITING_MAX);
    return 0;
}

int decide_submit_job(struct decision *decision, const struct command *command, struct error *error)
{
    const struct job_request *request = &command->submit_job;
    struct core *core = decision->core;
    if (job_request_check(request, error) < 0 ||
        name_check_line(text_of(request->name), "the job's name", JOB_NAME_SIZE - 1, error) < 0)
        return -1;
    if (decide_find_active_account(core, request->account, error) < 0)
        return -1;
    uint8_t key[CORE_JOB_KEY_SIZE];
    const struct job *same = core_job_key(request, key)
                                 ? map_get_text(&core->jobs_by_key, core_bytes(key, sizeof(key)))
                                 : NULL;
    if (same) {
        if (strcmp(same->request.name, request->name) != 0 ||
            !text_equal(same->request.spec, request->spec))
            return error_set(error, ERROR_CONFLICT,
                             "the idempotency key was used for another job, %" PRIu64, same->id);
        decision->subject = same->id;
        return 0;
    }
    if (check_spare(core, request, error) < 0)
        return -1;
    if (request->start != JOB_START_NOW && request->deadline_ms < decision->now_ms)
        return error_set(error, ERROR_INVALID, "deadline_ms is past");
    struct booking booking;
    if (book_affordably(decision, request, &booking, error) < 0)
        return -1;
    if (request->start == JOB_START_CHEAPEST)
        book_anew(decision, request, &booking);
    const int64_t held_micro = request->start != JOB_START_NOW && request->max_total_micro > 0 &&
                                       request->max_total_micro < booking.quote.total_micro
                                   ? request->max_total_micro
                                   : booking.quote.total_micro;
    struct event event = {.kind = EVENT_JOB_SUBMITTED,
                          .job_submitted = {.job = core->last_id + 1,
                                            .request = *request,
                                            .start_ms = booking.start_ms,
                                            .quote_micro = held_micro}};
    decision->subject = event.job_submitted.job;
    decision_emit(decision, &event);
    decision_hold_more(decision, core_job(core, decision->subject), held_micro);
    return 0;
}

#define CANCEL_REASON "its borrower wanted it so"

int decide_cancel_job(struct decision *decision, const struct command *command, struct error *error)
{
    const struct job *job = core_job(decision->core, command->cancel_job.job);
    if (!job)
        return error_set(error, ERROR_NOT_FOUND, "job %" PRIu64 " does not exist",
                         command->cancel_job.job);
    if (job->request.account != command->cancel_job.account)
        return error_set(error, ERROR_REFUSED, "job %" PRIu64 " belongs to another account",
                         job->id);
    if (job_state_is_final(job->state))
        return error_set(error, ERROR_CONFLICT, "job %" PRIu64 " has %s already", job->id,
                         job_state_name(job->state));
    decision->subject = job->id;
    if (job->state == JOB_STATE_PENDING) {
        decide_forfeit(decision, job);
        decision_finish_job(decision, job, JOB_STATE_CANCELLED, CANCEL_REASON);
        return 0;
    }
    if (job->state != JOB_STATE_STOPPING)
        begin_stop(decision, job, JOB_STATE_CANCELLED, CANCEL_REASON, STOP_ALL);
    decision_settle_job(decision, job);
    return 0;
}

/* ---- Time ------------------------------------------------------------------------------------ */

void decide_job_times(struct decision *decision)
{
    const struct id_list *active = &decision->core->active;
    for (size_t i = 0; i < active->count;) {
        const struct job *job = active->items[i].value;
        decide_late_leases(decision, job);
        decision_settle_job(decision, job);
        const bool is_going = job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING;
        if (is_going && job->started_ms > 0 &&
            job->started_ms + job->request.max_run_ms <= decision->now_ms) {
            decision_stop_job(decision, job, "max_run_time reached");
        }
        /* A job that ended left the list, and the next took its place. */
        if (job_state_has_leases(job->state))
            i++;
    }
}
