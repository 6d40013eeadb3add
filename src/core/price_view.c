/*
 * What prices are, were and will be.
 */
#include "core/core_internal.h"

struct price_vector core_price(const struct core *core)
{
    return core->price;
}

int64_t core_price_slot(const struct core *core)
{
    return core->prices.slot;
}

int64_t core_price_slot_at(const struct core *core, int64_t now_ms)
{
    const int64_t by_clock = slot_index(now_ms, core->settings.slot_offset_ms);
    if (core->sequence == 0)
        return by_clock;
    return by_clock > core->prices.slot && core_prices_are_idle(core) ? by_clock
                                                                      : core->prices.slot;
}

bool core_slots_are_fixed(const struct core *core, int64_t now_ms)
{
    return core->prices.close_count > 0 || core->jobs.count > 0 ||
           (core->sequence > 0 && core_slot_end_ms(core) <= now_ms);
}

const struct price_board *core_price_board(const struct core *core)
{
    return &core->prices.board;
}

uint64_t core_price_close_count(const struct core *core)
{
    return core->prices.close_count;
}

size_t core_price_close_kept(const struct core *core)
{
    return core->prices.close_kept;
}

const struct core_price_close *core_price_close_at(const struct core *core, size_t index)
{
    ASSERT(index < core->prices.close_kept);
    return &core->prices.closes[index];
}

const struct core_price_close *core_price_close_of(const struct core *core, int64_t slot)
{
    for (size_t i = core->prices.close_kept; i-- > 0;)
        if (core->prices.closes[i].slot == slot)
            return &core->prices.closes[i];
    return NULL;
}

struct price_vector core_price_of_slot(const struct core *core, int64_t slot)
{
    const struct core_prices *prices = &core->prices;
    if (slot <= prices->slot)
        return core->price;
    if (slot <= prices->slot + CORE_PRICE_FORECASTS)
        return prices->forecasts[slot - prices->slot - 1];
    if (core->settings.economy == ECONOMY_KARMA)
        return core->price;
    const struct price_vector no_floor = {0};
    return price_board_price(&prices->board, slot_of_day(slot), &no_floor);
}

bool core_price_follows(const struct event *event)
{
    return event->kind == EVENT_SLOT_CLOSED || event->kind == EVENT_SETTINGS_CHANGED ||
           event->sequence == 1; /* the first slot begins with it */
}

struct price_lock core_price_lock(const struct core *core, int64_t from_ms, int64_t until_ms)
{
    ASSERT(from_ms <= until_ms);
    const int64_t offset_ms = core->settings.slot_offset_ms;
    struct price_lock lock = {.first_slot = slot_index(from_ms, offset_ms), .offset_ms = offset_ms};
    /* A run that ends where a slot begins has no part in it. */
    const int64_t last = slot_index(until_ms > from_ms ? until_ms - 1 : until_ms, offset_ms);
    for (int64_t slot = lock.first_slot; slot <= last && lock.slot_count < PRICE_LOCK_SLOTS; slot++)
        lock.slots[lock.slot_count++] = core_price_of_slot(core, slot);
    return lock;
}

struct core_price_story core_price_story(const struct core *core, int64_t slot)
{
    const struct core_price_close *ended = core_price_close_of(core, slot);
    ASSERT(ended || slot >= core->prices.slot);
    struct core_price_story story = {
        .slot = slot,
        .price = ended ? ended->price : core_price_of_slot(core, slot),
        .board = ended ? ended->before : core->prices.board,
    };
    for (size_t i = 0; i < core->prices.close_kept; i++) {
        const struct core_price_close *close = &core->prices.closes[i];
        if (close->slot >= slot)
            break;
        story.has_level = true;
        story.level = *close;
        if (slot_of_day(close->slot) != slot_of_day(slot))
            continue;
        story.has_factor = true;
        story.factor = *close;
    }
    return story;
}

bool core_price_average(const struct core *core, int of_day, struct price_vector *out_average)
{
    struct price_vector sum = {0};
    int64_t count = 0;
    const int64_t oldest = core->prices.slot - CORE_PRICE_CLOSES;
    for (size_t i = 0; i < core->prices.close_kept; i++) {
        const struct core_price_close *close = &core->prices.closes[i];
        if (close->slot < oldest || (of_day >= 0 && slot_of_day(close->slot) != of_day))
            continue;
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
            price_vector_set(&sum, r,
                             price_vector_get(&sum, r) + price_vector_get(&close->price, r));
        count++;
    }
    if (count == 0)
        return false;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        price_vector_set(out_average, r, (price_vector_get(&sum, r) + count / 2) / count);
    return true;
}
