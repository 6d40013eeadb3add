/* Any bytes as CIFAR records, and as a list of labels: refused, or labels within. */
#include "base/assert.h"
#include "train/reader_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct import_rows rows = {0};
    const struct text bytes = {(const char *)data, size};
    const struct reader_source source = {.bytes = bytes};
    if (reader_cifar_read(&source, size % 2 ? 1 : 2, 1 << 20, &rows, &error) == 0)
        ASSERT(rows.targets.size == rows.count * sizeof(int32_t));
    spool_done(&rows.values);
    spool_done(&rows.targets);
    if (reader_labels_read(bytes, 10, &rows, &error) == 0)
        ASSERT(rows.targets.size % sizeof(int32_t) == 0);
    spool_done(&rows.targets);
    return 0;
}
