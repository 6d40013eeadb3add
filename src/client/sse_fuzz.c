/* An event stream, and each event's data as the market's JSON: cut in two places, the events are
 * the same. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "client/api.h"
#include "client/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_event(void *context, const char *name, struct text data)
{
    size_t *sum = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_event event = api_event_unknown();
    struct error ignored;
    if (json_read(arena, data, &api_event_schema, &event, &ignored) == 0)
        (*sum)++;
    *sum += data.size + strlen(name);
}

static size_t sum_events(const uint8_t *data, size_t size, size_t cut)
{
    size_t sum = 0;
    struct sse_reader reader;
    sse_reader_init(&reader, on_event, &sum);
    sse_reader_feed(&reader, (struct text){(const char *)data, cut});
    sse_reader_feed(&reader, (struct text){(const char *)data + cut, size - cut});
    sse_reader_done(&reader);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    ASSERT(sum_events(data, size, 0) == sum_events(data, size, data[0] % size));
    return 0;
}
