/* Any bytes may come as a document of an image: they are refused, or keep to their bounds. */
#include "base/assert.h"
#include "base/buffer.h"
#include "blob/image_document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct image_index index;
    struct image_manifest manifest;
    struct image_save save;
    struct image_config config, again;
    struct arena *arena = arena_new(0);
    const struct text json = {(const char *)data, size};
    if (image_index_read(arena, json, &index, &error) == 0)
        ASSERT(index.manifest_count <= IMAGE_MANIFESTS_MAX);
    if (image_manifest_read(arena, json, &manifest, &error) == 0)
        ASSERT(manifest.layer_count <= IMAGE_LAYERS_MAX);
    if (image_save_read(arena, json, &save, &error) == 0)
        ASSERT(save.layer_count <= IMAGE_LAYERS_MAX);
    if (image_config_read(arena, json, &config, &error) == 0) {
        struct buffer text AUTO_BUFFER;
        buffer_init(&text, (size_t)8 << 20);
        image_config_write(&config, &text);
        const int result = image_start_read(arena, buffer_text(&text), &again, &error);
        ASSERT(result == 0 && again.env.count == config.env.count);
    }
    arena_free(arena);
    return 0;
}
