/* Any bytes as messages (the first two name the type) and as a run of DATA for a vector. */
#include "base/assert.h"
#include "exchange/vector.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_runs(const uint8_t *data, size_t size)
{
    static float values[16], shadow[16];
    static struct vector_scratch scratch;
    struct error error;
    struct vector_receiver vector = {values, 16, 0, CODEC_F32, NULL};
    if (size == 0)
        return;
    vector.codec = data[0] % CODEC_COUNT;
    vector.shadow = data[0] & 0x80 ? shadow : NULL;
    memset(shadow, 0, sizeof shadow);
    for (data++, size--; size > 0 && vector.done < vector.count;) {
        const size_t length = data[0] < size - 1 ? data[0] : size - 1;
        const size_t before = vector.done;
        const struct text payload = {(const char *)data + 1, length};
        if (vector_take(&vector, payload, &scratch, &error) < 0)
            return;
        ASSERT(vector.done > before && vector.done <= vector.count);
        for (size_t i = before; i < vector.done; i++)
            ASSERT(values[i] - values[i] == 0.0F);
        data += length + 1;
        size -= length + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const uint16_t type = (uint16_t)(data[0] | data[1] << 8);
    const struct text payload = {(const char *)data + 2, size - 2};
    if (type == EXCHANGE_DATA) {
        take_runs(data + 2, size - 2);
        return 0;
    }
    struct exchange_message message;
    struct error error;
    uint64_t lease, fence;
    if (exchange_identity_parse(payload, &lease, &fence, &error) == 0)
        ASSERT(payload.size >= 9);
    if (exchange_message_decode(type, payload, &message, &error) < 0)
        return 0;
    struct buffer again AUTO_BUFFER;
    buffer_init(&again, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&again, &message);
    ASSERT(text_equal(buffer_text(&again), payload));
    return 0;
}
