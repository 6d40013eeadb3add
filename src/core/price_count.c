/*
 * What counts as wanted and as lent.
 *
 * Wanted: what jobs run or wait for in the queue, as long as their maximum per hour covers the
 * posted price of what they asked for. A job that waits counts at the reference speed, a lease as
 * it is billed. A job that takes the cheapest slot counts evenly over all it could take. A job
 * cancelled in the queue has not waited; one that missed its deadline has, up to there. Leases
 * between an owner and itself count nowhere.
 *
 * Lent: offers open on machines that are online, when the posted price reaches their minimum, less
 * what the owner rents itself; of offers that overlap no more than the machine has. Not while the
 * owner is frozen, nor around leases that the machine was given and did not take.
 *
 * Spare time is neither: who asks for it wants nothing at the posted price, and what is used so is
 * still lent to those who do.
 */
#include "core/core_internal.h"

#include <stdlib.h>

static int64_t later(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

int64_t core_slot_start_ms(const struct core *core)
{
    return slot_start_ms(core->prices.slot, core->settings.slot_offset_ms);
}

int64_t core_slot_end_ms(const struct core *core)
{
    return slot_start_ms(core->prices.slot + 1, core->settings.slot_offset_ms);
}

/* ---- Lent ------------------------------------------------------------------------------------ */

static struct price_usage usage_less(struct price_usage left, struct price_usage right)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        left.milli_s[r] =
            left.milli_s[r] > right.milli_s[r] ? left.milli_s[r] - right.milli_s[r] : 0;
    return left;
}

static struct price_usage usage_least(struct price_usage left, struct price_usage right)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        if (left.milli_s[r] > right.milli_s[r])
            left.milli_s[r] = right.milli_s[r];
    return left;
}

static int64_t open_ms(const struct offer *offer, int64_t from_ms, int64_t until_ms)
{
    const int64_t open_from = later(from_ms, offer->terms.paused_until_ms);
    return open_from < until_ms ? window_open_ms(offer_window(offer), open_from, until_ms) : 0;
}

static struct price_usage rented_itself(const struct machine *machine, int64_t ms)
{
    struct price_usage usage = {0};
    for (size_t i = 0; i < machine->lease_count; i++) {
        const struct lease *lease = machine->leases[i];
        if (lease->is_self_trade)
            usage = price_usage_add(usage, price_usage_of(lease->units, ms));
    }
    return usage;
}

static void count_machine(const struct core *core, const struct machine *machine, int64_t until_ms,
                          struct price_meter *meter)
{
    const int64_t from_ms = later(core_slot_start_ms(core), machine->counted_ms);
    if (!machine_is_lent(machine) || from_ms >= until_ms)
        return;
    const int64_t speed = machine_speed_milli(machine);
    struct price_usage lent = {0};
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer *offer = machine->offers[i];
        const struct price_units units = price_units(offer->terms.resources, speed);
        if (offer_accepts_price(offer, units, core->price))
            lent = price_usage_add(lent, price_usage_of(units, open_ms(offer, from_ms, until_ms)));
    }
    const int64_t ms = until_ms - from_ms;
    lent = usage_least(lent, price_usage_of(price_units(machine->probe.resources, speed), ms));
    price_meter_offer(meter, usage_less(lent, rented_itself(machine, ms)));
}

void core_count_machine(struct core *core, struct machine *machine, int64_t now_ms)
{
    count_machine(core, machine, now_ms, &core->prices.meter);
    machine->counted_ms = later(machine->counted_ms, now_ms);
}

/* It was given a lease and did not take it, though nobody asked it not to. That it lends counts
 * up to the last lease that it had, and again from the next that it starts, or the next slot. */
static bool is_refused(const struct lease *lease, enum lease_outcome outcome)
{
    return lease->state == LEASE_STATE_OFFERED &&
           (outcome == LEASE_OUTCOME_LOST || outcome == LEASE_OUTCOME_RECLAIMED) &&
           (lease->stop_wanted_ms == 0 || lease->is_reclaimed);
}

void core_count_lease_running(struct core *core, const struct lease *lease, int64_t now_ms)
{
    struct machine *machine = map_get(&core->machines, lease->machine);
    if (lease->is_spare)
        return;
    if (machine->counted_ms > now_ms)
        machine->counted_ms = now_ms;
    core_count_machine(core, machine, now_ms);
}

/* ---- Wanted ---------------------------------------------------------------------------------- */

/* What the job asks for, at the least, of the reference speed. */
static struct price_units wish_units(const struct job_request *request)
{
    const struct price_units worker = price_units(request->worker, 1000);
    const struct price_units server = price_units(request->server, 1000);
    const int64_t workers = request->num_nodes;
    const int64_t servers = (int64_t)job_request_server_ranks(request);
    return (struct price_units){
        .core_milli = worker.core_milli * workers + server.core_milli * servers,
        .ram_milli = worker.ram_milli * workers + server.ram_milli * servers,
        .gpu_milli = worker.gpu_milli * workers + server.gpu_milli * servers,
        .disk_milli = worker.disk_milli * workers + server.disk_milli * servers};
}

