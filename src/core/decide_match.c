/*
 * Matching: gives pending jobs their leases, in the queue's order, with backfill.
 *
 * A try follows an event: a job that is new is tried, a machine that got better tries the jobs it
 * could serve, a change of balances or prices those for which there was room at too high a cost.
 * Nothing else can have changed for the others, so nobody else is tried.
 *
 * The first job of the queue that waits for leases to end has a reservation (match_reserve). A job
 * behind it may start only if it ends before, or leaves the reserved room free. The reservation
 * follows from the state when it is made; it is kept while its machines stay as they are, for all
 * that starts meanwhile leaves its room free, and what it waits for can only end earlier than
 * thought. So its start does not move back while its machines stay.
 *
 * One machine tries at most TRIES_MAX jobs of any size and then as many of one worker, and if none
 * of them can be placed the next, ROUNDS_MAX times; that bounds the time of a decision however long
 * the queue is.
 */
#include "core/core_internal.h"

#include <stdlib.h>

enum { ROUNDS_MAX = 16, TRIES_MAX = 64, QUEUE_LOOKS = 64, RESERVE_TRIES = 4, MACHINES_MAX = 256 };

struct attempt_at {
    struct job *job;
    int64_t score;
};

struct match_rounds {
    uint64_t number;  /* of the decision */
    bool is_cut;      /* a machine could serve more jobs than were tried */
    bool is_deciding; /* only then is it worth to remember machines */
    const struct machine **machines;
    size_t machine_count;
    size_t machine_capacity;
    struct attempt_at *tries;
    size_t try_count;
    size_t try_capacity;
    struct book_search search;
    struct arena *arena; /* of the reservation */
    struct match_reservation ahead;
    bool has_ahead;
    bool is_freed; /* a reservation was given up: others may have its room */
};

struct match_rounds *match_rounds_new(void)
{
    struct match_rounds *rounds = calloc(1, sizeof(*rounds));
    ASSERT(rounds);
    rounds->arena = arena_new(0);
    return rounds;
}

void match_rounds_free(struct match_rounds *rounds)
{
    if (!rounds)
        return;
    free(rounds->machines);
    free(rounds->tries);
    book_search_done(&rounds->search);
    arena_free(rounds->arena);
    free(rounds);
}

void match_rounds_begin(struct match_rounds *rounds)
{
    rounds->number++;
    rounds->is_deciding = true;
    rounds->machine_count = 0;
    rounds->try_count = 0;
    rounds->is_freed = false;
}

static int64_t score_of(const struct job *job)
{
    return queue_score(job->request.is_rush, job->turn.tag);
}

static void add_try(struct match_rounds *rounds, struct job *job)
{
    if (rounds->try_count == rounds->try_capacity) {
        rounds->try_capacity = rounds->try_capacity ? rounds->try_capacity * 2 : 64;
        rounds->tries = realloc(rounds->tries, rounds->try_capacity * sizeof(*rounds->tries));
        ASSERT(rounds->tries);
    }
    rounds->tries[rounds->try_count++] = (struct attempt_at){job, score_of(job)};
}

void match_rounds_touch(struct match_rounds *rounds, const struct machine *machine)
{
    if (rounds->has_ahead && match_is_reserved(&rounds->ahead, machine))
        rounds->has_ahead = false;
    if (!rounds->is_deciding)
        return;
    if (rounds->machine_count > 0 && rounds->machines[rounds->machine_count - 1] == machine)
        return;
    if (rounds->machine_count == rounds->machine_capacity) {
        rounds->machine_capacity = rounds->machine_capacity ? rounds->machine_capacity * 2 : 16;
        rounds->machines =
            realloc(rounds->machines, rounds->machine_capacity * sizeof(*rounds->machines));
        ASSERT(rounds->machines);
    }
    rounds->machines[rounds->machine_count++] = machine;
}

static void free_reserved(struct match_rounds *rounds)
{
    rounds->has_ahead = false;
    rounds->is_freed = true;
    for (size_t i = 0; i < rounds->ahead.part_count; i++)
        match_rounds_touch(rounds, rounds->ahead.parts[i].machine);
}

void match_rounds_forget_job(struct match_rounds *rounds, const struct job *job)
{
    if (rounds->has_ahead && rounds->ahead.job == job->id)
        free_reserved(rounds);
}

void match_rounds_forget_offer(struct match_rounds *rounds, const struct offer *offer)
{
    if (rounds->has_ahead && match_is_reserved(&rounds->ahead, offer->machine))
        free_reserved(rounds);
}

