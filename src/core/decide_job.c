/*
 * Commands about jobs and leases, and matching: quote, hold, offer, bill, stop, finish.
 */
#include "base/units.h"
#include "core/core_internal.h"

#include <inttypes.h>

/* ---- Small steps ----------------------------------------------------------------------------- */

/* A reason from a machine is shown to people: wrong bytes become '?', and what is too long is cut
 * between characters. */
static void copy_reason(struct text reason, char out[LEASE_REASON_SIZE])
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

static void emit_job_state(struct decision *decision, const struct job *job, enum job_state state,
                           enum job_state outcome, const char *reason)
{
    struct event event = {
        .kind = EVENT_JOB_STATE_CHANGED,
        .job_state_changed = {.job = job->id, .state = state, .outcome = outcome}};
    snprintf(event.job_state_changed.reason, JOB_REASON_SIZE, "%s", reason);
    decision_emit(decision, &event);
}

static void end_lease(struct decision *decision, const struct lease *lease,
                      enum lease_outcome outcome, const char *reason)
{
    struct event event = {.kind = EVENT_LEASE_ENDED,
                          .lease_ended = {.lease = lease->id,
                                          .job = lease->job,
                                          .machine = lease->machine,
                                          .fence = lease->fence,
                                          .outcome = outcome}};
    snprintf(event.lease_ended.reason, LEASE_REASON_SIZE, "%s", reason);
    decision_emit(decision, &event);
    decision->should_match = true;
}

/* Asks an open lease to stop, once. A machine that cannot be asked is not waited for. */
static void want_stop(struct decision *decision, const struct lease *lease, const char *reason)
{
    if (!lease_is_open(lease) || lease->stop_wanted_ms > 0)
        return;
    if (core_machine(decision->core, lease->machine)->state != MACHINE_STATE_ONLINE) {
        end_lease(decision, lease, LEASE_OUTCOME_LOST, "its machine is unreachable");
        return;
    }
    struct event event = {.kind = EVENT_LEASE_STOP_WANTED,
                          .lease_stop_wanted = {.lease = lease->id,
                                                .job = lease->job,
                                                .machine = lease->machine,
                                                .fence = lease->fence,
                                                .grace_ms = decision->core->settings.grace_ms}};
    copy_reason(text_of(reason), event.lease_stop_wanted.reason);
    decision_emit(decision, &event);
}

static void want_all_stopped(struct decision *decision, const struct job *job, const char *reason)
{
    for (size_t i = 0; i < job->lease_count; i++)
        want_stop(decision, job->leases[i], reason);
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
        return ended_well(job->leases[0]);
    for (size_t i = 0; i < job->lease_count; i++)
        if (ended_well(job->leases[i]))
            return true;
    return false;
}

static void finish_job(struct decision *decision, const struct job *job, enum job_state outcome,
                       const char *reason)
{
    char final_reason[JOB_REASON_SIZE];
    snprintf(final_reason, sizeof(final_reason), "%s", reason);
    if (outcome == JOB_STATE_SUCCEEDED && !can_succeed(job)) {
        outcome = JOB_STATE_FAILED;
        snprintf(final_reason, sizeof(final_reason), "%.60s%sbut it did not finish: %.100s", reason,
                 reason[0] ? ", " : "", job->leases[0]->reason);
        struct text whole = text_of(final_reason);
        while (!text_is_utf8(whole)) /* a cut character at the end */
            final_reason[--whole.size] = '\0';
    }
    const int64_t held_micro = core_held_micro(decision->core, job->id);
    if (held_micro > 0) {
        struct ledger_plan plan;
        struct error error;
        ASSERT(ledger_plan_void(decision->core->ledger, job->id, held_micro, &plan, &error) == 0);
        decision_emit_plan(decision, &plan, "job ended");
    }
    emit_job_state(decision, job, outcome, outcome, final_reason);
    decision->should_match = true;
}

enum stop_order { STOP_ALL, STOP_SERVER_FIRST };

static void begin_stop(struct decision *decision, const struct job *job, enum job_state outcome,
                       const char *reason, enum stop_order order)
{
    emit_job_state(decision, job, JOB_STATE_STOPPING, outcome, reason);
    const char *told = reason[0] ? reason : "the job is done";
    if (order == STOP_SERVER_FIRST && job_has_server(job))
        want_stop(decision, job->leases[0], told);
    else
        want_all_stopped(decision, job, told);
}

