/*
 * The event of a slot's end. What it carries is computed again from the state and compared, so a
 * replay is an audit of every price.
 */
#include "core/core_internal.h"

#include <string.h>

void core_prices_init(struct core *core)
{
    price_board_init(&core->prices.board);
    price_meter_init(&core->prices.meter);
    core->price = price_cold_start();
    for (int i = 0; i < CORE_PRICE_FORECASTS; i++)
        core->prices.forecasts[i] = core->price;
}

void core_prices_done(struct core *core)
{
    price_meter_done(&core->prices.meter);
}

void core_prices_begin(struct core *core, int64_t now_ms)
{
    core->prices.slot = slot_index(now_ms, core->settings.slot_offset_ms);
}

static bool inputs_equal(const struct price_inputs *left, const struct price_inputs *right)
{
    return left->wanted_milli_s == right->wanted_milli_s &&
           left->offered_milli_s == right->offered_milli_s &&
           left->borrower_count == right->borrower_count &&
           left->effective_q16 == right->effective_q16;
}

static bool is_as_computed(const struct event *event, const struct core_slot_end *end)
{
    const __typeof__(event->slot_closed) *closed = &event->slot_closed;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        if (!inputs_equal(&closed->inputs[r], &end->inputs[r]))
            return false;
    return closed->next_slot == end->next_slot && price_board_equal(&closed->board, &end->board) &&
           price_vector_equal(&closed->price, &end->price);
}

static void keep_close(struct core_prices *prices, const struct core_price_close *close)
{
    if (prices->close_kept == CORE_PRICE_CLOSES) {
        memmove(prices->closes, prices->closes + 1,
                (CORE_PRICE_CLOSES - 1) * sizeof(prices->closes[0]));
        prices->close_kept--;
    }
    prices->closes[prices->close_kept++] = *close;
    prices->close_count++;
}

int apply_slot_closed(struct core *core, const struct event *event, struct error *error)
{
    struct core_prices *prices = &core->prices;
    if (core->sequence == 0 || event->slot_closed.slot != prices->slot ||
        event->time_ms < core_slot_end_ms(core))
        return apply_misfit(event, "it is not the running slot, or that has not ended", error);
    struct core_slot_end end;
    if (prices->prepared)
        end = *prices->prepared;
    else
        core_slot_end_prepare(core, event->time_ms, &end);
    if (!is_as_computed(event, &end)) {
        core_slot_end_done(&end);
        return apply_misfit(event, "its prices do not follow from what was wanted and lent", error);
    }
    if (prices->seen_ms != event->time_ms)
        prices->seen = core_forecast(core);
    prices->seen_ms = event->time_ms;
    struct core_price_close close = {
        .slot = prices->slot, .price = core->price, .before = prices->board};
    memcpy(close.inputs, end.inputs, sizeof(close.inputs));
    keep_close(prices, &close);
    price_meter_done(&prices->meter);
    prices->meter = end.meter;
    prices->slot = end.next_slot;
    prices->board = end.board;
    core->price = end.price;
    price_meter_next_slot(&prices->meter, core_spread_would_pay, core);
    core_list_price(core, event->time_ms);
    memcpy(prices->forecasts, end.forecasts, sizeof(prices->forecasts));
    return 0;
}
