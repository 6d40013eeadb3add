/*
 * Matching: gives pending jobs their leases, in the queue's order, with backfill.
 *
 * A try follows an event: a job that is new is tried, a machine that was touched tries the jobs it
 * could serve, a change of balances or prices those for which there was room at too high a cost.
 * Nothing else can have changed for the others, so nobody else is tried. A job behind one with a
 * reservation (decide_ahead.c) may start only if it ends before, or leaves the reserved room free:
 * when that moves or is given up, its machines are touched.
 *
 * However many machines one event touches and however many wait, a decision compares at most
 * LOOKS_MAX jobs with machines and tries about TRIES_MAX. What is left then goes on with the next
 * one, for which the core wakes at once: nobody who could start is passed over.
 */
#include "core/match_rounds.h"

#include <stdlib.h>

enum { TRIES_MAX = 256, TRIES_OF_ONE = 64, MACHINES_MAX = 256, LOOKS_MAX = 16384, SWEEP_MAX = 128 };

/* ---- Whom to try ----------------------------------------------------------------------------- */

/* Whether the job could use what has become free there, for some of its leases at least. */
static bool could_use(struct decision *decision, const struct job *job, const struct offer *offer)
{
    const struct match_rounds *rounds = decision->core->rounds;
    const struct match_wish wish = decide_wish_in_line(decision, job);
    const struct job *first = line_first(&decision->core->line);
    const bool is_behind =
        rounds->has_ahead && first && rounds->ahead.job == first->id && line_is_before(first, job);
    return match_could_use(&wish, offer, is_behind ? &rounds->ahead : NULL);
}

/* One machine gives it at most one worker. */
static bool lacks_more(const struct match_rounds *rounds, const struct job *job)
{
    return rounds->clock - job->tried_at < (uint64_t)job->lacking;
}

/* Adds jobs that the offer could serve, after the mark. False: there are more. */
static bool add_tries_of_offer(struct decision *decision, struct match_touched *touched,
                               const struct offer *offer, size_t *looks_left)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    const struct book_wish wish = waiting_wish(&core->listing, offer, decision->now_ms);
    size_t count = 0;
    book_search_start_after(&rounds->search, core->waiting.book, &wish,
                            (struct book_sort){.by = BOOK_BY_SCORE}, touched->mark);
    for (struct job *job; (job = book_search_next(&rounds->search));) {
        rounds->looked_at++;
        touched->mark = rounds->search.mark;
        if (job->tried_at < touched->at && !lacks_more(rounds, job) &&
            could_use(decision, job, offer)) {
            match_rounds_add_try(rounds, job, touched->at);
            count++;
        }
        if (--*looks_left == 0 || count == TRIES_OF_ONE)
            return false;
    }
    return true;
}

/* False: some of its jobs have not been looked at yet. */
static bool add_tries_of(struct decision *decision, struct match_touched *touched,
                         size_t *looks_left)
{
    static const struct book_mark first = {.rank = INT64_MAX};
    struct machine *machine = touched->machine;
    if (touched->at == 0) {
        touched->at = machine->touched_at;
        machine->touched_at = 0;
    }
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer *offer = machine->offers[i];
        if (!offer->listing_number || offer->id < touched->offer)
            continue;
        if (*looks_left == 0)
            return false;
        if (offer->id != touched->offer)
            touched->mark = first;
        touched->offer = offer->id;
        if (!add_tries_of_offer(decision, touched, offer, looks_left))
            return false;
    }
    return true;
}

static void drop_touched(struct match_rounds *rounds)
{
    for (size_t i = 0; i < rounds->touched_count; i++)
        rounds->touched[i].machine->touched_at = 0;
    rounds->touched_count = 0;
}

/* The machines that were touched first; those with more jobs to come keep their places. */
static void add_tries_of_machines(struct decision *decision, size_t *looks_left)
{
    struct match_rounds *rounds = decision->core->rounds;
    size_t at = 0, kept = 0;
    for (; at < rounds->touched_count && at<MACHINES_MAX && * looks_left> 0; at++)
        if (!add_tries_of(decision, &rounds->touched[at], looks_left))
            rounds->touched[kept++] = rounds->touched[at];
    if (at < rounds->touched_count) /* without any the list may be no memory at all */
        memmove(rounds->touched + kept, rounds->touched + at,
                (rounds->touched_count - at) * sizeof(*rounds->touched));
    rounds->touched_count -= at - kept;
}

