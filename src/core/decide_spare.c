/*
 * Spare time: what nobody pays for, free for members with next to nothing, last in line.
 *
 * A lease of spare time takes nothing from anybody: matching, reservations, prices and what counts
 * as lent are as if it were not there. Who pays is placed on top of it, and what is in the way ends
 * at that moment (decide_preempt). Whoever may have it is tried when all others have been, on what
 * is left beside the reservation of the first in the line, one job of each account at a time.
 *
 * A job that lost what it cannot do without is pending again, and tried with the others.
 */
#include "core/match_rounds.h"

/* In one decision: those who pay come first there, too. */
enum { TRIES_MAX = 2, LOOKS_MAX = 64 };

bool core_may_have_spare(const struct core *core, uint64_t account)
{
    const struct ledger_account *balance = core_balance(core, account);
    return balance &&
           ledger_available_micro(balance) + balance->held_micro < CORE_SPARE_BELOW_MICRO;
}

void decide_spare_for(struct decision *decision, uint64_t account)
{
    if (decision->core->spare_waiting.count > 0 &&
        core_account(decision->core, account)->spare_waiting_count > 0)
        match_rounds_spare(decision->core->rounds);
}

void decide_preempt(struct decision *decision, const struct match_part *part)
{
    struct core *core = decision->core;
    const struct lease *lease;
    while ((lease = machine_spare_in_way(part->machine, part->offer, part->resources))) {
        match_rounds_preempt(core->rounds, map_get(&core->jobs, lease->job));
        decision_end_lease(decision, lease, LEASE_OUTCOME_PREEMPTED,
                           "a paying job needs the machine");
    }
}

static bool may_start(const struct core *core, const struct job *job)
{
    const struct account *account = core_account(core, job->request.account);
    return account->spare_active_count == 0 && !account_is_frozen(account) &&
           core_may_have_spare(core, account->id);
}

static void start(struct decision *decision, const struct job *job)
{
    struct core *core = decision->core;
    const struct match_wish wish = core_wish(core, &job->request, 0, decision->now_ms);
    struct match_placement placement;
    const struct match_reservation *ahead = decide_ahead(decision, /* job= */ NULL);
    if (match_place(core->matcher, &wish, ahead, &placement) != MATCH_PLACED)
        return;
    for (size_t i = 0; i < placement.part_count; i++)
        decision_offer_lease(decision, job, &placement.parts[i], &wish);
    decision_emit_job_state(decision, job, JOB_STATE_STARTING, JOB_STATE_STARTING, "");
    if (job->request.has_replica)
        decision_replace_lost(decision, job);
}

/* Beginning after the one that was looked at last. */
static void start_some(struct decision *decision, struct worker_turns *turns)
{
    const struct id_list *jobs = &decision->core->spare_waiting;
    size_t at = id_list_find(jobs, turns->last + 1);
    if (turns->left > jobs->count)
        turns->left = jobs->count;
    for (int tries = 0, looks = 0; turns->left > 0 && tries < TRIES_MAX && looks < LOOKS_MAX;
         turns->left--, looks++) {
        if (at >= jobs->count)
            at = 0;
        const struct job *job = jobs->items[at].value;
        turns->last = job->id;
        if (may_start(decision->core, job)) {
            start(decision, job);
            tries++;
        }
        if (jobs->count == 0) {
            turns->left = 0;
            return;
        }
        if (at < jobs->count && jobs->items[at].id == job->id)
            at++; /* it is still there */
    }
}

static bool wants_workers(const struct job *job)
{
    return decide_is_bereaved(job) || job_can_grow(job);
}

static void add_workers(struct decision *decision, const struct job *job)
{
    decision_replace_lost(decision, job);
    decision_grow(decision, job);
}

static void settle_preempted(struct decision *decision)
{
    struct id_list *preempted = &decision->core->rounds->preempted;
    while (preempted->count > 0) {
        const struct job *job = preempted->items[preempted->count - 1].value;
        id_list_remove(preempted, job->id);
        decision_settle_job(decision, job);
    }
}

void decide_spare(struct decision *decision)
{
    struct core *core = decision->core;
    struct worker_turns *starts = &core->spare_turns[0], *workers = &core->spare_turns[1];
    settle_preempted(decision);
    if (core->rounds->is_spare_due || decision->admitted) {
        core->rounds->is_spare_due = false;
        starts->left = core->spare_waiting.count;
        workers->left = core->spare_short.count;
    }
    if (workers->left > 0)
        decide_each(decision, &core->spare_short, workers, TRIES_MAX, wants_workers, add_workers);
    if (starts->left > 0)
        start_some(decision, starts);
}
