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
 *
 * Who rushes pays double only if it goes ahead of somebody in the line. When it cannot pay that, it
 * takes its usual turn at the usual price until prices change.
 */
#include "core/match_rounds.h"

enum {
    RESERVE_TRIES = 4,  /* before one job is tried; those found stuck are not tried again */
    PASSED_LOOKS = 256, /* for one whom a job that rushes goes ahead of */
};

static bool keeps_ahead(const struct decision *decision, const struct job *first)
{
    const struct match_rounds *rounds = decision->core->rounds;
    return rounds->has_ahead && rounds->ahead.job == first->id &&
           rounds->ahead.start_ms >= decision->now_ms;
}

struct match_wish decide_wish_in_line(const struct decision *decision, const struct job *job)
{
    struct match_wish wish = core_wish(decision->core, &job->request,
                                       core_held_micro(decision->core, job->id), decision->now_ms);
    core_keep_booked(job, &wish.lock);
    if (!job_rushes(job))
        wish.lock.rush_ms = 0;
    return wish;
}

/* Reserves anew. Machines of which less is reserved than before, or later, may serve others. */
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
    const struct match_wish wish = decide_wish_in_line(decision, first);
    rounds->ahead = (struct match_reservation){0};
    rounds->has_ahead = match_reserve(core->matcher, arena, &wish, &rounds->ahead);
    if (rounds->has_ahead)
        rounds->ahead.job = first->id;
    for (size_t i = 0; i < before.part_count; i++)
        if (match_leaves_more(&rounds->ahead, &before, i))
            match_rounds_remember(rounds, before.parts[i].machine);
    return rounds->has_ahead;
}

const struct match_reservation *decide_ahead(struct decision *decision, const struct job *job)
{
    struct core *core = decision->core;
    for (int made = 0; made < RESERVE_TRIES; made++) {
        struct job *first = line_first(&core->line);
        if (!first || (job && !line_is_before(first, job)))
            return NULL;
        if (keeps_ahead(decision, first) || reserve(decision, first))
            return &core->rounds->ahead;
        core_mark_stuck(core, first, true);
    }
    return NULL;
}

bool decide_renew_ahead(struct decision *decision)
{
    struct core *core = decision->core;
    struct match_rounds *rounds = core->rounds;
    for (int made = 0; made < RESERVE_TRIES && rounds->ahead.part_count > 0; made++) {
        struct job *first = line_first(&core->line);
        if (!first)
            match_rounds_give_up(rounds);
        else if (rounds->has_ahead && rounds->ahead.job == first->id)
            break;
        else if (!reserve(decision, first))
            core_mark_stuck(core, first, true);
    }
    return rounds->touched_count > 0;
}

/* At these prices, on machines of the reference speed. */
static bool could_pay(const struct match_wish *wish)
{
    const struct match_quote quote = match_quote_wish(wish);
    const int64_t max_hourly_micro = wish->request->max_hourly_micro;
    return quote.total_micro <= wish->budget_micro &&
           (max_hourly_micro == 0 || quote.hourly_micro <= max_hourly_micro);
}

/* Whether one that stands in the line waits for room that will be there some day. If not it leaves
 * the line: it is short of money, or stuck. */
static bool waits_for_room(struct decision *decision, struct job *job)
{
    struct core *core = decision->core;
    struct match_reservation reservation;
    struct arena *arena = core->rounds->arenas[1];
    struct match_wish wish = decide_wish_in_line(decision, job);
    if (keeps_ahead(decision, job))
        return true;
    wish.lock.rush_ms = 0; /* which it need not pay */
    if (!could_pay(&wish)) {
        decision_note_wait(decision, job, /* is_short= */ true, job->is_unhurried);
        return false;
    }
    arena_clear(arena);
    if (match_reserve(core->matcher, arena, &wish, &reservation))
        return true;
    core_mark_stuck(core, job, true);
    return false;
}

bool decide_has_line(struct decision *decision)
{
    const struct line *line = &decision->core->line;
    for (int made = 0; made < RESERVE_TRIES && line->count > 0; made++)
        if (waits_for_room(decision, line_first(line)))
            return true;
    return line->count > 0;
}

/* ---- Rush ------------------------------------------------------------------------------------ */

/* The other does not rush, and its turn would be before the job's if that did not either. */
static bool would_pass(const struct job *job, const struct job *other)
{
    if (other == job || job_rushes(other))
        return false;
    return other->turn.tag != job->turn.tag ? other->turn.tag < job->turn.tag : other->id < job->id;
}

static struct job *find_passed(const struct core *core, const struct job *job)
{
    for (size_t i = 0; i < core->line.count && i < PASSED_LOOKS; i++)
        if (would_pass(job, core->line.jobs[i]))
            return core->line.jobs[i];
    return NULL;
}

/* Somebody whom the job goes ahead of waits for room that will be there some day. */
static bool passes_somebody(struct decision *decision, const struct job *job)
{
    struct job *passed = NULL;
    for (int made = 0; made < RESERVE_TRIES && (passed = find_passed(decision->core, job)); made++)
        if (waits_for_room(decision, passed))
            return true;
    return passed != NULL;
}

struct match_wish decide_wish(struct decision *decision, const struct job *job)
{
    struct match_wish wish = decide_wish_in_line(decision, job);
    if (wish.lock.rush_ms > 0 && !passes_somebody(decision, job))
        wish.lock.rush_ms = 0;
    return wish;
}

void decide_hurry_again(struct decision *decision)
{
    struct core *core = decision->core;
    for (size_t i = 0; i < core->pending.count; i++) {
        struct job *job = core->pending.items[i].value;
        if (!job->is_unhurried)
            continue;
        decision_note_wait(decision, job, job->is_short, /* is_unhurried= */ false);
        match_rounds_try(core->rounds, job);
    }
}