/* After anything that ended a lease: draws the consequences for its job. Safe to repeat. */
static void settle_job(struct decision *decision, const struct job *job)
{
    if (!job_state_has_leases(job->state))
        return;
    char reason[JOB_REASON_SIZE];
    if (job->state != JOB_STATE_STOPPING) {
        const enum job_verdict verdict = job_judge(job, reason);
        if (verdict == JOB_VERDICT_GOES_ON)
            return;
        const enum job_state outcome =
            verdict == JOB_VERDICT_SUCCEEDED ? JOB_STATE_SUCCEEDED : JOB_STATE_FAILED;
        if (job_all_leases_ended(job)) {
            finish_job(decision, job, outcome, reason);
            return;
        }
        begin_stop(decision, job, outcome, reason, STOP_ALL);
    } else if (job_has_server(job) && !lease_is_open(job->leases[0])) {
        want_all_stopped(decision, job, job->reason[0] ? job->reason : "the job is done");
    }
    if (job_all_leases_ended(job)) {
        memcpy(reason, job->reason, sizeof(reason));
        finish_job(decision, job, job->outcome, reason);
    }
}

void decide_lose_leases(struct decision *decision, struct machine *machine, const char *reason)
{
    /* Settling a job may end more of this machine's leases, so the list is asked anew each time. */
    while (machine->lease_count > 0) {
        const struct lease *lease = machine->leases[0];
        end_lease(decision, lease, LEASE_OUTCOME_LOST, reason);
        settle_job(decision, core_job(decision->core, lease->job));
    }
}

/* ---- Submitting and matching ----------------------------------------------------------------- */

static int check_money(const struct core *core, const struct job_request *request,
                       struct match_quote quote, struct error *error)
{
    char cost[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
    if (request->max_total_micro > 0 && quote.total_micro > request->max_total_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s over its longest run, more than its maximum of %s",
                         units_format_credits(quote.total_micro, cost),
                         units_format_credits(request->max_total_micro, limit));
    if (request->max_hourly_micro > 0 && quote.hourly_micro > request->max_hourly_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s an hour, more than its maximum of %s",
                         units_format_credits(quote.hourly_micro, cost),
                         units_format_credits(request->max_hourly_micro, limit));
    const int64_t available_micro = ledger_available_micro(core_balance(core, request->account));
    if (quote.total_micro > available_micro)
        return error_set(error, ERROR_EXHAUSTED, "it may cost %s, and %s are available",
                         units_format_credits(quote.total_micro, cost),
                         units_format_credits(available_micro, limit));
    return 0;
}

static void hold_more(struct decision *decision, const struct job *job, int64_t amount_micro)
{
    struct ledger_plan plan;
    struct error error;
    if (amount_micro == 0)
        return;
    ASSERT(ledger_plan_hold(decision->core->ledger, job->request.account, job->id, amount_micro,
                            &plan, &error) == 0);
    decision_emit_plan(decision, &plan, NULL);
}

int decide_submit_job(struct decision *decision, const struct job_request *request,
                      struct error *error)
{
    struct core *core = decision->core;
    if (job_request_check(request, error) < 0)
        return -1;
    if (!core_account(core, request->account) || request->account == ACCOUNT_MINT)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist",
                         request->account);
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
    const struct match_quote quote = match_quote_wish(request, core->price);
    if (check_money(core, request, quote, error) < 0)
        return -1;
    struct event event = {.kind = EVENT_JOB_SUBMITTED,
                          .job_submitted = {.job = core->last_id + 1,
                                            .request = *request,
                                            .quote_micro = quote.total_micro}};
    decision->subject = event.job_submitted.job;
    decision_emit(decision, &event);
    hold_more(decision, core_job(core, decision->subject), quote.total_micro);
    decision->should_match = true;
    return 0;
}

/* Makes the hold exactly what the leases may cost. */
static void adjust_hold(struct decision *decision, const struct job *job, int64_t quote_micro)
{
    const int64_t held_micro = core_held_micro(decision->core, job->id);
    if (quote_micro >= held_micro) {
        hold_more(decision, job, quote_micro - held_micro);
        return;
    }
    struct ledger_plan plan;
    struct error error;
    ASSERT(ledger_plan_void(decision->core->ledger, job->id, held_micro - quote_micro, &plan,
                            &error) == 0);
    decision_emit_plan(decision, &plan, "matched for less");
}

static void offer_lease(struct decision *decision, const struct job *job,
                        const struct match_part *part)
{
    struct event event = {.kind = EVENT_LEASE_OFFERED,
                          .lease_offered = {.lease = decision->core->last_id + 1,
                                            .job = job->id,
                                            .machine = part->machine->id,
                                            .payee = part->machine->owner,
                                            .fence = decision->core->last_fence + 1,
                                            .role = part->role,
                                            .rank = part->rank,
                                            .resources = part->resources,
                                            .units = part->units,
                                            .price = decision->core->price,
                                            .quote_micro = part->quote_micro}};
    decision_emit(decision, &event);
}