static bool would_pay(const struct core *core, const struct job_request *request)
{
    return request->max_hourly_micro == 0 ||
           price_hourly_micro(wish_units(request), core->price) <= request->max_hourly_micro;
}

static bool is_spread(const struct job *job)
{
    return job->request.start == JOB_START_CHEAPEST;
}

static void count_wait(const struct core *core, const struct job *job, int64_t until_ms,
                       struct price_meter *meter)
{
    const int64_t from_ms = later(core_slot_start_ms(core), job->submitted_ms);
    if (job->request.is_spare || is_spread(job) || from_ms >= until_ms ||
        !would_pay(core, &job->request))
        return;
    price_meter_want(meter, core_borrower(core, job->request.account),
                     price_usage_of(wish_units(&job->request), until_ms - from_ms));
}

/* It did not start by its deadline: that is not cancelling, whoever says first that it is over. */
static bool has_missed_deadline(const struct job *job, int64_t now_ms)
{
    return job->request.start != JOB_START_NOW && job->lease_count == 0 &&
           now_ms > job->request.deadline_ms;
}

void core_count_wait(struct core *core, const struct job *job, bool is_cancelled, int64_t now_ms)
{
    if (!is_cancelled)
        count_wait(core, job, now_ms, &core->prices.meter);
    else if (has_missed_deadline(job, now_ms))
        count_wait(core, job, job->request.deadline_ms, &core->prices.meter);
}

static void count_lease(const struct core *core, const struct lease *lease, int64_t until_ms,
                        struct price_meter *meter)
{
    const struct job *job = core_job(core, lease->job);
    const int64_t from_ms = later(core_slot_start_ms(core), lease->offered_ms);
    if (is_spread(job) || from_ms >= until_ms || !would_pay(core, &job->request) ||
        lease->is_self_trade || lease->is_spare)
        return;
    price_meter_want(meter, core_borrower(core, job->request.account),
                     price_usage_of(lease->units, until_ms - from_ms));
}

void core_count_lease_start(struct core *core, const struct lease *lease, int64_t now_ms)
{
    if (lease->is_self_trade && !lease->is_spare)
        core_count_machine(core, map_get(&core->machines, lease->machine), now_ms);
}

void core_count_lease_end(struct core *core, const struct lease *lease, enum lease_outcome outcome,
                          int64_t now_ms)
{
    struct machine *machine = map_get(&core->machines, lease->machine);
    if (lease->is_spare)
        return;
    if (lease->is_self_trade || lease->state == LEASE_STATE_RUNNING)
        core_count_machine(core, machine, now_ms);
    count_lease(core, lease, now_ms, &core->prices.meter);
    if (is_refused(lease, outcome))
        machine->counted_ms = later(core_slot_end_ms(core), now_ms);
}

/* How many slots from the running one on the job could use, starting as late as it may. */
static int64_t usable_slots(const struct core *core, const struct job_request *request,
                            int64_t run_ms)
{
    int64_t starts =
        slot_index(request->deadline_ms, core->settings.slot_offset_ms) - core->prices.slot + 1;
    if (starts > PRICE_LOCK_SLOTS) /* decide_start_ms looks no further */
        starts = PRICE_LOCK_SLOTS;
    const int64_t run_through = run_ms > 0 ? (run_ms - 1) / SLOT_MS : 0;
    return (starts > 1 ? starts : 1) + run_through;
}

void core_count_submitted(struct core *core, const struct job *job)
{
    if (!is_spread(job))
        return;
    const struct job_request *request = &job->request;
    const int64_t run_ms =
        request->expected_run_ms ? request->expected_run_ms : request->max_run_ms;
    price_meter_spread(&core->prices.meter, job->id, core_borrower(core, request->account),
                       price_usage_of(wish_units(request), run_ms),
                       usable_slots(core, request, run_ms), would_pay(core, request));
}

bool core_spread_would_pay(const void *context, uint64_t job)
{
    const struct core *core = context;
    return would_pay(core, &core_job(core, job)->request);
}

void core_count_ended(struct core *core, const struct job *job)
{
    if (!is_spread(job))
        return;
    if (has_missed_deadline(job, job->ended_ms))
        return; /* it counts as it was spread */
    if (job->lease_count == 0) {
        price_meter_spread_cancelled(&core->prices.meter, job->id);
        return;
    }
    struct price_usage used = {0};
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (!lease->is_self_trade)
            used = price_usage_add(
                used, price_usage_of(lease->units, lease->ended_ms - lease->offered_ms));
    }
    price_meter_spread_ended(&core->prices.meter, job->id, used);
}

/* ---- The end of a slot ----------------------------------------------------------------------- */

enum { FLOORS = 1 + CORE_PRICE_FORECASTS };

/* The lowest minimum among offers that have the resource; -1: no offer has it. */
struct floors {
    struct price_vector always; /* of offers that are always open */
    struct price_vector slots[FLOORS];
};

