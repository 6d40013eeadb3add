/*
 * Commands about leases: run, bill, end; and those that come too late.
 */
#include "core/core_internal.h"

#include <inttypes.h>

/* What was held for one that was let go, unless nothing is left of it. */
static void give_back(struct decision *decision, const struct lease *lease)
{
    char memo[LEDGER_MEMO_SIZE];
    if (decision->core->due.entry_count == 0)
        return;
    snprintf(memo, sizeof(memo), "lease %" PRIu64 " was let go", lease->id);
    decision_emit_due(decision, memo);
    decide_try_short_of(decision->core, core_job(decision->core, lease->job)->request.account);
}

static void end_with(struct decision *decision, const struct lease *lease,
                     enum lease_outcome outcome, int64_t exit_code, const char *reason)
{
    struct event event = {.kind = EVENT_LEASE_ENDED,
                          .lease_ended = {.lease = lease->id,
                                          .job = lease->job,
                                          .machine = lease->machine,
                                          .fence = lease->fence,
                                          .outcome = outcome,
                                          .exit_code = exit_code}};
    snprintf(event.lease_ended.reason, LEASE_REASON_SIZE, "%s", reason);
    decision_emit(decision, &event);
    if (outcome == LEASE_OUTCOME_FAULTY) {
        decide_pay_back(decision, lease);
    } else {
        give_back(decision, lease);
        decide_release_grant(decision, lease);
    }
    decision->should_match = true;
}

void decision_end_lease(struct decision *decision, const struct lease *lease,
                        enum lease_outcome outcome, const char *reason)
{
    end_with(decision, lease, outcome, /* exit_code= */ 0, reason);
}

/* A program of one's own may be done there all the same: what a rank of a job that ends well left
 * is waited for until its machine is lost, CORE_DELIVER_MS at most. One that was not heard to run
 * has left nothing. */
static bool may_still_deliver(const struct decision *decision, const struct lease *lease)
{
    const struct job *job = core_job(decision->core, lease->job);
    return job->state == JOB_STATE_STOPPING && job->outcome == JOB_STATE_SUCCEEDED &&
           decision->now_ms < job->stopping_ms + CORE_DELIVER_MS &&
           lease->state == LEASE_STATE_RUNNING && !job_has_server(job) &&
           core_lease_is_unreachable(decision->core, lease);
}

enum stop_kind { STOP_WANTED, STOP_RECLAIMED, STOP_SURPLUS };

/* A machine that cannot be asked is not waited for. That a worker was let go is said all the same:
 * nobody follows it. */
static void want_stop(struct decision *decision, const struct lease *lease, enum stop_kind kind,
                      const char *reason)
{
    const bool is_reclaim = kind == STOP_RECLAIMED;
    if (!lease_is_open(lease) || lease->stop_wanted_ms > 0 ||
        (!is_reclaim && may_still_deliver(decision, lease)))
        return;
    const bool can_ask =
        core_machine(decision->core, lease->machine)->state == MACHINE_STATE_ONLINE;
    const bool is_let_go =
        !is_reclaim && core_job(decision->core, lease->job)->state != JOB_STATE_STOPPING;
    if (can_ask || is_let_go) {
        struct event event = {.kind = EVENT_LEASE_STOP_WANTED,
                              .lease_stop_wanted = {.lease = lease->id,
                                                    .job = lease->job,
                                                    .machine = lease->machine,
                                                    .fence = lease->fence,
                                                    .grace_ms = decision->core->settings.grace_ms,
                                                    .is_reclaim = is_reclaim,
                                                    .is_surplus = kind == STOP_SURPLUS}};
        decision_copy_reason(text_of(reason), event.lease_stop_wanted.reason);
        decision_emit(decision, &event);
    }
    if (!can_ask)
        decision_end_lease(decision, lease,
                           is_reclaim ? LEASE_OUTCOME_RECLAIMED : LEASE_OUTCOME_LOST,
                           "its machine is unreachable");
}

/* Asks an open lease to stop, once. A machine that cannot be asked is not waited for. */
void decision_want_stop(struct decision *decision, const struct lease *lease, const char *reason)
{
    want_stop(decision, lease, STOP_WANTED, reason);
}

void decision_let_go(struct decision *decision, const struct lease *lease, const char *reason)
{
    want_stop(decision, lease, STOP_SURPLUS, reason);
}

void decision_want_all_stopped(struct decision *decision, const struct job *job, const char *reason)
{
    for (size_t i = 0; i < job->lease_count; i++)
        decision_want_stop(decision, job->leases[i], reason);
}

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
    if (lease->start_by_ms < decision->now_ms)
        return error_set(error, ERROR_CONFLICT, "lease %" PRIu64 " did not start in time",
                         lease->id);
    struct event event = {.kind = EVENT_LEASE_STARTED,
                          .lease_started = {.lease = lease->id, .fence = lease->fence}};
    decision_emit(decision, &event);
    const struct job *job = core_job(decision->core, lease->job);
    if (job->state == JOB_STATE_STARTING && job_is_under_way(job))
        decision_emit_job_state(decision, job, JOB_STATE_RUNNING, JOB_STATE_RUNNING, job->reason);
    return 0;
}

