/* Any bytes: what is read as a snapshot hangs together and is written to the same state again. */
#include "base/assert.h"
#include "core/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {0};
    AUTO(core) struct core *core = NULL, *again = NULL;
    if (core_snapshot_read((struct text){(const char *)data, size}, &core, &error) < 0) {
        ASSERT(error.code == ERROR_CORRUPT);
        return 0;
    }
    ASSERT(core_check(core, &error) == 0);
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 24);
    buffer_init(&second, 1 << 24);
    core_snapshot_write(core, &first);
    ASSERT(core_snapshot_read(buffer_text(&first), &again, &error) == 0);
    core_snapshot_write(again, &second);
    ASSERT(text_equal(buffer_text(&first), buffer_text(&second)));
    ASSERT(core_next_wake_ms(core) == core_next_wake_ms(again));
    core_free(again);
    again = NULL;
    return 0;
}
