/* Any bytes, as a packet of the job's and as one that comes in. */
#include "base/assert.h"
#include "net/fence.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fence fence;
    uint8_t *bytes = malloc(size + 1); /* exactly as long, for the sanitizer */
    ASSERT(bytes);
    memcpy(bytes, data, size);
    fence_init(&fence);
    fence_open(&fence);
    fence_add(&fence, (struct fence_network){UINT32_C(0x08080000), 16});
    struct fence_flow flow;
    bool is_error = false;
    if (fence_check_out(&fence, bytes, size, &flow) == FENCE_PASSES) {
        ASSERT(fence_has_outside(&fence, flow.remote));
        ASSERT(size >= 28 && size <= FENCE_PACKET_MAX && bytes[0] == 0x45);
        ASSERT((bytes[6] & 0x3f) == 0 && bytes[7] == 0);
    }
    if (fence_check_in(&fence, bytes, size, &flow, &is_error) == FENCE_PASSES && !is_error)
        ASSERT(fence_has_outside(&fence, flow.remote));
    uint8_t refusal[FENCE_REFUSAL_SIZE];
    if (fence_write_refusal(bytes, size, refusal) > 0)
        ASSERT(fence_check_in(&fence, refusal, sizeof(refusal), &flow, &is_error) == FENCE_PASSES &&
               is_error);
    free(bytes);
    return 0;
}
