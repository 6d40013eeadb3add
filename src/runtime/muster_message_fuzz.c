/* One line: what decodes must, encoded and decoded again, encode to the same bytes. */
#include "base/assert.h"
#include "runtime/muster_message.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct muster_message message, again;
    if (muster_message_decode(arena, (struct text){(const char *)data, size}, &message, &error) < 0)
        return 0;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, (size_t)4 * MUSTER_LINE_MAX);
    buffer_init(&second, (size_t)4 * MUSTER_LINE_MAX);
    muster_message_encode(&message, &first);
    const struct text line = {(const char *)first.data, first.size - 1};
    if (line.size > MUSTER_LINE_MAX)
        return 0; /* escapes are longer than what they stand for */
    ASSERT(muster_message_decode(arena, line, &again, &error) == 0);
    muster_message_encode(&again, &second);
    ASSERT(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    return 0;
}
