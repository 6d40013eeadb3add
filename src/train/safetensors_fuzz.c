/* Any bytes as a safetensors file: refused, or every tensor lies within its data. */
#include "base/assert.h"
#include "train/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    AUTO(safetensors) struct safetensors *file = NULL;
    if (safetensors_parse(data, size, &file, &error) < 0)
        return 0;
    volatile float last = 0;
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        const struct parameter *tensor = &file->tensors[i];
        ASSERT(tensor->count > 0 && tensor->offset + tensor->count <= file->float_count);
        last = file->data[tensor->offset + tensor->count - 1];
    }
    (void)last;
    return 0;
}
