/* What the market's offers would give a request now, one by one. */
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

static void visit_offer(const struct match_wish *wish, const struct offer *offer,
                        core_offered_visitor *visit, void *context)
{
    static const struct {
        enum machine_role machine;
        enum lease_role lease;
    } roles[] = {{MACHINE_ROLE_WORKER, LEASE_ROLE_WORKER},
                 {MACHINE_ROLE_SERVER, LEASE_ROLE_SERVER}};
    const struct job_request *request = wish->request;
    struct resources free = offer_free(offer);
    if (request->is_spare)
        free = resources_smaller(free, offer_spare_free(offer));
    for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
        const bool is_worker = roles[i].lease == LEASE_ROLE_WORKER;
        struct resources given = wish_resources(wish, roles[i].machine);
        if (given.cores_milli == 0 || !resources_fit(given, free) ||
            !wish_suits(wish, roles[i].machine, offer))
            continue;
        if (is_worker && request->takes_more_cores)
            given.cores_milli = free.cores_milli;
        visit(context, &(struct core_offered){.machine = offer->machine,
                                              .role = roles[i].lease,
                                              .resources = given,
                                              .hourly_micro = hourly_micro(wish, offer, given)});
    }
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