/* Everything verified so far, less what was posted before. */
static int bill_lease(struct decision *decision, const struct lease *lease, uint64_t tick_index,
                      int64_t verified_ms, struct error *error)
{
    if (tick_index == UINT64_MAX || verified_ms < 0)
        return error_set(error, ERROR_INVALID, "the tick is out of range");
    const int64_t wall_ms = lease_billable_ms(lease, verified_ms, decision->now_ms);
    const struct lease_bill bill = lease_bill(lease, wall_ms);
    if (bill.amount_micro > 0)
        decide_own_pay(decision, core_job(decision->core, lease->job)->request.account,
                       lease->payee);
    struct event event = {.kind = EVENT_LEASE_TICKED,
                          .lease_ticked = {.lease = lease->id,
                                           .job = lease->job,
                                           .fence = lease->fence,
                                           .tick_index = tick_index,
                                           .wall_ms = wall_ms,
                                           .bill_micro = bill.bill_micro,
                                           .amount_micro = bill.amount_micro,
                                           .fee_micro = bill.fee_micro}};
    decision_emit(decision, &event);
    char memo[LEDGER_MEMO_SIZE];
    snprintf(memo, sizeof(memo), "tick %" PRIu64, tick_index);
    decision_emit_due(decision, memo);
    decide_prove_machine(decision, core_machine(decision->core, lease->machine));
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

/* What its owner took back ends as that, however it stopped, unless the job ends anyway.
 *
 * A worker that ends in good order because its job failed or was cancelled did what it was asked,
 * but not what it was for. */
static enum lease_outcome outcome_in(const struct job *job, const struct lease *lease,
                                     enum lease_outcome outcome)
{
    if (outcome == LEASE_OUTCOME_FAULTY)
        return outcome; /* however it was to end */
    if (lease->is_reclaimed && job->state != JOB_STATE_STOPPING)
        return LEASE_OUTCOME_RECLAIMED;
    /* One that was let go has done what its job wanted of it. */
    if (lease->is_surplus &&
        (outcome == LEASE_OUTCOME_STOPPED || outcome == LEASE_OUTCOME_SUCCEEDED))
        return lease->started_ms > 0 ? LEASE_OUTCOME_SUCCEEDED : LEASE_OUTCOME_STOPPED;
    const bool is_given_up = job->state == JOB_STATE_STOPPING
                                 ? job->outcome != JOB_STATE_SUCCEEDED
                                 : lease->stop_wanted_ms > 0; /* let go */
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
    if (end->outcome == LEASE_OUTCOME_NONE || end->outcome == LEASE_OUTCOME_PREEMPTED ||
        end->outcome >= LEASE_OUTCOME_COUNT)
        return error_set(error, ERROR_INVALID, "a lease ends with an outcome of its own");
    if (end->exit_code < 0 || end->exit_code > LEASE_EXIT_CODE_MAX)
        return error_set(error, ERROR_INVALID, "an exit status is from 0 to %d",
                         LEASE_EXIT_CODE_MAX);
    if (lease->state == LEASE_STATE_RUNNING && end->tick_index > lease->tick_index &&
        bill_lease(decision, lease, end->tick_index, end->wall_ms, error) < 0)
        return -1;
    char reason[LEASE_REASON_SIZE];
    decision_copy_reason(end->reason, reason);
    decision->subject = lease->id;
    const struct job *job = core_job(decision->core, lease->job);
    enum lease_outcome outcome = outcome_in(job, lease, end->outcome);
    if (outcome == LEASE_OUTCOME_FAULTY &&
        !fault_is_proven(decision->core, lease, end->accuser, end->agreeing))
        outcome = LEASE_OUTCOME_FAILED; /* another takes its place, and it keeps what it has */
    end_with(decision, lease, outcome, end->exit_code, reason);
    decision_settle_job(decision, job);
    return 0;
}

void decide_late_leases(struct decision *decision, const struct job *job)
{
    const struct core_settings *settings = &decision->core->settings;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (!lease_is_open(lease))
            continue;
        if (lease->stop_wanted_ms > 0) {
            if (lease->stop_wanted_ms + settings->grace_ms <= decision->now_ms)
                decision_end_lease(decision, lease, outcome_in(job, lease, LEASE_OUTCOME_LOST),
                                   "it did not stop when asked to");
        } else if (lease->state == LEASE_STATE_OFFERED && lease->start_by_ms <= decision->now_ms) {
            decision_end_lease(decision, lease, LEASE_OUTCOME_LOST, "it did not start in time");
        }
    }
}

