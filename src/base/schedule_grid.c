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