void match_rounds_try(struct match_rounds *rounds, struct job *job)
{
    add_try(rounds, job);
}

bool match_rounds_is_better(const struct match_rounds *rounds)
{
    return rounds->machine_count > 0;
}

/* ---- Whom to try ----------------------------------------------------------------------------- */

/* At most TRIES_MAX that this decision has not tried; whether there were so many. */
static bool add_tries(struct decision *decision, const struct book_wish *wish)
{
    struct match_rounds *rounds = decision->core->rounds;
    size_t count = 0;
    struct job *job;
    book_search_start(&rounds->search, decision->core->waiting.book, wish,
                      (struct book_sort){.by = BOOK_BY_SCORE});
    while (count < TRIES_MAX && (job = book_search_next(&rounds->search))) {
        if (job->tried_in == rounds->number)
            continue;
        add_try(rounds, job);
        count++;
    }
    return count == TRIES_MAX;
}

static void add_tries_of(struct decision *decision, const struct machine *machine)
{
    struct core *core = decision->core;
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer *offer = machine->offers[i];
        if (!offer->listing_number)
            continue;
        struct book_wish wish = waiting_wish(&core->listing, offer, decision->now_ms, LISTING_FREE);
        if (add_tries(decision, &wish)) {
            core->rounds->is_cut = true;
            waiting_want_few(&wish, 1);
            (void)add_tries(decision, &wish);
        }
    }
}

static void add_tries_of_machines(struct decision *decision, size_t first)
{
    struct match_rounds *rounds = decision->core->rounds;
    const size_t count =
        rounds->machine_count < MACHINES_MAX ? rounds->machine_count : MACHINES_MAX;
    rounds->is_cut = false;
    for (size_t i = first; i < count && book_count(decision->core->waiting.book) > 0; i++)
        add_tries_of(decision, rounds->machines[i]);
}

static bool is_credited(const struct decision *decision, uint64_t account)
{
    for (size_t i = 0; i < decision->credited_count; i++)
        if (decision->credited[i] == account)
            return true;
    return false;
}

/* Jobs that were too dear: all of them at new prices, else those of accounts that have more now. */
static void add_tries_of_short(struct decision *decision)
{
    struct core *core = decision->core;
    bool is_worth_it = decision->is_repriced;
    for (size_t i = 0; i < decision->credited_count && !is_worth_it; i++)
        is_worth_it = core_account(core, decision->credited[i])->short_count > 0;
    for (size_t i = 0; is_worth_it && i < core->short_of_money.count; i++) {
        struct job *job = core->short_of_money.items[i].value;
        if (decision->is_repriced || is_credited(decision, job->request.account))
            add_try(core->rounds, job);
    }
}

static void gather_tries(struct decision *decision)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    struct job *added = decision->new_job ? map_get(&core->jobs, decision->new_job) : NULL;
    if (added && added->waiting_numbers[0])
        add_try(rounds, added);
    if (book_count(core->waiting.book) == 0)
        return;
    add_tries_of_machines(decision, 0);
    add_tries_of_short(decision);
    for (size_t i = 0; decision->admitted && i < core->pending.count; i++) {
        struct job *job = core->pending.items[i].value;
        if (job->request.account == decision->admitted && job->waiting_numbers[0])
            add_try(rounds, job);
    }
}

static int compare_tries(const void *left, const void *right)
{
    const struct attempt_at *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->job->id > b->job->id) - (a->job->id < b->job->id);
}

/* ---- Who goes first -------------------------------------------------------------------------- */

static bool is_before(const struct job *left, const struct job *right)
{
    const int64_t a = score_of(left), b = score_of(right);
    return a != b ? a > b : left->id < right->id;
}

/* Whether any other job waits for room. */
static bool has_queue(const struct core *core, const struct job *job)
{
    const size_t own = (job->waiting_numbers[0] != 0) + (job->waiting_numbers[1] != 0);
    return book_count(core->waiting.book) > own;
}

/* Who rushes pays for it only when there is somebody to go ahead of. */
static struct match_wish wish_of(const struct decision *decision, const struct job *job)
{
    struct match_wish wish = core_wish(decision->core, &job->request,
                                       core_held_micro(decision->core, job->id), decision->now_ms);
    if (!has_queue(decision->core, job))
        wish.lock.rush_ms = 0;
    return wish;
}

