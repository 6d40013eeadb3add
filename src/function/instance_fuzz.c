/* Any bytes as messages between a host and an instance. */
#include "base/assert.h"
#include "function/instance_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct text rest = {(const char *)data, size};
    struct instance_message message;
    size_t taken;
    while (instance_message_decode(rest, &message, &taken, &error) == 1) {
        ASSERT(taken > 0 && taken <= rest.size && message.json.size < taken);
        rest = (struct text){rest.data + taken, rest.size - taken};
    }
    return 0;
}
