/* What the market's offers would give a request, one by one: now, or once they are free. */
#include "core/core_internal.h"
#include "market/match.h"

/* What the lease would cost an hour: at the posted price, or the lender's own where that is more.
 */
static int64_t hourly_micro(const struct match_wish *wish, const struct offer *offer,
                            struct resources resources)
{
    const struct price_units units = price_units(resources, machine_speed_milli(offer->machine));
    const struct price_lock own = price_lock_flat(offer->terms.minimum);
    return price_hourly_lock_micro(units,
                                   wish_is_accepted(wish, offer, resources) ? &wish->lock : &own);
}

/* Its room would do if the machine were idle. */
static bool would_do(const struct match_wish *wish, const struct offer *offer,
                     struct resources given, struct resources *out_whole)
{
    const struct machine *machine = offer->machine;
    *out_whole = resources_smaller(offer->terms.resources, machine->probe.resources);
    return machine->lease_count > 0 && !wish->request->is_spare && resources_fit(given, *out_whole);
}

static void note_busy(const struct machine *machine, struct core_offered *offered)
{
    for (size_t i = 0; i < machine->lease_count; i++) {
        const struct lease *lease = machine->leases[i];
        const int64_t since_ms = lease->started_ms > 0 ? lease->started_ms : lease->offered_ms;
        if (i == 0 || since_ms < offered->busy_since_ms)
            offered->busy_since_ms = since_ms;
        if (lease->ends_ms > offered->busy_until_ms)
            offered->busy_until_ms = lease->ends_ms;
    }
}

static void visit_role(const struct match_wish *wish, const struct offer *offer,
                       enum machine_role role, struct core_offered *offered,
                       core_offered_visitor *visit, void *context)
{
    const struct job_request *request = wish->request;
    struct resources given = wish_resources(wish, role), room = offer_free(offer);
    if (request->is_spare)
        room = resources_smaller(room, offer_spare_free(offer));
    if (given.cores_milli == 0 || !wish_suits(wish, role, offer))
        return;
    if (!resources_fit(given, room)) {
        if (!would_do(wish, offer, given, &room))
            return;
        note_busy(offer->machine, offered);
    }
    if (role == MACHINE_ROLE_WORKER && request->takes_more_cores)
        given.cores_milli = room.cores_milli;
    offered->resources = given;
    offered->hourly_micro = hourly_micro(wish, offer, given);
    visit(context, offered);
}

static void visit_offer(const struct match_wish *wish, const struct offer *offer,
                        core_offered_visitor *visit, void *context)
{
    struct core_offered worker = {.machine = offer->machine, .role = LEASE_ROLE_WORKER};
    struct core_offered server = {.machine = offer->machine, .role = LEASE_ROLE_SERVER};
    visit_role(wish, offer, MACHINE_ROLE_WORKER, &worker, visit, context);
    visit_role(wish, offer, MACHINE_ROLE_SERVER, &server, visit, context);
}

void core_each_offered(const struct core *core, const struct job_request *request,
                       core_offered_visitor *visit, void *context)
{
    const struct match_wish wish = core_wish(core, request, 0, core->time_ms);
    for (size_t i = 0; i < core_machine_count(core); i++) {
        const struct machine *machine = core_machine_at(core, i);
        for (size_t k = 0; k < machine->offer_count; k++)
            visit_offer(&wish, machine->offers[k], visit, context);
    }
}
