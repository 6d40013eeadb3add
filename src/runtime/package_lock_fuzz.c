/* A list of packages: what is read must be written and read again the same. */
#include "base/assert.h"
#include "runtime/package_lock.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct package_lock lock, again;
    if (package_lock_read(arena, (struct text){(const char *)data, size}, &lock, &error) < 0)
        return 0;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, PACKAGE_LOCK_SIZE_MAX);
    buffer_init(&second, PACKAGE_LOCK_SIZE_MAX);
    package_lock_write(&lock, &first);
    ASSERT(package_lock_read(arena, buffer_text(&first), &again, &error) == 0);
    package_lock_write(&again, &second);
    ASSERT(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    return 0;
}
