/* Lists of events, each with the texts it points to. */
#include "base/assert.h"
#include "core/event.h"

#include <stdlib.h>
#include <string.h>

void event_list_init(struct event_list *list)
{
    *list = (struct event_list){.arena = arena_new(0)};
}

void event_list_done(struct event_list *list)
{
    arena_free(list->arena);
    free(list->items);
    *list = (struct event_list){0};
}

void event_list_clear(struct event_list *list)
{
    arena_clear(list->arena);
    list->count = 0;
    list->subject = 0;
}

static struct json_array copy_spans(struct arena *arena, struct json_array spans)
{
    const size_t size = spans.count * sizeof(struct span);
    void *items = arena_alloc(arena, size);
    if (size)
        memcpy(items, spans.items, size);
    return (struct json_array){items, spans.count};
}

/* What the event only points to. */
static void copy_texts(struct arena *arena, struct event *event)
{
    if (event->kind == EVENT_JOB_SUBMITTED)
        event->job_submitted.request.spec =
            arena_copy_text(arena, event->job_submitted.request.spec);
    else if (event->kind == EVENT_OFFER_SET)
        event->offer_set.terms = offer_terms_copy_to(arena, &event->offer_set.terms);
    else if (event->kind == EVENT_OFFER_RENEWED)
        event->offer_renewed.spans = copy_spans(arena, event->offer_renewed.spans);
}

void event_list_append(struct event_list *list, const struct event *event)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 16;
        list->items = realloc(list->items, list->capacity * sizeof(*list->items));
        ASSERT(list->items);
    }
    struct event *added = &list->items[list->count++];
    *added = *event;
    copy_texts(list->arena, added);
}
