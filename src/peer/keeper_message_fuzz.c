/* Two bytes of type, then the payload: what decodes must encode to the same bytes. */
#include "base/assert.h"
#include "peer/keeper_message.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct error error;
    struct keeper_message message;
    const uint16_t type = (uint16_t)(data[0] | data[1] << 8);
    const struct text payload = {(const char *)data + 2, size - 2};
    if (keeper_message_decode(type, payload, &message, &error) < 0)
        return 0;
    struct buffer again AUTO_BUFFER;
    buffer_init(&again, LEASE_MESSAGE_SIZE_MAX);
    keeper_message_encode(&message, &again);
    ASSERT(again.size == payload.size);
    ASSERT(payload.size == 0 || !memcmp(again.data, payload.data, payload.size));
    return 0;
}