static void lower_one(int64_t *lowest, int64_t has, int64_t minimum)
{
    if (has > 0 && (*lowest < 0 || minimum < *lowest))
        *lowest = minimum;
}

static void lower(struct price_vector *floor, const struct offer *offer)
{
    const struct resources *has = &offer->terms.resources;
    const struct price_vector *minimum = &offer->terms.minimum;
    lower_one(&floor->core_micro, has->cores_milli, minimum->core_micro);
    lower_one(&floor->ram_micro, has->ram_bytes, minimum->ram_micro);
    lower_one(&floor->gpu_micro, has->gpus_milli, minimum->gpu_micro);
    lower_one(&floor->disk_micro, has->disk_bytes, minimum->disk_micro);
}

static void lower_by_offer(struct floors *floors, const struct core *core,
                           const struct offer *offer, int64_t first_slot)
{
    if (offer_window(offer).span_count == 0 && offer->terms.paused_until_ms == 0) {
        lower(&floors->always, offer);
        return;
    }
    for (int i = 0; i < FLOORS; i++) {
        const int64_t start_ms = slot_start_ms(first_slot + i, core->settings.slot_offset_ms);
        if (open_ms(offer, start_ms, start_ms + SLOT_MS) > 0)
            lower(&floors->slots[i], offer);
    }
}

static void add_up_floors(const struct floors *floors, struct price_vector out_floors[FLOORS])
{
    for (int i = 0; i < FLOORS; i++)
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            const int64_t always = price_vector_get(&floors->always, r);
            const int64_t slot = price_vector_get(&floors->slots[i], r);
            const int64_t lowest = slot < 0 || (always >= 0 && always < slot) ? always : slot;
            price_vector_set(&out_floors[i], r, lowest > 0 ? lowest : 0);
        }
}

/* What machines lend up to the end, and the floors they set from `first_slot` on. */
static void walk_machines(const struct core *core, int64_t first_slot, struct price_meter *meter,
                          struct price_vector out_floors[FLOORS])
{
    const struct price_vector none = {-1, -1, -1, -1};
    const int64_t until_ms = core_slot_end_ms(core);
    struct floors floors = {.always = none};
    for (int i = 0; i < FLOORS; i++)
        floors.slots[i] = none;
    for (size_t m = 0; m < core->machine_list.count; m++) {
        const struct machine *machine = core->machine_list.items[m].value;
        count_machine(core, machine, until_ms, meter);
        for (size_t i = 0; machine->state == MACHINE_STATE_ONLINE && i < machine->offer_count; i++)
            lower_by_offer(&floors, core, machine->offers[i], first_slot);
    }
    add_up_floors(&floors, out_floors);
}

static void walk_jobs(const struct core *core, struct price_meter *meter)
{
    const int64_t until_ms = core_slot_end_ms(core);
    for (size_t i = 0; i < core->pending.count; i++)
        count_wait(core, core->pending.items[i].value, until_ms, meter);
    for (size_t i = 0; i < core->active.count; i++) {
        const struct job *job = core->active.items[i].value;
        for (size_t l = 0; l < job->lease_count; l++)
            if (lease_is_open(job->leases[l]))
                count_lease(core, job->leases[l], until_ms, meter);
    }
}

bool core_prices_are_idle(const struct core *core)
{
    if (core->pending.count > 0 || core->active.count > 0 || core->prices.meter.spreads.count > 0)
        return false;
    for (size_t i = 0; i < core->machine_list.count; i++) {
        const struct machine *machine = core->machine_list.items[i].value;
        if (machine->state == MACHINE_STATE_ONLINE && machine->offer_count > 0)
            return false;
    }
    return true;
}

void core_slot_end_prepare(const struct core *core, int64_t now_ms, struct core_slot_end *out)
{
    const struct core_prices *prices = &core->prices;
    *out = (struct core_slot_end){
        .board = prices->board,
        .next_slot = core_prices_are_idle(core) ? slot_index(now_ms, core->settings.slot_offset_ms)
                                                : prices->slot + 1,
    };
    struct price_vector floors[FLOORS];
    price_meter_copy(&prices->meter, &out->meter);
    walk_machines(core, out->next_slot, &out->meter, floors);
    walk_jobs(core, &out->meter);
    price_meter_inputs(&out->meter, out->inputs);
    if (core->settings.economy == ECONOMY_KARMA) {
        out->price = core->price;
        memcpy(out->forecasts, prices->forecasts, sizeof(out->forecasts));
        return;
    }
    price_board_close(&out->board, slot_of_day(prices->slot), out->inputs);
    out->price = price_board_price(&out->board, slot_of_day(out->next_slot), &floors[0]);
    for (int i = 0; i < CORE_PRICE_FORECASTS; i++)
        out->forecasts[i] =
            price_board_price(&out->board, slot_of_day(out->next_slot + 1 + i), &floors[1 + i]);
}

void core_slot_end_done(struct core_slot_end *end)
{
    price_meter_done(&end->meter);
}
