/* Any bytes as an idx file: refused, or every record can be read. */
#include "train/idx_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    AUTO(idx) struct idx *idx = NULL;
    if (idx_open_bytes(data, size, &idx, &error) < 0)
        return 0;
    volatile uint8_t last = 0;
    for (uint32_t i = 0; i < idx->header.sizes[0]; i++)
        last = idx_record(idx, i)[idx->header.record_size - 1];
    (void)last;
    return 0;
}
