/* The first byte is the type; what decodes must encode to the same bytes. */
#include "base/assert.h"
#include "library/sync_message.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sync_message message;
    struct error error;
    if (size == 0)
        return 0;
    const struct text payload = {(const char *)data + 1, size - 1};
    if (sync_message_decode(data[0], payload, &message, &error) < 0)
        return 0;
    struct buffer again AUTO_BUFFER;
    buffer_init(&again, SYNC_PAYLOAD_MAX);
    sync_message_encode(&again, &message);
    ASSERT(again.size == payload.size);
    ASSERT(payload.size == 0 || memcmp(again.data, payload.data, payload.size) == 0);
    return 0;
}