static bool match_job(struct decision *decision, struct arena *arena, struct machine **machines,
                      const struct job *job)
{
    const struct core *core = decision->core;
    const struct match_wish wish = {
        .request = &job->request,
        .price = core->price,
        .budget_micro = core_budget_micro(core, &job->request, core_held_micro(core, job->id))};
    struct match_placement placement;
    if (match_place(arena, machines, core->machine_list.count, &wish, &placement) != MATCH_PLACED)
        return false;
    adjust_hold(decision, job, placement.quote_micro);
    for (size_t i = 0; i < placement.part_count; i++)
        offer_lease(decision, job, &placement.parts[i]);
    emit_job_state(decision, job, JOB_STATE_STARTING, JOB_STATE_STARTING, "");
    return true;
}

/* The oldest job first; one that does not fit does not keep the next from being tried. */
void decide_match(struct decision *decision)
{
    const struct id_list *pending = &decision->core->pending;
    if (pending->count == 0)
        return;
    AUTO(arena) struct arena *lasting = arena_new(0);
    AUTO(arena) struct arena *scratch = arena_new(0);
    struct machine **machines = core_machine_pointers(decision->core, lasting);
    for (size_t i = 0; i < pending->count;) {
        /* A job that is placed leaves the list, and the next takes its place in it. */
        if (!match_job(decision, scratch, machines, pending->items[i].value))
            i++;
        arena_clear(scratch);
    }
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static int find_lease(const struct decision *decision, uint64_t id, uint64_t fence,
                      const struct lease **out_lease, struct error *error)
{
    const struct lease *lease = core_lease(decision->core, id);
    if (!lease)
        return error_set(error, ERROR_NOT_FOUND, "lease %" PRIu64 " does not exist", id);
    if (lease_check_fence(lease, fence, error) < 0)
        return -1;
    *out_lease = lease;
    return 0;
}

int decide_lease_running(struct decision *decision, const struct command *command,
                         struct error *error)
{
    const struct lease *lease;
    if (find_lease(decision, command->lease_running.lease, command->lease_running.fence, &lease,
                   error) < 0)
        return -1;
    decision->subject = lease->id;
    if (lease->state == LEASE_STATE_RUNNING)
        return 0;
    struct event event = {.kind = EVENT_LEASE_STARTED,
                          .lease_started = {.lease = lease->id, .fence = lease->fence}};
    decision_emit(decision, &event);
    const struct job *job = core_job(decision->core, lease->job);
    if (job->state == JOB_STATE_STARTING && job_is_under_way(job))
        emit_job_state(decision, job, JOB_STATE_RUNNING, JOB_STATE_RUNNING, "");
    return 0;
}

static int plan_tick(const struct decision *decision, const struct lease *lease,
                     int64_t amount_micro, struct ledger_plan *out_plan, struct error *error)
{
    *out_plan = (struct ledger_plan){0};
    if (amount_micro == 0)
        return 0;
    const struct ledger_post post = {.job = lease->job,
                                     .lease = lease->id,
                                     .payee = lease->payee,
                                     .amount_micro = amount_micro,
                                     .fee_basis_points = decision->core->settings.fee_basis_points};
    return ledger_plan_post(decision->core->ledger, &post, out_plan, error);
}

/* Everything verified so far, less what was posted before. */
static int bill_lease(struct decision *decision, const struct lease *lease, uint64_t tick_index,
                      int64_t verified_ms, struct error *error)
{
    if (tick_index == UINT64_MAX || verified_ms < 0)
        return error_set(error, ERROR_INVALID, "the tick is out of range");
    const struct job *job = core_job(decision->core, lease->job);
    const int64_t wall_ms =
        lease_billable_ms(lease, verified_ms, decision->now_ms, job->request.max_run_ms);
    const int64_t bill_micro = price_bill_micro(lease->units, lease->price, wall_ms);
    ASSERT(bill_micro >= lease->posted_micro && bill_micro <= lease->quote_micro);
    struct ledger_plan plan;
    if (plan_tick(decision, lease, bill_micro - lease->posted_micro, &plan, error) < 0)
        return -1;
    int64_t fee_micro = 0;
    for (size_t i = 0; i < plan.entry_count; i++)
        fee_micro += plan.entries[i].kind == LEDGER_ENTRY_FEE ? plan.entries[i].amount_micro : 0;
    struct event event = {.kind = EVENT_LEASE_TICKED,
                          .lease_ticked = {.lease = lease->id,
                                           .job = job->id,
                                           .fence = lease->fence,
                                           .tick_index = tick_index,
                                           .wall_ms = wall_ms,
                                           .bill_micro = bill_micro,
                                           .amount_micro = bill_micro - lease->posted_micro,
                                           .fee_micro = fee_micro}};
    decision_emit(decision, &event);
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "tick %" PRIu64, tick_index);
    decision_emit_plan(decision, &plan, memo);
    return 0;
}

