/*
 * Matching: gives pending jobs their leases.
 */
#include "core/core_internal.h"

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

static void offer_lease(struct decision *decision, const struct job *job,
                        const struct match_part *part, const struct price_lock *lock)
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
                                            .lock = *lock,
                                            .quote_micro = part->quote_micro}};
    decision_emit(decision, &event);
}

static bool match_job(struct decision *decision, struct arena *arena, struct machine **machines,
                      const struct job *job)
{
    const struct core *core = decision->core;
    if (account_is_frozen(core_account(core, job->request.account)))
        return false;
    const struct match_wish wish =
        core_wish(core, &job->request, core_held_micro(core, job->id), decision->now_ms);
    struct match_placement placement;
    if (match_place(arena, machines, core->machine_list.count, &wish, &placement) != MATCH_PLACED)
        return false;
    adjust_hold(decision, job, placement.quote_micro);
    for (size_t i = 0; i < placement.part_count; i++)
        offer_lease(decision, job, &placement.parts[i], &wish.lock);
    decision_emit_job_state(decision, job, JOB_STATE_STARTING, JOB_STATE_STARTING, "");
    return true;
}

/* The oldest job first; one that does not fit does not keep the next from being tried. */
void decide_match(struct decision *decision)
{
    const struct id_list *pending = &decision->core->pending;
    if (pending->count == 0)
        return;
    AUTO(arena) struct arena *lasting = arena_new(0);
    AUTO(arena) struct arena *scratch = arena_new(0);
    struct machine **machines = core_machine_pointers(decision->core, lasting);
    for (size_t i = 0; i < pending->count;) {
        /* A job that is placed leaves the list, and the next takes its place in it. */
        if (!match_job(decision, scratch, machines, pending->items[i].value))
            i++;
        arena_clear(scratch);
    }
}