static bool is_credited(const struct decision *decision, uint64_t account)
{
    for (size_t i = 0; i < decision->credited_count; i++)
        if (decision->credited[i] == account)
            return true;
    return false;
}

/* Jobs that were too dear, of accounts that have more now. */
static void add_tries_of_short(struct decision *decision)
{
    struct core *core = decision->core;
    bool is_worth_it = false;
    for (size_t i = 0; i < decision->credited_count && !is_worth_it; i++)
        is_worth_it = core_account(core, decision->credited[i])->short_count > 0;
    for (size_t i = 0; is_worth_it && i < core->short_of_money.count; i++) {
        struct job *job = core->short_of_money.items[i].value;
        if (is_credited(decision, job->request.account))
            match_rounds_try(core->rounds, job);
    }
}

/* At new prices all that were too dear, and in a market that was loaded all that wait. */
static void add_tries_of_sweep(struct decision *decision)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    if (rounds->sweep == MATCH_SWEEP_NONE)
        return;
    const struct id_list *jobs =
        rounds->sweep == MATCH_SWEEP_SHORT ? &core->short_of_money : &core->pending;
    size_t at = id_list_find(jobs, rounds->sweep_from);
    const size_t end = jobs->count - at > SWEEP_MAX ? at + SWEEP_MAX : jobs->count;
    for (; at < end; at++) {
        struct job *job = jobs->items[at].value;
        rounds->sweep_from = job->id + 1;
        if (job->waiting_numbers[0])
            match_rounds_try(rounds, job);
    }
    if (end == jobs->count) {
        rounds->sweep = MATCH_SWEEP_NONE;
        rounds->sweep_from = 0;
    }
}

static void add_tries_of_admitted(struct decision *decision)
{
    struct core *core = decision->core;
    for (size_t i = 0; decision->admitted && i < core->pending.count; i++) {
        struct job *job = core->pending.items[i].value;
        if (job->request.account != decision->admitted || !job->waiting_numbers[0])
            continue;
        core_mark_stuck(core, job, false);
        match_rounds_try(core->rounds, job);
    }
}

static int compare_tries(const void *left, const void *right)
{
    const struct match_try *a = left, *b = right;
    return line_is_before(b->job, a->job) - line_is_before(a->job, b->job);
}

/* ---- Placing --------------------------------------------------------------------------------- */

void decide_try_short_of(struct core *core, uint64_t account)
{
    size_t left = core_account(core, account)->short_count;
    for (size_t i = 0; left > 0 && i < core->short_of_money.count; i++) {
        struct job *job = core->short_of_money.items[i].value;
        if (job->request.account != account)
            continue;
        match_rounds_try(core->rounds, job);
        left--;
    }
}

/* Makes the hold exactly what the leases may cost. */
static void adjust_hold(struct decision *decision, const struct job *job, int64_t quote_micro)
{
    const int64_t held_micro = core_held_micro(decision->core, job->id);
    if (quote_micro >= held_micro) {
        decision_hold_more(decision, job, quote_micro - held_micro);
        return;
    }
    struct ledger_plan plan;
    struct error error;
    ASSERT(ledger_plan_void(decision->core->ledger, job->id, held_micro - quote_micro, &plan,
                            &error) == 0);
    decision_emit_plan(decision, &plan, "matched for less");
    decide_try_short_of(decision->core, job->request.account);
}

void decision_offer_lease(struct decision *decision, const struct job *job,
                          const struct match_part *part, const struct match_wish *wish)
{
    if (part->machine->spare && !wish->request->is_spare)
        decide_preempt(decision, part);
    struct event event = {.kind = EVENT_LEASE_OFFERED,
                          .lease_offered = {.lease = decision->core->last_id + 1,
                                            .job = job->id,
                                            .machine = part->machine->id,
                                            .offer = part->offer->id,
                                            .payee = part->machine->owner,
                                            .fence = decision->core->last_fence + 1,
                                            .role = part->role,
                                            .rank = part->rank,
                                            .resources = part->resources,
                                            .units = part->units,
                                            .lock = match_part_lock(part, wish),
                                            .max_run_ms = wish->request->max_run_ms,
                                            .start_by_ms = wish->latest_start_ms,
                                            .quote_micro = part->quote_micro}};
    decision_emit(decision, &event);
}

/* The leases' offers, and the places of the leases, lie anywhere in maps of millions. */
static void ask_slots(const struct core *core, const struct match_placement *placement)
{
    for (size_t i = 0; i < placement->part_count; i++) {
        map_ask_slot(&core->offers, placement->parts[i].offer->id);
        map_ask_slot(&core->leases, core->last_id + 1 + i);
        __builtin_prefetch(placement->parts[i].machine->offers);
    }
}