int decide_tick_lease(struct decision *decision, const struct command *command, struct error *error)
{
    const __typeof__(command->tick_lease) *tick = &command->tick_lease;
    const struct lease *lease;
    if (find_lease(decision, tick->lease, tick->fence, &lease, error) < 0)
        return -1;
    if (lease->state != LEASE_STATE_RUNNING)
        return error_set(error, ERROR_CONFLICT, "lease %" PRIu64 " does not run yet", lease->id);
    if (tick->tick_index <= lease->tick_index)
        return error_set(error, ERROR_CONFLICT,
                         "tick %" PRIu64 " of lease %" PRIu64 " is billed already",
                         tick->tick_index, lease->id);
    decision->subject = lease->id;
    return bill_lease(decision, lease, tick->tick_index, tick->wall_ms, error);
}

/* A worker that ends in good order because its job failed or was cancelled did what it was asked,
 * but not what it was for. */
static enum lease_outcome outcome_in(const struct job *job, const struct lease *lease,
                                     enum lease_outcome outcome)
{
    const bool is_given_up =
        job->state == JOB_STATE_STOPPING && job->outcome != JOB_STATE_SUCCEEDED;
    return is_given_up && lease->role == LEASE_ROLE_WORKER && outcome == LEASE_OUTCOME_SUCCEEDED
               ? LEASE_OUTCOME_STOPPED
               : outcome;
}

int decide_end_lease(struct decision *decision, const struct command *command, struct error *error)
{
    const __typeof__(command->end_lease) *end = &command->end_lease;
    const struct lease *lease;
    if (find_lease(decision, end->lease, end->fence, &lease, error) < 0)
        return -1;
    if (end->outcome == LEASE_OUTCOME_NONE || end->outcome >= LEASE_OUTCOME_COUNT)
        return error_set(error, ERROR_INVALID, "a lease ends with an outcome");
    if (lease->state == LEASE_STATE_RUNNING && end->tick_index > lease->tick_index &&
        bill_lease(decision, lease, end->tick_index, end->wall_ms, error) < 0)
        return -1;
    char reason[LEASE_REASON_SIZE];
    copy_reason(end->reason, reason);
    decision->subject = lease->id;
    const struct job *job = core_job(decision->core, lease->job);
    end_lease(decision, lease, outcome_in(job, lease, end->outcome), reason);
    settle_job(decision, job);
    return 0;
}

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
        finish_job(decision, job, JOB_STATE_CANCELLED, "cancelled");
        return 0;
    }
    if (job->state != JOB_STATE_STOPPING)
        begin_stop(decision, job, JOB_STATE_CANCELLED, "cancelled", STOP_ALL);
    settle_job(decision, job);
    return 0;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void end_late_leases(struct decision *decision, const struct job *job)
{
    const struct core_settings *settings = &decision->core->settings;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (!lease_is_open(lease))
            continue;
        if (lease->stop_wanted_ms > 0) {
            if (lease->stop_wanted_ms + settings->grace_ms <= decision->now_ms)
                end_lease(decision, lease, LEASE_OUTCOME_LOST, "it did not stop when asked to");
        } else if (lease->state == LEASE_STATE_OFFERED &&
                   lease->offered_ms + settings->start_ms <= decision->now_ms) {
            end_lease(decision, lease, LEASE_OUTCOME_LOST, "it did not start in time");
        }
    }
}

void decide_job_times(struct decision *decision)
{
    const struct id_list *active = &decision->core->active;
    for (size_t i = 0; i < active->count;) {
        const struct job *job = active->items[i].value;
        end_late_leases(decision, job);
        settle_job(decision, job);
        const bool is_going = job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING;
        if (is_going && job->started_ms > 0 &&
            job->started_ms + job->request.max_run_ms <= decision->now_ms) {
            begin_stop(decision, job, JOB_STATE_SUCCEEDED, "max_run_time reached",
                       STOP_SERVER_FIRST);
            settle_job(decision, job);
        }
        /* A job that ended left the list, and the next took its place. */
        if (job_state_has_leases(job->state))
            i++;
    }
}
