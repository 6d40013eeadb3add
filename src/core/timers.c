#include "core/timers.h"

#include "base/assert.h"

#include <stdlib.h>

void timers_done(struct timers *timers)
{
    free(timers->items);
    *timers = (struct timers){0};
}

static bool is_before(struct timer left, struct timer right)
{
    return left.at_ms != right.at_ms ? left.at_ms < right.at_ms : left.id < right.id;
}

void timers_add(struct timers *timers, int64_t at_ms, uint64_t id)
{
    if (timers->count == timers->capacity) {
        timers->capacity = timers->capacity ? timers->capacity * 2 : 16;
        timers->items = realloc(timers->items, timers->capacity * sizeof(*timers->items));
        ASSERT(timers->items);
    }
    const struct timer timer = {at_ms, id};
    size_t at = timers->count++;
    for (; at > 0 && is_before(timer, timers->items[(at - 1) / 2]); at = (at - 1) / 2)
        timers->items[at] = timers->items[(at - 1) / 2];
    timers->items[at] = timer;
}

bool timers_first(const struct timers *timers, struct timer *out_timer)
{
    if (timers->count == 0)
        return false;
    *out_timer = timers->items[0];
    return true;
}

void timers_pop(struct timers *timers)
{
    ASSERT(timers->count > 0);
    const struct timer last = timers->items[--timers->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < timers->count; at = child) {
        if (child + 1 < timers->count && is_before(timers->items[child + 1], timers->items[child]))
            child++;
        if (!is_before(timers->items[child], last))
            break;
        timers->items[at] = timers->items[child];
    }
    if (timers->count > 0)
        timers->items[at] = last;
}
