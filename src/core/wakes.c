/*
 * When the core is to be woken next: heaps of what is due, of each kind of thing.
 *
 * A thing is put in whenever its time may have changed. Entries that mean nothing any more (it has
 * gone, or its time is another now) are dropped when they come to the front. Spans that the
 * settings say, which are the same for all, are added when it is asked: the order stays.
 */
#include "core/core_internal.h"

#include <stdlib.h>

struct wakes {
    struct timers codes;    /* when they expire */
    struct timers machines; /* since when they are unreachable */
    struct timers offers;   /* when they open or close */
    struct timers runs;     /* of jobs: when they have run as long as they may */
    struct timers starts;   /* of leases: by when they must have started */
    struct timers stops;    /* of leases: when they were asked to stop */
    struct timers rests;    /* of jobs that ended well: until when what ranks left is waited for */
};

struct wakes *wakes_new(void)
{
    struct wakes *wakes = calloc(1, sizeof(*wakes));
    ASSERT(wakes);
    return wakes;
}

void wakes_free(struct wakes *wakes)
{
    if (!wakes)
        return;
    struct timers *all[] = {&wakes->codes,  &wakes->machines, &wakes->offers, &wakes->runs,
                            &wakes->starts, &wakes->stops,    &wakes->rests};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        timers_done(all[i]);
    free(wakes);
}

/* ---- What has a time ------------------------------------------------------------------------- */

static bool is_run_limited(const struct job *job)
{
    return job->started_ms > 0 &&
           (job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING);
}

/* Some rank of it is neither at its end nor asked to come to it. */
static bool awaits_rest(const struct job *job)
{
    if (job->state != JOB_STATE_STOPPING || job->outcome != JOB_STATE_SUCCEEDED ||
        job_has_server(job))
        return false;
    for (size_t i = 0; i < job->lease_count; i++)
        if (lease_is_open(job->leases[i]) && job->leases[i]->stop_wanted_ms == 0)
            return true;
    return false;
}

static bool is_to_start(const struct lease *lease)
{
    return lease->state == LEASE_STATE_OFFERED && lease->stop_wanted_ms == 0;
}

static bool is_to_stop(const struct lease *lease)
{
    return lease_is_open(lease) && lease->stop_wanted_ms > 0;
}

void core_wake_code(struct core *core, const struct code *code)
{
    timers_add(&core->wakes->codes, code->expires_ms, code->id);
}

void core_wake_machine(struct core *core, const struct machine *machine)
{
    if (machine->state == MACHINE_STATE_UNREACHABLE)
        timers_add(&core->wakes->machines, machine->state_changed_ms, machine->id);
}

void core_wake_offer(struct core *core, const struct offer *offer)
{
    if (offer->turns_ms > 0)
        timers_add(&core->wakes->offers, offer->turns_ms, offer->id);
}

void core_wake_job(struct core *core, const struct job *job)
{
    if (is_run_limited(job))
        timers_add(&core->wakes->runs, job->started_ms + job->request.max_run_ms, job->id);
    else if (awaits_rest(job))
        timers_add(&core->wakes->rests, job->stopping_ms + CORE_DELIVER_MS, job->id);
}

void core_wake_lease(struct core *core, const struct lease *lease)
{
    if (is_to_start(lease))
        timers_add(&core->wakes->starts, lease->start_by_ms, lease->id);
    else if (is_to_stop(lease))
        timers_add(&core->wakes->stops, lease->stop_wanted_ms, lease->id);
}

/* ---- Whether it still has it ----------------------------------------------------------------- */

typedef bool is_valid_timer(const struct core *core, const struct timer *timer);

static bool is_of_code(const struct core *core, const struct timer *timer)
{
    return map_get(&core->codes, timer->id) != NULL;
}

static bool is_of_machine(const struct core *core, const struct timer *timer)
{
    const struct machine *machine = core_machine(core, timer->id);
    return machine->state == MACHINE_STATE_UNREACHABLE && machine->state_changed_ms == timer->at_ms;
}

static bool is_of_offer(const struct core *core, const struct timer *timer)
{
    const struct offer *offer = core_offer(core, timer->id);
    return offer && offer->turns_ms == timer->at_ms;
}

static bool is_of_run(const struct core *core, const struct timer *timer)
{
    const struct job *job = core_job(core, timer->id);
    return is_run_limited(job) && job->started_ms + job->request.max_run_ms == timer->at_ms;
}

static bool is_of_rest(const struct core *core, const struct timer *timer)
{
    return awaits_rest(core_job(core, timer->id));
}

static bool is_of_start(const struct core *core, const struct timer *timer)
{
    return is_to_start(core_lease(core, timer->id));
}

