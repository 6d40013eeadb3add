/* Any bytes may come as a manifest: they are refused, or mean exactly one manifest. */
#include "base/assert.h"
#include "blob/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct manifest manifest;
    struct arena *arena = arena_new(0);
    if (manifest_decode(arena, (struct text){(const char *)data, size}, &manifest, &error) == 0) {
        struct buffer again AUTO_BUFFER;
        buffer_init(&again, BLOB_BYTES_MAX);
        int result = manifest_encode(&manifest, &again, &error);
        ASSERT(result == 0 && again.size == size && memcmp(again.data, data, size) == 0);
        uint8_t header[MANIFEST_HEADER_BYTES_MAX];
        result = manifest_read_header(&manifest, header, &error);
        ASSERT(result == 0);
        struct manifest_range range;
        result = manifest_map_bytes(&manifest, 0, manifest.size_bytes, &range, &error);
        ASSERT(result == 0 && range.chunk_count == manifest.chunks.count);
        if (manifest.record_count > 0) {
            result = manifest_map_records(&manifest, manifest.record_count - 1, 1, &range, &error);
            ASSERT(result == 0 && range.size_bytes == manifest.record_bytes);
        }
    }
    arena_free(arena);
    return 0;
}
