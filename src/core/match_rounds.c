#include "core/match_rounds.h"

#include <stdlib.h>

enum { UNSTICK_BATCH = 256 };

struct match_rounds *match_rounds_new(void)
{
    struct match_rounds *rounds = calloc(1, sizeof(*rounds));
    ASSERT(rounds);
    rounds->arenas[0] = arena_new(0);
    rounds->arenas[1] = arena_new(0);
    rounds->sweep = MATCH_SWEEP_ALL;
    rounds->is_spare_due = true;
    rounds->clock = 1; /* after any job was tried */
    return rounds;
}

void match_rounds_free(struct match_rounds *rounds)
{
    if (!rounds)
        return;
    free(rounds->touched);
    free(rounds->tries);
    book_search_done(&rounds->search);
    id_list_done(&rounds->preempted);
    arena_free(rounds->arenas[0]);
    arena_free(rounds->arenas[1]);
    free(rounds);
}

void match_rounds_begin(struct match_rounds *rounds)
{
    rounds->is_deciding = true;
    rounds->try_count = 0;
}

void match_rounds_end(struct match_rounds *rounds)
{
    ASSERT(!rounds->expected && rounds->preempted.count == 0);
    rounds->is_deciding = false;
}

/* ---- Whom to try ----------------------------------------------------------------------------- */

void match_rounds_add_try(struct match_rounds *rounds, struct job *job, uint64_t at)
{
    if (rounds->try_count == rounds->try_capacity) {
        rounds->try_capacity = rounds->try_capacity ? rounds->try_capacity * 2 : 64;
        rounds->tries = realloc(rounds->tries, rounds->try_capacity * sizeof(*rounds->tries));
        ASSERT(rounds->tries);
    }
    rounds->tries[rounds->try_count++] = (struct match_try){job, at};
}

void match_rounds_try(struct match_rounds *rounds, struct job *job)
{
    match_rounds_add_try(rounds, job, UINT64_MAX);
}

void match_rounds_expect(struct match_rounds *rounds, struct job *job)
{
    ASSERT(!rounds->expected);
    if (rounds->is_deciding && job->start_ms == 0)
        rounds->expected = job;
}

bool match_rounds_expects(const struct match_rounds *rounds, const struct job *job)
{
    return rounds->expected == job;
}

void match_rounds_sweep_all(struct match_rounds *rounds)
{
    rounds->sweep = MATCH_SWEEP_ALL;
    rounds->sweep_from = 0;
    rounds->is_spare_due = true;
}

void match_rounds_sweep_short(struct match_rounds *rounds)
{
    /* Whatever a job lacked may be there at the new price. */
    rounds->clock += JOB_NODES_MAX;
    if (rounds->sweep == MATCH_SWEEP_NONE)
        rounds->sweep = MATCH_SWEEP_SHORT;
    rounds->sweep_from = 0;
}

bool match_rounds_is_better(const struct match_rounds *rounds)
{
    return rounds->touched_count > 0;
}

bool match_rounds_are_open(const struct match_rounds *rounds)
{
    return rounds->touched_count > 0 ||
           (rounds->sweep != MATCH_SWEEP_NONE && rounds->sweep_from > 0);
}

void match_rounds_remember(struct match_rounds *rounds, struct machine *machine)
{
    const bool is_there = machine->touched_at != 0;
    rounds->is_spare_due = true;
    machine->touched_at = ++rounds->clock;
    if (is_there)
        return;
    if (rounds->touched_count == rounds->touched_capacity) {
        rounds->touched_capacity = rounds->touched_capacity ? rounds->touched_capacity * 2 : 16;
        rounds->touched =
            realloc(rounds->touched, rounds->touched_capacity * sizeof(*rounds->touched));
        ASSERT(rounds->touched);
    }
    rounds->touched[rounds->touched_count++] = (struct match_touched){.machine = machine};
}

void match_rounds_spare(struct match_rounds *rounds)
{
    rounds->is_spare_due = true;
}

void match_rounds_preempt(struct match_rounds *rounds, struct job *job)
{
    id_list_add(&rounds->preempted, job->id, job);
}

void match_rounds_touch(struct match_rounds *rounds, struct machine *machine)
{
    if (rounds->has_ahead && match_is_reserved(&rounds->ahead, machine))
        rounds->has_ahead = false;
    if (rounds->is_deciding)
        match_rounds_remember(rounds, machine);
}

/* ---- Reservations ---------------------------------------------------------------------------- */

void match_rounds_give_up(struct match_rounds *rounds)
{
    const struct match_reservation ahead = rounds->ahead;
    rounds->has_ahead = false;
    rounds->ahead = (struct match_reservation){0};
    for (size_t i = 0; i < ahead.part_count; i++)
        match_rounds_touch(rounds, ahead.parts[i].machine);
}

void match_rounds_forget_job(struct match_rounds *rounds, const struct job *job)
{
    if (rounds->ahead.job == job->id)
        match_rounds_give_up(rounds);
}

void match_rounds_ends_sooner(struct match_rounds *rounds, struct machine *machine)
{
    if (rounds->is_deciding && match_is_reserved(&rounds->ahead, machine))
        match_rounds_remember(rounds, machine);
}

void match_rounds_forget_offer(struct match_rounds *rounds, const struct offer *offer)
{
    if (match_is_reserved(&rounds->ahead, offer->machine))
        match_rounds_give_up(rounds);
}

/* ---- Jobs that are stuck --------------------------------------------------------------------- */

static void unstick_offer(struct core *core, const struct offer *offer, int64_t now_ms)
{
    struct book_search *search = &core->rounds->search;
    const struct book_wish wish = waiting_stuck_wish(&core->listing, offer, now_ms);
    struct job *jobs[UNSTICK_BATCH];
    for (size_t count = UNSTICK_BATCH; count == UNSTICK_BATCH;) {
        count = 0;
        book_search_start(search, core->waiting.book, &wish,
                          (struct book_sort){.by = BOOK_BY_SCORE});
        for (struct job *job; count < UNSTICK_BATCH && (job = book_search_next(search));)
            jobs[count++] = job;
        for (size_t i = 0; i < count; i++)
            core_mark_stuck(core, jobs[i], false);
    }
}

void core_unstick_by(struct core *core, const struct machine *machine, int64_t now_ms)
{
    for (size_t i = 0; i < machine->offer_count && core->waiting.stuck_count > 0; i++)
        if (machine->offers[i]->listing_number)
            unstick_offer(core, machine->offers[i], now_ms);
}

void core_unstick_all(struct core *core)
{
    for (size_t i = 0; i < core->pending.count && core->waiting.stuck_count > 0; i++) {
        struct job *job = core->pending.items[i].value;
        if (job->is_stuck)
            core_mark_stuck(core, job, false);
    }
}