static bool is_of_stop(const struct core *core, const struct timer *timer)
{
    return is_to_stop(core_lease(core, timer->id));
}

/* The first of them that means something; false: none does. */
static bool find_first(const struct core *core, struct timers *timers, is_valid_timer *is_valid,
                       struct timer *out_timer)
{
    while (timers_first(timers, out_timer)) {
        if (is_valid(core, out_timer))
            return true;
        timers_pop(timers);
    }
    return false;
}

/* ---- What is due ----------------------------------------------------------------------------- */

const struct code *core_due_code(const struct core *core, int64_t now_ms)
{
    struct timer timer;
    return find_first(core, &core->wakes->codes, is_of_code, &timer) && timer.at_ms <= now_ms
               ? map_get(&core->codes, timer.id)
               : NULL;
}

struct machine *core_due_machine(const struct core *core, int64_t now_ms)
{
    struct timer timer;
    return find_first(core, &core->wakes->machines, is_of_machine, &timer) &&
                   timer.at_ms + core->settings.lost_ms <= now_ms
               ? map_get(&core->machines, timer.id)
               : NULL;
}

const struct offer *core_due_offer(const struct core *core, int64_t now_ms)
{
    struct timer timer;
    return find_first(core, &core->wakes->offers, is_of_offer, &timer) && timer.at_ms <= now_ms
               ? core_offer(core, timer.id)
               : NULL;
}

static void earlier(int64_t *wake_ms, int64_t candidate_ms)
{
    if (candidate_ms < *wake_ms)
        *wake_ms = candidate_ms;
}

int64_t core_next_wake_ms(const struct core *core)
{
    struct wakes *wakes = core->wakes;
    const int64_t lost_ms = core->settings.lost_ms, grace_ms = core->settings.grace_ms;
    const struct {
        struct timers *timers;
        is_valid_timer *is_valid;
        int64_t later_ms;
    } kinds[] = {
        {&wakes->codes, is_of_code, 0},   {&wakes->machines, is_of_machine, lost_ms},
        {&wakes->offers, is_of_offer, 0}, {&wakes->runs, is_of_run, 0},
        {&wakes->starts, is_of_start, 0}, {&wakes->stops, is_of_stop, grace_ms},
        {&wakes->rests, is_of_rest, 0},
    };
    int64_t wake_ms = core_day_wake_ms(core);
    struct timer timer;
    if (core_tries_are_open(core))
        earlier(&wake_ms, core->time_ms);
    earlier(&wake_ms, decide_price_wake_ms(core));
    earlier(&wake_ms, core_karma_wake_ms(core));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (find_first(core, kinds[i].timers, kinds[i].is_valid, &timer))
            earlier(&wake_ms, timer.at_ms + kinds[i].later_ms);
    if (timers_first(&core->job_timers, &timer))
        earlier(&wake_ms, timer.at_ms);
    return wake_ms;
}

/* ---- The same by a walk ---------------------------------------------------------------------- */

static void walk_job(const struct core *core, const struct job *job, int64_t *wake_ms)
{
    if (is_run_limited(job))
        earlier(wake_ms, job->started_ms + job->request.max_run_ms);
    if (awaits_rest(job))
        earlier(wake_ms, job->stopping_ms + CORE_DELIVER_MS);
    for (size_t i = 0; i < job->lease_count; i++) {
        if (is_to_start(job->leases[i]))
            earlier(wake_ms, job->leases[i]->start_by_ms);
        if (is_to_stop(job->leases[i]))
            earlier(wake_ms, job->leases[i]->stop_wanted_ms + core->settings.grace_ms);
    }
}

bool core_wakes_are_sound(const struct core *core)
{
    int64_t wake_ms = INT64_MAX;
    for (size_t i = 0; i < core->codes.count; i++)
        earlier(&wake_ms, ((const struct code *)core->codes.entries[i].value)->expires_ms);
    for (size_t i = 0; i < core->machines.count; i++) {
        const struct machine *machine = core->machines.entries[i].value;
        if (machine->state == MACHINE_STATE_UNREACHABLE)
            earlier(&wake_ms, machine->state_changed_ms + core->settings.lost_ms);
    }
    for (size_t i = 0; i < core->offers.count; i++) {
        const struct offer *offer = core->offers.entries[i].value;
        if (offer->turns_ms > 0)
            earlier(&wake_ms, offer->turns_ms);
    }
    for (size_t i = 0; i < core->active.count; i++)
        walk_job(core, core->active.items[i].value, &wake_ms);
    /* No thing is due before the core is woken. */
    return core_next_wake_ms(core) <= wake_ms;
}
