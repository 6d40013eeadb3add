/* Any bytes as a table, its options from its size: refused, or an import that is whole. */
#include "base/assert.h"
#include "train/reader_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct import_options options;
    import_options_default(&options);
    options.size_max = 1 << 20;
    options.buckets = 16;
    options.missing = (enum import_missing)(size % 4);
    options.categories = (enum import_categories)(size / 4 % 3);
    options.is_number = size / 12 % 2;
    const struct reader_source source = {.bytes = {(const char *)data, size}};
    struct import import AUTO_IMPORT = {0};
    if (reader_csv_read(&source, &options, &import, &error) == 0)
        ASSERT(import_finish(&import, &error) == 0 || error.code == ERROR_INVALID);
    return 0;
}
