#include "base/schedule.h"

#include <string.h>

enum { HOUR_S = 3600, DAY_HOURS = 24, WEEK_DAYS = 7 };

bool schedule_to_grid(const struct schedule *schedule, uint32_t out_hours[SCHEDULE_GRID_DAYS])
{
    memset(out_hours, schedule->part_count ? 0 : 0xff, WEEK_DAYS * sizeof(*out_hours));
    for (size_t i = 0; i < schedule->part_count; i++) {
        const struct schedule_part *part = &schedule->parts[i];
        if (!part->days || part->from_s % HOUR_S || part->until_s % HOUR_S)
            return false;
        for (int day = 0; day < WEEK_DAYS; day++)
            for (int hour = part->from_s / HOUR_S;
                 part->days >> day & 1 && hour < part->until_s / HOUR_S; hour++)
                out_hours[(day + hour / DAY_HOURS) % WEEK_DAYS] |= 1U << hour % DAY_HOURS;
    }
    for (int day = 0; day < WEEK_DAYS; day++)
        out_hours[day] &= (1U << DAY_HOURS) - 1;
    return true;
}

/* Hours of one day that follow each other; joined with the next day's first they pass 24. */
struct run {
    int day, from, until;
};

struct runs {
    struct run items[WEEK_DAYS * DAY_HOURS / 2];
    size_t count;
};

static void find_runs(const uint32_t hours[SCHEDULE_GRID_DAYS], struct runs *out)
{
    out->count = 0;
    for (int day = 0; day < WEEK_DAYS; day++)
        for (int hour = 0; hour < DAY_HOURS; hour++) {
            struct run *last = out->count ? &out->items[out->count - 1] : NULL;
            if (!(hours[day] >> hour & 1))
                continue;
            if (last && last->day == day && last->until == hour)
                last->until++;
            else
                out->items[out->count++] = (struct run){day, hour, hour + 1};
        }
}

/* A night belongs to the day on which it starts; together it is a day at most. */
static void join_nights(struct runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        for (size_t j = 0; j < runs->count && runs->items[i].until == DAY_HOURS; j++) {
            const struct run *next = &runs->items[j];
            if (next->day != (runs->items[i].day + 1) % WEEK_DAYS || next->from != 0 ||
                next->until > runs->items[i].from)
                continue;
            runs->items[i].until += next->until;
            runs->count--;
            memmove(&runs->items[j], &runs->items[j + 1],
                    (runs->count - j) * sizeof(runs->items[j]));
            i -= j < i;
            break;
        }
}

/* How many parts there are, the same hours of several days as one; the first are in `out`. */
static size_t make_parts(const struct runs *runs, struct schedule *out)
{
    struct run kinds[WEEK_DAYS * DAY_HOURS / 2];
    size_t count = 0;
    *out = (struct schedule){0};
    for (size_t i = 0; i < runs->count; i++) {
        const struct run *run = &runs->items[i];
        size_t kind = 0;
        while (kind < count && (kinds[kind].from != run->from || kinds[kind].until != run->until))
            kind++;
        if (kind == count)
            kinds[count++] = *run;
        if (kind < SCHEDULE_PART_MAX) {
            out->parts[kind].days |= 1U << run->day;
            out->parts[kind].from_s = run->from * HOUR_S;
            out->parts[kind].until_s = run->until * HOUR_S;
        }
    }
    out->part_count = count < SCHEDULE_PART_MAX ? count : SCHEDULE_PART_MAX;
    return count;
}

int schedule_of_grid(const uint32_t hours[SCHEDULE_GRID_DAYS], struct schedule *out_schedule,
                     struct error *error)
{
    const uint32_t whole = (1U << DAY_HOURS) - 1;
    uint32_t all = whole;
    struct schedule apart, joined;
    struct runs runs;
    for (int day = 0; day < WEEK_DAYS; day++)
        all &= hours[day];
    find_runs(hours, &runs);
    if (runs.count == 0)
        return error_set(error, ERROR_INVALID, "no hour of the week is open");
    if (all == whole) {
        *out_schedule = (struct schedule){0};
        return 0;
    }
    const size_t apart_count = make_parts(&runs, &apart);
    join_nights(&runs);
    const size_t joined_count = make_parts(&runs, &joined);
    const size_t least = joined_count < apart_count ? joined_count : apart_count;
    if (least > SCHEDULE_PART_MAX)
        return error_set(error, ERROR_INVALID,
                         "the week has %zu stretches of hours that differ, and %d fit: let days "
                         "have the same hours",
                         least, SCHEDULE_PART_MAX);
    *out_schedule = joined_count <= apart_count ? joined : apart;
    return 0;
}
