/*
 * Slots end by themselves: before the first event after their end, and when time passes.
 */
#include "core/core_internal.h"

#include <string.h>

static bool has_risen(const struct price_vector *before, const struct price_vector *after)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        if (price_vector_get(after, r) > price_vector_get(before, r))
            return true;
    return false;
}

/* Those of whose lenders the new price reaches the minimum, as the old one did not. */
static void touch_willing_machines(const struct core *core, struct price_vector price_before)
{
    for (size_t m = 0; m < core->machine_list.count; m++) {
        struct machine *machine = core->machine_list.items[m].value;
        for (size_t i = 0; machine->state == MACHINE_STATE_ONLINE && i < machine->offer_count;
             i++) {
            const struct offer *offer = machine->offers[i];
            const struct price_units units =
                price_units(offer->terms.resources, machine_speed_milli(machine));
            if (!offer_accepts_price(offer, units, price_before) &&
                offer_accepts_price(offer, units, core->price))
                match_rounds_touch(core->rounds, machine);
        }
    }
}

void decide_close_slots(struct decision *decision)
{
    struct core *core = decision->core;
    const struct price_vector price_before = core->price;
    const int64_t slot_before = core->prices.slot;
    while (core->sequence > 0 && core_slot_end_ms(core) <= decision->now_ms) {
        struct core_slot_end end;
        core_slot_end_prepare(core, decision->now_ms, &end);
        struct event event = {.kind = EVENT_SLOT_CLOSED,
                              .slot_closed = {.slot = core->prices.slot,
                                              .next_slot = end.next_slot,
                                              .board = end.board,
                                              .price = end.price}};
        memcpy(event.slot_closed.inputs, end.inputs, sizeof(end.inputs));
        core->prices.prepared = &end;
        decision_emit(decision, &event);
        core->prices.prepared = NULL;
        decision->should_match = decision->is_repriced = true;
    }
    if (core->prices.slot != slot_before && has_risen(&price_before, &core->price))
        touch_willing_machines(core, price_before);
}

/* Of the slots alone; an idle market sleeps through them. */
int64_t decide_price_wake_ms(const struct core *core)
{
    const bool may_be_idle = core->pending.count == 0 && core->active.count == 0 &&
                             core->prices.meter.spreads.count == 0 && core->offers.count == 0;
    return core->sequence == 0 || may_be_idle ? INT64_MAX : core_slot_end_ms(core);
}
