/* Any bytes may come as a time zone file: they are refused, or give a clock that keeps its word. */
#include "base/assert.h"
#include "base/date.h"
#include "base/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_instant(const struct zone *zone, int64_t utc_s)
{
    const int64_t offset_s = zone_offset_s(zone, utc_s);
    const int64_t first_s = zone_instant_s(zone, utc_s + offset_s, ZONE_PICK_FIRST);
    const int64_t last_s = zone_instant_s(zone, utc_s + offset_s, ZONE_PICK_LAST);
    int64_t next_s;
    ASSERT(offset_s >= -ZONE_OFFSET_MAX_S && offset_s <= ZONE_OFFSET_MAX_S);
    ASSERT(first_s <= utc_s && utc_s <= last_s);
    ASSERT(first_s + zone_offset_s(zone, first_s) == utc_s + offset_s);
    ASSERT(last_s + zone_offset_s(zone, last_s) == utc_s + offset_s);
    if (zone_next_change(zone, utc_s, &next_s))
        ASSERT(next_s > utc_s && zone_offset_s(zone, next_s - 1) == offset_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t begin_s = date_to_days((struct date){1900, 1, 1}) * 86400;
    const int64_t end_s = date_to_days((struct date){2200, 1, 1}) * 86400;
    AUTO(zone) struct zone *zone = NULL;
    struct error error;
    if (zone_parse((struct text){(const char *)data, size}, &zone, &error) < 0)
        return 0;
    int64_t at_s = begin_s;
    for (int i = 0; i < 64 && zone_next_change(zone, at_s, &at_s) && at_s < end_s; i++) {
        check_instant(zone, at_s - 1);
        check_instant(zone, at_s);
    }
    for (int64_t utc_s = begin_s; utc_s < end_s; utc_s += (end_s - begin_s) / 16)
        check_instant(zone, utc_s);
    return 0;
}