static void ask_entries(const struct core *core, const struct match_placement *placement)
{
    for (size_t i = 0; i < placement->part_count; i++)
        map_ask_entry(&core->offers, placement->parts[i].offer->id);
}

static bool is_too_dear(enum match_result result)
{
    return result == MATCH_OVER_BUDGET || result == MATCH_OVER_HOURLY;
}

/* What it waits for: money, or so many workers at least. */
static void note_result(struct decision *decision, struct job *job, enum match_result result)
{
    job->lacking = result == MATCH_FEW_MACHINES ? decision->core->matcher->lacking : 0;
    if (result != MATCH_PLACED)
        decision_note_wait(decision, job, is_too_dear(result), job->is_unhurried);
}

static void try_job(struct decision *decision, struct job *job)
{
    struct core *core = decision->core;
    if (account_is_frozen(core_account(core, job->request.account))) {
        core_let_wait(core, job);
        decision_note_wait(decision, job, /* is_short= */ true, job->is_unhurried);
        return;
    }
    const struct match_wish wish = decide_wish(decision, job);
    struct match_placement placement;
    const enum match_result result =
        core_passes_booking(job, &wish)
            ? MATCH_OVER_BUDGET
            : match_place(core->matcher, &wish, decide_ahead(decision, job), &placement);
    if (result != MATCH_PLACED)
        core_let_wait(core, job); /* if it is new */
    note_result(decision, job, result);
    if (wish.lock.rush_ms > 0 && is_too_dear(result)) {
        decision_note_wait(decision, job, job->is_short, /* is_unhurried= */ true);
        match_rounds_try(core->rounds, job); /* when its usual turn comes */
    }
    if (result != MATCH_PLACED)
        return;
    ask_slots(core, &placement);
    adjust_hold(decision, job, placement.quote_micro);
    ask_entries(core, &placement);
    for (size_t i = 0; i < placement.part_count; i++)
        decision_offer_lease(decision, job, &placement.parts[i], &wish);
    decision_emit_job_state(decision, job, JOB_STATE_STARTING, JOB_STATE_STARTING, "");
    if (job->request.has_replica)
        decision_replace_lost(decision, job);
}

static size_t try_all(struct decision *decision)
{
    struct match_rounds *rounds = decision->core->rounds;
    const struct job *last = NULL;
    size_t count = 0;
    if (rounds->try_count > 1)
        qsort(rounds->tries, rounds->try_count, sizeof(*rounds->tries), compare_tries);
    for (size_t i = 0; i < rounds->try_count; i++) {
        const struct match_try try = rounds->tries[i];
        if (try.job == last || try.job->tried_at >= try.at || !try.job->waiting_numbers[0])
            continue;
        const bool was_unhurried = try.job->is_unhurried;
        try.job->tried_at = rounds->clock;
        try_job(decision, try.job);
        last = try.job->is_unhurried == was_unhurried ? try.job : NULL;
        count++;
    }
    rounds->try_count = 0;
    return count;
}

void decide_touched(struct decision *decision)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    size_t looks_left = LOOKS_MAX - decision->looks;
    while (book_count(core->waiting.book) > 0 && looks_left > 0 && decision->tries < TRIES_MAX) {
        add_tries_of_machines(decision, &looks_left);
        if (rounds->try_count == 0 && rounds->touched_count == 0 && !decide_renew_ahead(decision))
            break;
        decision->tries += try_all(decision); /* a reservation that is given up touches machines */
    }
    decision->looks = LOOKS_MAX - looks_left;
    if (book_count(core->waiting.book) == 0)
        drop_touched(rounds);
}

/* At once when nobody else is to be tried, who might go first. */
static void try_new(struct decision *decision)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    struct job *job = rounds->expected;
    rounds->expected = NULL;
    if (!job)
        return;
    if (rounds->try_count > 0 || rounds->touched_count > 0) {
        core_let_wait(core, job);
        match_rounds_try(rounds, job);
        return;
    }
    job->tried_at = rounds->clock;
    decision->tries++;
    try_job(decision, job);
}

void decide_match(struct decision *decision)
{
    if (decision->is_repriced) {
        match_rounds_sweep_short(decision->core->rounds);
        decide_hurry_again(decision);
    }
    add_tries_of_short(decision);
    add_tries_of_admitted(decision);
    add_tries_of_sweep(decision);
    try_new(decision);
    decide_touched(decision);
}
