/* Any bytes as LIBSVM lines: refused, or places that rise within the width. */
#include "base/assert.h"
#include "train/reader_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct import_options options;
    import_options_default(&options);
    options.size_max = 1 << 20;
    options.is_number = size % 2;
    const struct reader_source source = {.bytes = {(const char *)data, size}};
    struct import import AUTO_IMPORT = {0};
    if (reader_libsvm_read(&source, &options, &import, &error) < 0)
        return 0;
    const uint32_t *indices = (const uint32_t *)(const void *)import.train.indices.data;
    for (size_t i = 0; i < import.train.indices.size / sizeof(*indices); i++)
        ASSERT(indices[i] < import.width);
    ASSERT(import_finish(&import, &error) == 0 || error.code == ERROR_INVALID);
    return 0;
}
