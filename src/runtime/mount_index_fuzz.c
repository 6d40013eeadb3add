/* An index: what decodes must encode to the same bytes, and its parts must be all of it. */
#include "base/assert.h"
#include "runtime/mount_index.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct mount_index index;
    if (mount_index_decode(arena, (struct text){(const char *)data, size}, &index, &error) < 0)
        return 0;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, MOUNT_INDEX_SIZE_MAX + 1);
    if (mount_index_encode(&index, &bytes, &error) < 0)
        return 0;
    ASSERT(bytes.size == size && memcmp(bytes.data, data, size) == 0);
    const bool is_shared = !index.is_single || index.cut_count > 0;
    const uint64_t world = is_shared ? 3 : 1;
    uint64_t all = 0;
    for (uint64_t rank = 0; rank < world; rank++) {
        const struct mount_part part = mount_index_part(&index, rank, world);
        ASSERT(part.offset_bytes == all || part.size_bytes == 0);
        all += part.size_bytes;
    }
    ASSERT(all == mount_index_bytes(&index));
    return 0;
}
