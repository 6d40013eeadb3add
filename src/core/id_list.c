#include "core/id_list.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

void id_list_done(struct id_list *list)
{
    free(list->items);
    *list = (struct id_list){0};
}

size_t id_list_find(const struct id_list *list, uint64_t id)
{
    size_t low = 0, high = list->count;
    /* Most ids are added in order: look at the end first. */
    if (high > 0 && list->items[high - 1].id < id)
        return high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool id_list_contains(const struct id_list *list, uint64_t id)
{
    const size_t at = id_list_find(list, id);
    return at < list->count && list->items[at].id == id;
}

void id_list_add(struct id_list *list, uint64_t id, void *value)
{
    const size_t at = id_list_find(list, id);
    if (at < list->count && list->items[at].id == id)
        return;
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = realloc(list->items, list->capacity * sizeof(*list->items));
        ASSERT(list->items);
    }
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof(*list->items));
    list->items[at] = (struct id_list_item){id, value};
    list->count++;
}

void id_list_remove(struct id_list *list, uint64_t id)
{
    const size_t at = id_list_find(list, id);
    if (at == list->count || list->items[at].id != id)
        return;
    list->count--;
    memmove(list->items + at, list->items + at + 1, (list->count - at) * sizeof(*list->items));
}
