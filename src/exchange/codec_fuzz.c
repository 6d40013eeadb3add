/* Any bytes as a run by any codec; what decodes to sane values is encoded again and comes back. */
#include "base/assert.h"
#include "exchange/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNT_MAX = 3 * CODEC_BLOCK };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float values[COUNT_MAX], told[COUNT_MAX], again[COUNT_MAX];
    static uint8_t bytes[8 * COUNT_MAX];
    if (size < 3)
        return 0;
    struct error error;
    const enum codec codec = data[0] % CODEC_COUNT;
    const size_t count = 1 + (size_t)(data[1] | data[2] << 8) % COUNT_MAX;
    const struct text run = {(const char *)data + 3, size - 3};
    if (codec_decode(codec, run, values, count, &error) < 0 || !codec_is_sane(values, count))
        return 0;
    const float threshold = codec_threshold(values, count, 0.5);
    const size_t written = codec_encode(codec, threshold, values, count, bytes, told);
    ASSERT(codec_decode(codec, (struct text){(const char *)bytes, written}, again, count, &error) ==
           0);
    for (size_t i = 0; i < count; i++)
        ASSERT(told[i] == again[i]);
    return 0;
}
