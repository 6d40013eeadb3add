/*
 * Slots end by themselves: before the first event after their end, and when time passes.
 */
#include "core/core_internal.h"

#include <string.h>

void decide_close_slots(struct decision *decision)
{
    struct core *core = decision->core;
    while (core->sequence > 0 && core_slot_end_ms(core) <= decision->now_ms) {
        struct core_slot_end end;
        core_slot_end_prepare(core, decision->now_ms, &end);
        struct event event = {.kind = EVENT_SLOT_CLOSED,
                              .slot_closed = {.slot = core->prices.slot,
                                              .next_slot = end.next_slot,
                                              .board = end.board,
                                              .price = end.price}};
        memcpy(event.slot_closed.inputs, end.inputs, sizeof(end.inputs));
        core_slot_end_done(&end);
        decision_emit(decision, &event);
        decision->should_match = true;
    }
}

/* Of the slots alone; an idle market sleeps through them. */
int64_t decide_price_wake_ms(const struct core *core)
{
    const bool may_be_idle = core->pending.count == 0 && core->active.count == 0 &&
                             core->prices.meter.spreads.count == 0 && core->offers.count == 0;
    return core->sequence == 0 || may_be_idle ? INT64_MAX : core_slot_end_ms(core);
}
