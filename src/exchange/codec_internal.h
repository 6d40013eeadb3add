/*
 * Inside of the codecs: what their files share, and the table of codec.c calls of them.
 */
#pragma once

#include "exchange/codec.h"

#include <string.h>

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float largest_size(const float *values, size_t count)
{
    /* Sizes are in the order of their bits, which the compiler compares several at a time. */
    int32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t size = (int32_t)(bits_of(values[i]) & 0x7fffffffu);
        largest = size > largest ? size : largest;
    }
    return float_of((uint32_t)largest);
}

static inline size_t block_count(size_t count)
{
    return (count + CODEC_BLOCK - 1) / CODEC_BLOCK;
}

static inline size_t block_size(size_t count, size_t first)
{
    return count - first < CODEC_BLOCK ? count - first : CODEC_BLOCK;
}

size_t codec_f16_encode(float threshold, const float *values, size_t count, uint8_t *out,
                        float *out_decoded);
bool codec_f16_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count);
size_t codec_onebit_encode(float threshold, const float *values, size_t count, uint8_t *out,
                           float *out_decoded);
bool codec_onebit_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count);
size_t codec_topk_encode(float threshold, const float *values, size_t count, uint8_t *out,
                         float *out_decoded);
bool codec_topk_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count);
bool codec_sparse_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count);
