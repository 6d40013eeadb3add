/*
 * When jobs start: at once, by a deadline, or in the cheapest slot before one.
 *
 * The cheapest slot is the one in which the wish costs least at the forecast prices, the earlier of
 * equals, among those whose bookings leave room under nine tenths of the usual supply: the mean of
 * the same slot of the last seven days. A slot that nothing is known of has room. A job that has
 * chosen waits outside the queue until its slot begins. One that has not started by its deadline
 * ends.
 *
 * What it has chosen it is held to, and so is the market: what is shown and held is what it costs
 * at the forecast prices of that moment whenever within its slot it starts, and those are the most
 * it pays. If it finds no room there it goes on waiting for as long as a later start costs no more.
 */
#include "core/core_internal.h"

/* ---- The cheapest slot ----------------------------------------------------------------------- */

static int64_t wished_core_milli(const struct job_request *request)
{
    return request->num_nodes * request->worker.cores_milli +
           (int64_t)job_request_server_ranks(request) * request->server.cores_milli;
}

/* Cores of the reference speed lent on average in that slot of the day; 0: not known. */
static int64_t usual_core_milli(const struct core *core, int64_t slot)
{
    int64_t sum = 0, count = 0;
    for (size_t i = 0; i < core_price_close_kept(core); i++) {
        const struct core_price_close *close = core_price_close_at(core, i);
        if (slot_of_day(close->slot) != slot_of_day(slot))
            continue;
        sum += close->inputs[PRICE_CORE].offered_milli_s / (SLOT_MS / 1000);
        count++;
    }
    return count ? sum / count : 0;
}

/* What jobs asked for that have chosen that slot and not started. */
static int64_t booked_core_milli(const struct core *core, int64_t slot)
{
    int64_t sum = 0;
    for (size_t i = 0; i < core->job_timers.count; i++) {
        const struct timer *timer = &core->job_timers.items[i];
        const struct job *job = core_job(core, timer->id);
        if (job->state == JOB_STATE_PENDING && timer->at_ms == job->start_ms &&
            slot_index(job->start_ms, core->settings.slot_offset_ms) == slot)
            sum += wished_core_milli(&job->request);
    }
    return sum;
}

static bool has_room(const struct core *core, int64_t slot, const struct job_request *request)
{
    const int64_t usual_milli = usual_core_milli(core, slot);
    return usual_milli == 0 ||
           booked_core_milli(core, slot) + wished_core_milli(request) <= usual_milli / 10 * 9;
}

static int64_t cheapest_start_ms(const struct decision *decision, const struct job_request *request)
{
    const struct core *core = decision->core;
    const int64_t offset_ms = core->settings.slot_offset_ms;
    const int64_t first = slot_index(decision->now_ms, offset_ms);
    int64_t best_ms = 0, best_micro = INT64_MAX;
    for (int64_t slot = first; slot < first + PRICE_LOCK_SLOTS; slot++) {
        const int64_t start_ms = slot == first ? decision->now_ms : slot_start_ms(slot, offset_ms);
        if (start_ms > request->deadline_ms)
            break;
        if (!has_room(core, slot, request))
            continue;
        const struct match_wish wish = core_wish(core, request, 0, start_ms);
        const int64_t cost_micro = match_quote_wish(&wish).total_micro;
        if (cost_micro < best_micro) {
            best_micro = cost_micro;
            best_ms = slot == first ? 0 : start_ms;
        }
    }
    return best_ms;
}

struct booking decide_booking(const struct decision *decision, const struct job_request *request,
                              bool is_rush)
{
    const struct core *core = decision->core;
    const int64_t offset_ms = core->settings.slot_offset_ms;
    struct booking booking = {.start_ms = cheapest_start_ms(decision, request)};
    const int64_t from_ms = booking.start_ms ? booking.start_ms : decision->now_ms;
    const int64_t slot_end_ms = slot_start_ms(slot_index(from_ms, offset_ms) + 1, offset_ms);
    struct match_wish wish = core_wish(core, request, 0, from_ms);
    wish.latest_start_ms =
        slot_end_ms - 1 < request->deadline_ms ? slot_end_ms - 1 : request->deadline_ms;
    wish.latest_start_ms += core->settings.start_ms;
    wish.lock = core_booked_lock(core, from_ms);
    wish.lock.rush_ms = is_rush ? CORE_RUSH_MS : 0;
    booking.quote = match_quote_wish(&wish);
    return booking;
}

struct price_lock core_booked_lock(const struct core *core, int64_t start_ms)
{
    return core_price_lock(core, start_ms, start_ms + PRICE_LOCK_SLOTS * SLOT_MS);
}

void core_keep_booked(const struct job *job, struct price_lock *lock)
{
    for (int64_t i = 0; job->booked && i < lock->slot_count; i++) {
        const int64_t at = lock->first_slot + i - job->booked->first_slot;
        if (at < 0 || at >= job->booked->slot_count)
            continue;
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            const int64_t booked = price_vector_get(&job->booked->slots[at], r);
            if (price_vector_get(&lock->slots[i], r) > booked)
                price_vector_set(&lock->slots[i], r, booked);
        }
    }
}

bool core_passes_booking(const struct job *job, const struct match_wish *wish)
{
    return job->booked && match_quote_wish(wish).total_micro > job->quote_micro;
}

/* ---- Times of pending jobs ------------------------------------------------------------------- */

/* Whether the timer still means something: its job waits for that start, or for that deadline. */
static bool is_due_for(const struct job *job, const struct timer *timer)
{
    if (job->state != JOB_STATE_PENDING)
        return false;
    return timer->at_ms == job->start_ms || timer->at_ms == job->request.deadline_ms + 1;
}

void core_skip_job_timers(struct core *core)
{
    struct timer timer;
    while (timers_first(&core->job_timers, &timer) && !is_due_for(core_job(core, timer.id), &timer))
        timers_pop(&core->job_timers);
}

void core_set_job_timers(struct core *core, const struct job *job)
{
    if (job->state != JOB_STATE_PENDING)
        return;
    if (job->start_ms > 0)
        timers_add(&core->job_timers, job->start_ms, job->id);
    if (job->request.start != JOB_START_NOW)
        timers_add(&core->job_timers, job->request.deadline_ms + 1, job->id);
}

void decide_job_starts(struct decision *decision)
{
    struct core *core = decision->core;
    struct timer timer;
    for (;;) {
        core_skip_job_timers(core);
        if (!timers_first(&core->job_timers, &timer) || timer.at_ms > decision->now_ms)
            return;
        struct job *job = map_get(&core->jobs, timer.id);
        if (timer.at_ms == job->start_ms) {
            struct event event = {.kind = EVENT_JOB_DUE, .job_due = {.job = job->id}};
            decision_emit(decision, &event);
            match_rounds_try(core->rounds, job);
        } else {
            decision_finish_job(decision, job, JOB_STATE_CANCELLED,
                                "it could not start by its deadline");
        }
    }
}
