/* Any text may come as a schedule: it is refused in plain words, or is written in a way that reads
 * the same and expands to spans that are sorted and disjoint. */
#include "base/assert.h"
#include "base/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char berlin[] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0"
                             "\0\0\0\0\0\0"
                             "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0"
                             "\0\0\0\0\0\0\nCET-1CEST,M3.5.0,M10.5.0/3\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_ms = INT64_C(1790000000000);
    struct schedule schedule, again;
    struct span spans[SCHEDULE_SPAN_MAX];
    struct error error = {0};
    char text[SCHEDULE_TEXT_SIZE], text_again[SCHEDULE_TEXT_SIZE];
    size_t count;
    AUTO(zone) struct zone *zone = NULL;
    if (schedule_parse((struct text){(const char *)data, size}, &schedule, &error) < 0) {
        ASSERT(error.code == ERROR_INVALID && text_is_utf8(text_of(error.message)));
        return 0;
    }
    schedule_format(&schedule, text);
    int result = schedule_parse(text_of(text), &again, &error);
    ASSERT(result == 0);
    ASSERT(text_equal(text_of(schedule_format(&again, text_again)), text_of(text)));
    result = zone_parse((struct text){berlin, sizeof(berlin) - 1}, &zone, &error);
    ASSERT(result == 0);
    if (schedule_expand(&schedule, zone, now_ms, spans, &count, &error) < 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        ASSERT(spans[i].open_ms < spans[i].close_ms && spans[i].close_ms > now_ms);
        ASSERT(i == 0 || spans[i].open_ms > spans[i - 1].close_ms);
    }
    return 0;
}
