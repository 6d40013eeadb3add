/* Codec: 1-bit. */
#include "exchange/codec_internal.h"

#include <math.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static float mean_size(const float *values, size_t count)
{
    /* Apart, so that one addition does not wait for the other. */
    enum { LANES = 8 };
    double sums[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += (double)fabsf(values[i + lane]);
    for (; i < count; i++)
        sum += (double)fabsf(values[i]);
    for (size_t lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return (float)(sum / (double)count);
}

static size_t sign_bytes(size_t count)
{
    size_t size = 0;
    for (size_t first = 0; first < count; first += CODEC_BLOCK)
        size += (block_size(count, first) + 7) / 8;
    return size;
}

/* The sign bits of four floats, by the four bits that say which are below 0. */
#define SIGNS_OF(b)                                                                                \
    {                                                                                              \
        (uint32_t)((b)&1) << 31, (uint32_t)((b) >> 1 & 1) << 31, (uint32_t)((b) >> 2 & 1) << 31,   \
            (uint32_t)((b) >> 3 & 1) << 31                                                         \
    }
static const uint32_t signs_of_four[16][4] = {
    SIGNS_OF(0),  SIGNS_OF(1),  SIGNS_OF(2),  SIGNS_OF(3),  SIGNS_OF(4),  SIGNS_OF(5),
    SIGNS_OF(6),  SIGNS_OF(7),  SIGNS_OF(8),  SIGNS_OF(9),  SIGNS_OF(10), SIGNS_OF(11),
    SIGNS_OF(12), SIGNS_OF(13), SIGNS_OF(14), SIGNS_OF(15),
};

static void signs_decode(const uint8_t *signs, float scale, float *restrict out_values,
                         size_t count)
{
    const size_t whole = count & ~(size_t)7;
    const uint32_t bits = bits_of(scale);
    for (size_t i = 0; i < whole; i += 8) {
        const uint32_t *low = signs_of_four[signs[i / 8] & 15];
        const uint32_t *high = signs_of_four[signs[i / 8] >> 4];
        uint32_t eight[8];
        for (int k = 0; k < 4; k++) {
            eight[k] = bits ^ low[k];
            eight[4 + k] = bits ^ high[k];
        }
        memcpy(out_values + i, eight, sizeof(eight));
    }
    for (size_t i = whole; i < count; i++)
        out_values[i] = signs[i / 8] >> (i % 8) & 1 ? -scale : scale;
}

static void signs_encode(const float *values, uint8_t *out_signs, size_t count)
{
    const size_t whole = count & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
#ifdef __x86_64__
        const __m128 zero = _mm_setzero_ps();
        const int low = _mm_movemask_ps(_mm_cmplt_ps(_mm_loadu_ps(values + i), zero));
        const int high = _mm_movemask_ps(_mm_cmplt_ps(_mm_loadu_ps(values + i + 4), zero));
        out_signs[i / 8] = (uint8_t)(low | high << 4);
#else
        uint32_t byte = 0;
        for (uint32_t k = 0; k < 8; k++)
            byte |= (uint32_t)(values[i + k] < 0) << k;
        out_signs[i / 8] = (uint8_t)byte;
#endif
    }
    if (whole < count)
        out_signs[whole / 8] = 0;
    for (size_t i = whole; i < count; i++)
        out_signs[i / 8] |= (uint8_t)((values[i] < 0) << (i % 8));
}

size_t codec_onebit_encode(float threshold, const float *values, size_t count, uint8_t *out,
                           float *out_decoded)
{
    (void)threshold;
    uint8_t *at = out;
    for (size_t first = 0; first < count; first += CODEC_BLOCK) {
        const size_t size = block_size(count, first), width = (size + 7) / 8;
        const float scale = mean_size(values + first, size);
        memcpy(at, &scale, sizeof(scale));
        at += sizeof(scale);
        signs_encode(values + first, at, size);
        signs_decode(at, scale, out_decoded + first, size);
        at += width;
    }
    return (size_t)(at - out);
}

bool codec_onebit_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    if (size != sign_bytes(count) + sizeof(float) * block_count(count))
        return false;
    for (size_t first = 0; first < count; first += CODEC_BLOCK) {
        const size_t width = block_size(count, first);
        float scale;
        memcpy(&scale, bytes, sizeof(scale));
        signs_decode(bytes + sizeof(scale), scale, out_values + first, width);
        bytes += sizeof(scale) + (width + 7) / 8;
    }
    return true;
}
