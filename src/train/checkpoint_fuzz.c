/*
 * Any bytes as a checkpoint. The checksum would keep the fuzzer out, so it is set right first:
 * what is tested is everything behind it.
 */
#include "base/assert.h"
#include "train/checkpoint.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HASH_SIZE = 32 };
    struct error error;
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    uint8_t *bytes = malloc(size + HASH_SIZE);
    ASSERT(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    crypto_generichash(bytes + size, HASH_SIZE, bytes, size, NULL, 0);
    if (checkpoint_parse(bytes, size + HASH_SIZE, &checkpoint, &error) == 0)
        ASSERT(checkpoint->parameter_count > 0);
    free(bytes);
    return 0;
}
