/*
 * Schedule: when something is open, in its owner's words and its owner's time zone.
 *
 *     always (or: now)                          without end
 *     Mon-Fri 18:00-08:00                       every week; past midnight it goes on the next day
 *     Mon,Wed 9-17, 19-21; Sat-Sun 0-24         several parts; a bare number is an hour
 *     2026-11-20 18:00 - 2026-11-21 08:00       once
 *     Mon-Fri 18:00-08:00 Europe/Berlin         with the zone, which comes last
 *
 * Times may have seconds, 18:00:30.
 * A part that crosses midnight belongs to the day on which it starts. Daylight saving: a wall time
 * that a day skips is the instant of the jump; of one that comes twice a part opens at the first
 * and closes at the second. So a day has 23, 24 or 25 hours as the owner's clock has them.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"
#include "base/text.h"
#include "base/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCHEDULE_PART_MAX = 8,
    SCHEDULE_WEEKS = 8,
    SCHEDULE_SPAN_MAX = SCHEDULE_PART_MAX * (7 * SCHEDULE_WEEKS + 3),
    SCHEDULE_TEXT_SIZE = 400, /* of the longest, with the zero byte */
};

struct schedule_part {
    unsigned days; /* of each week, bit 0 is Monday; 0: once */
    int from_s;
    int until_s;          /* of a week's day; past 86400 it is on the next */
    int64_t from_wall_s;  /* once: see base/zone.h */
    int64_t until_wall_s; /* > from_wall_s */
};

struct schedule {
    struct schedule_part parts[SCHEDULE_PART_MAX];
    size_t part_count;         /* 0: always */
    char zone[ZONE_NAME_SIZE]; /* "": the words name none */
};

/* INVALID, naming the place and, where there is one, the nearest word. */
MUST_CHECK int schedule_parse(struct text text, struct schedule *out_schedule, struct error *error);

/* The words again, the same for schedules that mean the same part by part. Returns `out`. */
const char *schedule_format(const struct schedule *schedule, char out[SCHEDULE_TEXT_SIZE]);

/* The week as hours of its days, bit 0 of Monday's from 0 to 1 o'clock. False when it is none: a
 * part is once, or does not begin and end with an hour. */
enum { SCHEDULE_GRID_DAYS = 7 };
bool schedule_to_grid(const struct schedule *schedule, uint32_t out_hours[SCHEDULE_GRID_DAYS]);
/* And back, without a zone, in as few parts as it takes. INVALID: no hour is open, or there are
 * more than SCHEDULE_PART_MAX. */
MUST_CHECK int schedule_of_grid(const uint32_t hours[SCHEDULE_GRID_DAYS],
                                struct schedule *out_schedule, struct error *error);

/* Whether the spans of an expansion run out, so that it must be made again within 8 weeks. */
bool schedule_is_weekly(const struct schedule *schedule);
/* When to expand it again, given the first span of the last time: after four weeks, or up to one
 * more, so that at least three are left. 0: never. */
int64_t schedule_renew_ms(const struct schedule *schedule, struct span first);

/*
 * The UTC spans from `now_ms` on in which it is open: of weekly parts those that begin within 8
 * weeks, of others all. Sorted and disjoint; none for "always". INVALID when it would never open.
 */
MUST_CHECK int schedule_expand(const struct schedule *schedule, const struct zone *zone,
                               int64_t now_ms, struct span out_spans[SCHEDULE_SPAN_MAX],
                               size_t *out_count, struct error *error);
