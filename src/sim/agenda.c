#include "sim/agenda.h"

#include "base/assert.h"

#include <stdlib.h>

void agenda_init(struct agenda *agenda)
{
    *agenda = (struct agenda){0};
}

void agenda_done(struct agenda *agenda)
{
    free(agenda->items);
    *agenda = (struct agenda){0};
}

static bool is_before(const struct agenda_item *left, const struct agenda_item *right)
{
    return left->at != right->at ? left->at < right->at : left->order < right->order;
}

void agenda_put(struct agenda *agenda, const struct agenda_item *item)
{
    if (agenda->count == agenda->capacity) {
        agenda->capacity = agenda->capacity ? 2 * agenda->capacity : 64;
        agenda->items = realloc(agenda->items, agenda->capacity * sizeof(*agenda->items));
        ASSERT(agenda->items);
    }
    struct agenda_item added = *item;
    added.order = ++agenda->put_count;
    size_t at = agenda->count++;
    while (at > 0 && is_before(&added, &agenda->items[(at - 1) / 2])) {
        agenda->items[at] = agenda->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->items[at] = added;
}

int64_t agenda_next(const struct agenda *agenda)
{
    return agenda->count > 0 ? agenda->items[0].at : INT64_MAX;
}

bool agenda_take(struct agenda *agenda, struct agenda_item *out_item)
{
    if (agenda->count == 0)
        return false;
    *out_item = agenda->items[0];
    const struct agenda_item last = agenda->items[--agenda->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= agenda->count)
            break;
        if (child + 1 < agenda->count &&
            is_before(&agenda->items[child + 1], &agenda->items[child]))
            child++;
        if (!is_before(&agenda->items[child], &last))
            break;
        agenda->items[at] = agenda->items[child];
        at = child;
    }
    if (agenda->count > 0)
        agenda->items[at] = last;
    return true;
}
