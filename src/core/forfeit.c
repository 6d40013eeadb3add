/*
 * Bookings that are cancelled late: less than a slot's length before their start.
 *
 * One costs a tenth of what its first slot would, because a locked price is not a free option. It
 * goes to those who would have its leases if it started now, each by the part it would have of the
 * cost: one event for each, then its entries. If nobody would there is one event that names no
 * machine, so that a log which leaves the fee out is known from one of which there is none.
 *
 * What is due is computed when the first event is applied, decided or replayed, and every event is
 * compared with it. Of machines that are not proven the usual part is withheld, but they are not
 * proven by it: nothing was done for it.
 */
#include "core/core_internal.h"

bool core_is_cancelled_late(const struct job *job, int64_t now_ms)
{
    return job->state == JOB_STATE_PENDING && job->start_ms > now_ms &&
           job->start_ms - now_ms < SLOT_MS;
}

bool core_is_forfeited(const struct core *core, const struct job *job)
{
    const struct forfeit *forfeit = &core->forfeit;
    return forfeit->job == job->id && forfeit->next == forfeit->count;
}

/* ---- What is due ----------------------------------------------------------------------------- */

static int64_t fee_micro(const struct core *core, const struct job *job)
{
    struct job_request first = job->request;
    const int64_t offset_ms = core->settings.slot_offset_ms;
    const int64_t slot_end_ms = slot_start_ms(slot_index(job->start_ms, offset_ms) + 1, offset_ms);
    if (first.max_run_ms > slot_end_ms - job->start_ms)
        first.max_run_ms = slot_end_ms - job->start_ms;
    struct match_wish wish = core_wish(core, &first, 0, job->start_ms);
    core_keep_booked(job, &wish.lock);
    const int64_t tenth_micro = match_quote_wish(&wish).total_micro / 10;
    const int64_t held_micro = core_held_micro(core, job->id);
    return tenth_micro < held_micro ? tenth_micro : held_micro;
}

static void add_part(struct forfeit *forfeit, struct machine *machine, int64_t amount_micro)
{
    if (forfeit->count == forfeit->capacity) {
        forfeit->capacity = forfeit->capacity ? 2 * forfeit->capacity : 8;
        forfeit->parts = reallocarray(forfeit->parts, forfeit->capacity, sizeof(*forfeit->parts));
        ASSERT(forfeit->parts);
    }
    forfeit->parts[forfeit->count++] = (struct forfeit_part){machine, amount_micro};
}

static void compute(struct core *core, const struct job *job, int64_t now_ms)
{
    struct forfeit *forfeit = &core->forfeit;
    forfeit->job = job->id;
    forfeit->count = forfeit->next = 0;
    const int64_t due_micro = fee_micro(core, job);
    const struct match_wish wish =
        core_wish(core, &job->request, core_held_micro(core, job->id), now_ms);
    struct match_placement placement;
    if (due_micro > 0 && match_place(core->matcher, &wish, NULL, &placement) == MATCH_PLACED &&
        placement.quote_micro > 0) {
        for (size_t i = 0; i < placement.part_count; i++) {
            const struct match_part *part = &placement.parts[i];
            const int64_t amount_micro =
                (int64_t)((__int128)due_micro * part->quote_micro / placement.quote_micro);
            if (amount_micro > 0)
                add_part(forfeit, part->machine, amount_micro);
        }
    }
    if (forfeit->count == 0)
        add_part(forfeit, NULL, 0);
}

/* ---- Applied --------------------------------------------------------------------------------- */

int apply_booking_forfeited(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->booking_forfeited) *forfeited = &event->booking_forfeited;
    struct forfeit *forfeit = &core->forfeit;
    const struct job *job = map_get(&core->jobs, forfeited->job);
    if (!job || !core_is_cancelled_late(job, event->time_ms) ||
        core_held_micro(core, job->id) != job->quote_micro - job->posted_micro)
        return apply_misfit(event, "no such booking is cancelled late, with all that it held",
                            error);
    if (forfeit->job != job->id)
        compute(core, job, event->time_ms);
    if (forfeit->next == forfeit->count)
        return apply_misfit(event, "all was paid before", error);
    const struct forfeit_part *part = &forfeit->parts[forfeit->next];
    struct machine *machine = part->machine;
    if (forfeited->machine != (machine ? machine->id : 0) ||
        forfeited->amount_micro != part->amount_micro)
        return apply_misfit(event, "the fee is not what the booking comes to", error);
    if (machine) {
        const int64_t operator_micro =
            price_part_micro(part->amount_micro, core->settings.fee_basis_points);
        const struct ledger_post post = {
            .job = job->id,
            .payee = machine->owner,
            .amount_micro = part->amount_micro,
            .fee_micro = operator_micro,
            .withheld_micro = price_part_micro(part->amount_micro - operator_micro,
                                               core_withheld_basis_points(core, job, machine))};
        if (ledger_plan_post(core->ledger, &post, &core->due, error) < 0)
            return apply_unfit(event, error);
        machine->withheld_micro += core_due_withheld_micro(core);
    }
    forfeit->next++;
    return 0;
}

/* ---- Decided --------------------------------------------------------------------------------- */

void decide_forfeit(struct decision *decision, const struct job *job)
{
    struct core *core = decision->core;
    if (!core_is_cancelled_late(job, decision->now_ms))
        return;
    decide_close_slots(decision); /* the fee is of the prices after it */
    compute(core, job, decision->now_ms);
    while (!core_is_forfeited(core, job)) {
        const struct forfeit_part *part = &core->forfeit.parts[core->forfeit.next];
        if (part->machine)
            decide_own_pay(decision, job->request.account, part->machine->owner);
        struct event event = {
            .kind = EVENT_BOOKING_FORFEITED,
            .booking_forfeited = {.job = job->id,
                                  .machine = part->machine ? part->machine->id : 0,
                                  .amount_micro = part->amount_micro}};
        decision_emit(decision, &event);
        decision_emit_due(decision, "booking cancelled late");
    }
}