void decide_end_leases(struct decision *decision, struct machine *machine,
                       enum lease_outcome outcome, const char *reason)
{
    /* Settling a job may end more of this machine's leases, so the list is asked anew each time. */
    while (machine->lease_count + machine_spare_count(machine) > 0) {
        const struct lease *lease =
            machine->lease_count > 0 ? machine->leases[0] : machine->spare->leases[0];
        decision_end_lease(decision, lease, outcome, reason);
        decision_settle_job(decision, core_job(decision->core, lease->job));
    }
}

/* ---- Ended early ----------------------------------------------------------------------------- */

static size_t count_kept_workers(const struct job *job)
{
    size_t count = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        count += lease_is_open(job->workers[i]) && job->workers[i]->stop_wanted_ms == 0;
    return count;
}

int decide_release_lease(struct decision *decision, const struct command *command,
                         struct error *error)
{
    const __typeof__(command->release_lease) *release = &command->release_lease;
    const struct lease *lease = core_lease(decision->core, release->lease);
    const struct job *job = lease ? core_job(decision->core, lease->job) : NULL;
    if (!lease)
        return error_set(error, ERROR_NOT_FOUND, "lease %" PRIu64 " does not exist",
                         release->lease);
    if (job->request.account != release->account)
        return error_set(error, ERROR_REFUSED, "lease %" PRIu64 " is of another account's job",
                         lease->id);
    if (!lease_is_open(lease) || lease->stop_wanted_ms > 0)
        return error_set(error, ERROR_CONFLICT, "lease %" PRIu64 " has ended or is about to",
                         lease->id);
    if (lease->role != LEASE_ROLE_WORKER || count_kept_workers(job) < 2)
        return error_set(error, ERROR_CONFLICT,
                         "job %" PRIu64 " cannot go on without it: cancel the job", job->id);
    decision->subject = lease->id;
    want_stop(decision, lease, STOP_WANTED, "its borrower needs it no more");
    decision_settle_job(decision, job);
    return 0;
}

static bool is_reclaimed_by(const __typeof__(((struct command *)NULL)->reclaim_leases) *reclaim,
                            const struct lease *lease)
{
    return reclaim->machine || (reclaim->lease && lease->id == reclaim->lease) ||
           (reclaim->offer && lease->offer == reclaim->offer);
}

static int find_reclaimed(const struct decision *decision, const struct command *command,
                          struct machine **out_machine, struct error *error)
{
    const __typeof__(command->reclaim_leases) *reclaim = &command->reclaim_leases;
    uint64_t machine = reclaim->machine;
    if ((reclaim->lease != 0) + (reclaim->offer != 0) + (machine != 0) != 1)
        return error_set(error, ERROR_INVALID, "one lease, one offer or one machine is reclaimed");
    if (reclaim->lease) {
        const struct lease *lease = core_lease(decision->core, reclaim->lease);
        if (!lease)
            return error_set(error, ERROR_NOT_FOUND, "lease %" PRIu64 " does not exist",
                             reclaim->lease);
        if (!lease_is_open(lease))
            return error_set(error, ERROR_CONFLICT, "lease %" PRIu64 " has ended already",
                             lease->id);
        machine = lease->machine;
    }
    if (reclaim->offer) {
        const struct offer *offer = core_offer(decision->core, reclaim->offer);
        if (!offer)
            return error_set(error, ERROR_NOT_FOUND, "offer %" PRIu64 " does not exist",
                             reclaim->offer);
        machine = offer->machine->id;
    }
    return decide_find_own_machine(decision, reclaim->account, machine, out_machine, error);
}

int decide_reclaim_leases(struct decision *decision, const struct command *command,
                          struct error *error)
{
    const __typeof__(command->reclaim_leases) *reclaim = &command->reclaim_leases;
    struct machine *machine;
    if (find_reclaimed(decision, command, &machine, error) < 0)
        return -1;
    decision->subject = machine->id;
    /* Those there are now: what follows may end some of them and make others. */
    const size_t paid_count = machine->lease_count;
    const size_t count = paid_count + machine_spare_count(machine);
    uint64_t *leases = arena_alloc(decision->out->arena, (count + 1) * sizeof(*leases));
    for (size_t i = 0; i < count; i++)
        leases[i] =
            i < paid_count ? machine->leases[i]->id : machine->spare->leases[i - paid_count]->id;
    for (size_t i = 0; i < count; i++) {
        const struct lease *lease = core_lease(decision->core, leases[i]);
        if (!is_reclaimed_by(reclaim, lease))
            continue;
        want_stop(decision, lease, STOP_RECLAIMED, "the owner took the machine back");
        decision_settle_job(decision, core_job(decision->core, lease->job));
    }
    return 0;
}
