/* Any bytes as messages (the first two name the type) and as a run of DATA for a vector. */
#include "base/assert.h"
#include "exchange/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void vector_take(const uint8_t *data, size_t size)
{
    float values[16];
    struct error error;
    struct exchange_vector vector = {values, 16, 0};
    while (size > 0 && vector.done < vector.count) {
        const size_t length = data[0] < size - 1 ? data[0] : size - 1;
        const size_t before = vector.done;
        if (exchange_vector_take(&vector, (struct text){(const char *)data + 1, length}, &error) <
            0)
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
        vector_take(data + 2, size - 2);
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
