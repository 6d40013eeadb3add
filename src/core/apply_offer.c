/*
 * Events about offers.
 */
#include "core/core_internal.h"

static int find_offer(const struct core *core, const struct event *event, uint64_t id,
                      uint64_t machine, struct offer **out_offer, struct error *error)
{
    struct offer *offer = map_get(&core->offers, id);
    if (!offer || offer->machine->id != machine)
        return apply_misfit(event, "the machine has no such offer", error);
    *out_offer = offer;
    return 0;
}

int apply_offer_set(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->offer_set) *set = &event->offer_set;
    struct machine *machine = NULL;
    if (apply_find_machine(core, event, set->machine, &machine, error) < 0)
        return -1;
    /* An offer may shrink after its last span; that new ones have a future is decide's matter. */
    if (offer_terms_check(&set->terms, &machine->probe, /* now_ms= */ 0, error) < 0)
        return apply_unfit(event, error);
    struct offer *offer = map_get(&core->offers, set->offer);
    if (offer ? offer->machine != machine
              : !apply_is_next_id(core, set->offer) || machine->offer_count == MACHINE_OFFERS_MAX)
        return apply_misfit(event, "it is neither one of the machine's offers nor the next", error);
    core_count_machine(core, machine, event->time_ms);
    if (!offer) {
        offer = slab_take(&core->offer_slab);
        offer->id = core->last_id = set->offer;
        offer->machine = machine;
        map_put(&core->offers, offer->id, offer);
        machine_add_offer(machine, offer);
    }
    offer_set_terms(offer, &core->offer_shares, &set->terms);
    core_index_offer(core, offer, event->time_ms);
    return 0;
}

int apply_offer_paused(struct core *core, const struct event *event, struct error *error)
{
    struct offer *offer = NULL;
    if (find_offer(core, event, event->offer_paused.offer, event->offer_paused.machine, &offer,
                   error) < 0)
        return -1;
    core_count_machine(core, offer->machine, event->time_ms);
    offer->terms.paused_until_ms = event->offer_paused.until_ms;
    core_index_offer(core, offer, event->time_ms);
    return 0;
}

int apply_offer_renewed(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->offer_renewed) *renewed = &event->offer_renewed;
    struct offer *offer = NULL;
    if (find_offer(core, event, renewed->offer, renewed->machine, &offer, error) < 0)
        return -1;
    if (window_check((struct window){renewed->spans.items, renewed->spans.count}, event->time_ms,
                     error) < 0)
        return apply_unfit(event, error);
    core_count_machine(core, offer->machine, event->time_ms);
    struct offer_terms terms = offer_terms(offer);
    terms.spans = renewed->spans;
    offer_set_terms(offer, &core->offer_shares, &terms);
    core_index_offer(core, offer, event->time_ms);
    return 0;
}

int apply_offer_turned(struct core *core, const struct event *event, struct error *error)
{
    struct offer *offer = NULL;
    if (find_offer(core, event, event->offer_turned.offer, event->offer_turned.machine, &offer,
                   error) < 0)
        return -1;
    if (offer->turns_ms == 0 || offer->turns_ms > event->time_ms ||
        offer_is_open(offer, event->time_ms) != event->offer_turned.is_open)
        return apply_misfit(event, "its time has not come, or it is the other way round", error);
    core_index_offer(core, offer, event->time_ms);
    return 0;
}

int apply_offer_withdrawn(struct core *core, const struct event *event, struct error *error)
{
    struct offer *offer = NULL;
    if (find_offer(core, event, event->offer_withdrawn.offer, event->offer_withdrawn.machine,
                   &offer, error) < 0)
        return -1;
    core_count_machine(core, offer->machine, event->time_ms);
    listing_remove(&core->listing, offer);
    match_rounds_forget_offer(core->rounds, offer);
    machine_remove_offer(offer->machine, offer);
    map_remove(&core->offers, offer->id);
    offer_shares_give(&core->offer_shares, offer->shared);
    slab_give(&core->offer_slab, offer);
    return 0;
}
