/*
 * Who goes first: the reservation of the first job in the line.
 *
 * The first job of the queue that waits for leases to end has a reservation (match_reserve). It
 * follows from the state when it is made; it is kept while its machines stay as they are, for all
 * that starts meanwhile leaves its room free, and what it waits for can only end earlier than
 * thought. So its start does not move back while its machines stay.
 *
 * Jobs that wait for money have none, nor have those that no offers there are would ever serve:
 * they are stuck until a machine comes or changes that could (core_unstick_by).
 */
#include "core/match_rounds.h"

enum { RESERVE_TRIES = 4 }; /* before one job is tried; those found stuck are not tried again */

/* Whether any other job waits for room. */
static bool has_queue(const struct core *core, const struct job *job)
{
    const size_t own = (job->waiting_numbers[0] != 0) + (job->waiting_numbers[1] != 0);
    return book_count(core->waiting.book) > own;
}

struct match_wish decide_wish(const struct decision *decision, const struct job *job)
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

/* Reserves anew. Machines that were reserved before and are not now may serve others. */
static bool reserve(struct decision *decision, const struct job *first)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    const struct match_reservation before = rounds->ahead;
    struct arena *arena = rounds->arenas[1];
    rounds->arenas[1] = rounds->arenas[0];
    rounds->arenas[0] = arena;
    arena_clear(arena);
    rounds->reserved_count++;
    const struct match_wish wish = decide_wish(decision, first);
    rounds->ahead = (struct match_reservation){0};
    rounds->has_ahead = match_reserve(core->matcher, arena, &wish, &rounds->ahead);
    if (rounds->has_ahead)
        rounds->ahead.job = first->id;
    for (size_t i = 0; i < before.part_count; i++)
        if (!match_is_reserved(&rounds->ahead, before.parts[i].machine))
            match_rounds_touch(rounds, before.parts[i].machine);
    return rounds->has_ahead;
}

const struct match_reservation *decide_ahead(struct decision *decision, const struct job *job)
{
    struct core *core = decision->core;
    for (int made = 0; made < RESERVE_TRIES; made++) {
        struct job *first = line_first(&core->line);
        if (!first || !line_is_before(first, job))
            return NULL;
        if (keeps_ahead(decision, first) || reserve(decision, first))
            return &core->rounds->ahead;
        core_mark_stuck(core, first, true);
    }
    return NULL;
}
