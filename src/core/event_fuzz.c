/* Any bytes: what decodes encodes again to an equal event, and may be put to a core unharmed. */
#include "base/assert.h"
#include "core/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_one(struct core *core, struct arena *arena, struct text json)
{
    struct error error = {0};
    struct event event, again;
    if (event_decode(arena, json, &event, &error) < 0)
        return;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 22);
    buffer_init(&second, 1 << 22);
    event_encode(&event, &first);
    ASSERT(event_decode(arena, buffer_text(&first), &again, &error) == 0);
    event_encode(&again, &second);
    ASSERT(text_equal(buffer_text(&first), buffer_text(&second)));
    /* A refused event changes nothing, so that the next may still fit. */
    event.sequence = core_sequence(core) + 1;
    const uint64_t before = core_sequence(core);
    if (core_apply(core, &event, &error) < 0)
        ASSERT(core_sequence(core) == before && error.code == ERROR_CORRUPT);
    ASSERT(core_ledger_sum_micro(core) == 0);
}

/* Each line is an event, applied one after the other to a new market. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(core) struct core *core = core_new();
    AUTO(arena) struct arena *arena = arena_new(0);
    struct text rest = {(const char *)data, size}, line;
    while (text_cut(rest, '\n', &line, &rest))
        check_one(core, arena, line);
    check_one(core, arena, line);
    return 0;
}
