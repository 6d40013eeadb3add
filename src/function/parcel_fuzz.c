/* Any bytes as a parcel, with the hash set right, which would keep the fuzzer out. */
#include "base/assert.h"
#include "function/parcel.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HASH_SIZE = 32 };
    struct error error;
    struct parcel parcel;
    uint8_t *bytes = malloc(size + HASH_SIZE);
    ASSERT(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    crypto_generichash(bytes + size, HASH_SIZE, bytes, size, NULL, 0);
    const struct text whole = {(const char *)bytes, size + HASH_SIZE};
    if (parcel_decode(whole, &parcel, &error) == 0)
        ASSERT(parcel.head.size + sizeof(float) * parcel.count <= size);
    free(bytes);
    return 0;
}