static bool keeps_ahead(const struct decision *decision, const struct job *first)
{
    const struct match_rounds *rounds = decision->core->rounds;
    return rounds->has_ahead && rounds->ahead.job == first->id &&
           rounds->ahead.start_ms >= decision->now_ms;
}

/* The reservation of the first job in the queue that has one, if that is before `job`. Who waits
 * for money has none. */
static const struct match_reservation *find_ahead(struct decision *decision, const struct job *job)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    const struct book_wish any = book_wish_any();
    book_search_start(&rounds->search, core->waiting.book, &any,
                      (struct book_sort){.by = BOOK_BY_SCORE});
    for (int looks = 0, made = 0; looks < QUEUE_LOOKS && made < RESERVE_TRIES; looks++) {
        struct job *first = book_search_next(&rounds->search);
        if (!first || !is_before(first, job))
            return NULL;
        if (first->stuck_version == core->listing_version + 1 ||
            id_list_contains(&core->short_of_money, first->id))
            continue;
        if (keeps_ahead(decision, first))
            return &rounds->ahead;
        const struct match_wish wish = wish_of(decision, first);
        arena_clear(rounds->arena);
        made++;
        rounds->has_ahead = match_reserve(core->matcher, rounds->arena, &wish, &rounds->ahead);
        rounds->ahead.job = first->id;
        if (rounds->has_ahead)
            return &rounds->ahead;
        first->stuck_version = core->listing_version + 1;
    }
    return NULL;
}

/* ---- Placing --------------------------------------------------------------------------------- */

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
}

void decision_offer_lease(struct decision *decision, const struct job *job,
                          const struct match_part *part, const struct match_wish *wish)
{
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

static void note_result(struct core *core, struct job *job, enum match_result result)
{
    if (result != MATCH_PLACED)
        core_mark_short(core, job, result == MATCH_OVER_BUDGET || result == MATCH_OVER_HOURLY);
}

static void try_job(struct decision *decision, struct job *job)
{
    struct core *core = decision->core;
    if (account_is_frozen(core_account(core, job->request.account))) {
        core_mark_short(core, job, true);
        return;
    }
    decide_close_slots(decision); /* prices are of the slot that runs */
    const struct match_wish wish = wish_of(decision, job);
    struct match_placement placement;
    const enum match_result result =
        match_place(core->matcher, &wish, find_ahead(decision, job), &placement);
    note_result(core, job, result);
    if (result != MATCH_PLACED)
        return;
    adjust_hold(decision, job, placement.quote_micro);
    for (size_t i = 0; i < placement.part_count; i++)
        decision_offer_lease(decision, job, &placement.parts[i], &wish);
    decision_emit_job_state(decision, job, JOB_STATE_STARTING, JOB_STATE_STARTING, "");
}

/* Whether one was placed. */
static bool try_all(struct decision *decision)
{
    struct match_rounds *rounds = decision->core->rounds;
    bool has_placed = false;
    if (rounds->try_count > 1)
        qsort(rounds->tries, rounds->try_count, sizeof(*rounds->tries), compare_tries);
    for (size_t i = 0; i < rounds->try_count; i++) {
        struct job *job = rounds->tries[i].job;
        if (job->tried_in == rounds->number || !job->waiting_numbers[0])
            continue;
        job->tried_in = rounds->number;
        try_job(decision, job);
        has_placed |= job->waiting_numbers[0] == 0;
    }
    return has_placed;
}

void decide_match(struct decision *decision)
{
    struct match_rounds *rounds = decision->core->rounds;
    gather_tries(decision);
    size_t gathered = rounds->machine_count;
    rounds->is_freed = false;
    bool has_placed = try_all(decision);
    /* Those that came first could not pay, or want others besides: the next may do. */
    for (int more = 1; more < ROUNDS_MAX && rounds->is_cut && !has_placed; more++) {
        rounds->try_count = 0;
        add_tries_of_machines(decision, 0);
        has_placed = try_all(decision);
    }
    /* The job with the reservation has started: who had to leave its room free may have the rest.
     */
    for (int more = 1; more < ROUNDS_MAX && rounds->is_freed; more++) {
        const size_t first = gathered;
        gathered = rounds->machine_count;
        rounds->is_freed = false;
        rounds->try_count = 0;
        add_tries_of_machines(decision, first);
        (void)try_all(decision);
    }
    rounds->machine_count = 0;
    rounds->is_deciding = false;
}
