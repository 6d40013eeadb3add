#include "base/assert.h"
#include "base/date.h"
#include "base/schedule.h"

#include <stdlib.h>

enum { DAY_SECONDS = 86400, RENEW_DAYS = 28 };

struct expansion {
    const struct zone *zone;
    int64_t now_ms;
    struct span *spans;
    size_t count;
};

static void add_span(struct expansion *expansion, int64_t from_wall_s, int64_t until_wall_s)
{
    struct span span = {
        zone_instant_s(expansion->zone, from_wall_s, ZONE_PICK_FIRST) * 1000,
        zone_instant_s(expansion->zone, until_wall_s, ZONE_PICK_LAST) * 1000,
    };
    /* A part that lies wholly in a gap does not open on that day. */
    if (span.open_ms >= span.close_ms || span.close_ms <= expansion->now_ms)
        return;
    if (span.open_ms < expansion->now_ms)
        span.open_ms = expansion->now_ms;
    ASSERT(expansion->count < SCHEDULE_SPAN_MAX);
    expansion->spans[expansion->count++] = span;
}

/* From the day before: its part may reach over midnight into now. */
static void expand_weekly(struct expansion *expansion, const struct schedule_part *part)
{
    const int64_t now_s = expansion->now_ms / 1000;
    const int64_t today = (now_s + zone_offset_s(expansion->zone, now_s)) / DAY_SECONDS;
    for (int64_t day = today - 1; day <= today + INT64_C(7) * SCHEDULE_WEEKS; day++)
        if (part->days & 1U << date_weekday(day))
            add_span(expansion, day * DAY_SECONDS + part->from_s,
                     day * DAY_SECONDS + part->until_s);
}

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->open_ms != b->open_ms)
        return a->open_ms < b->open_ms ? -1 : 1;
    return (a->close_ms > b->close_ms) - (a->close_ms < b->close_ms);
}

/* Sorts, and joins what overlaps or touches. */
static void merge(struct expansion *expansion)
{
    size_t kept = 0;
    qsort(expansion->spans, expansion->count, sizeof(*expansion->spans), compare_spans);
    for (size_t i = 0; i < expansion->count; i++) {
        const struct span span = expansion->spans[i];
        if (kept > 0 && span.open_ms <= expansion->spans[kept - 1].close_ms) {
            if (span.close_ms > expansion->spans[kept - 1].close_ms)
                expansion->spans[kept - 1].close_ms = span.close_ms;
        } else {
            expansion->spans[kept++] = span;
        }
    }
    expansion->count = kept;
}

/* The first span begins with the expansion, or within the week after it. */
int64_t schedule_renew_ms(const struct schedule *schedule, struct span first)
{
    return schedule_is_weekly(schedule) ? first.open_ms + INT64_C(1000) * RENEW_DAYS * DAY_SECONDS
                                        : 0;
}

int schedule_expand(const struct schedule *schedule, const struct zone *zone, int64_t now_ms,
                    struct span out_spans[SCHEDULE_SPAN_MAX], size_t *out_count,
                    struct error *error)
{
    struct expansion expansion = {.zone = zone, .now_ms = now_ms, .spans = out_spans};
    for (size_t i = 0; i < schedule->part_count; i++) {
        const struct schedule_part *part = &schedule->parts[i];
        if (part->days)
            expand_weekly(&expansion, part);
        else
            add_span(&expansion, part->from_wall_s, part->until_wall_s);
    }
    if (schedule->part_count > 0 && expansion.count == 0)
        return error_set(error, ERROR_INVALID, "the schedule never opens: all of it is past");
    merge(&expansion);
    *out_count = expansion.count;
    return 0;
}
