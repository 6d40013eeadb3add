/* Codec: f16, by the machine's own instructions where it has them. */
#include "exchange/codec_internal.h"

#include <math.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { EXPONENT_MAX = 100 };

/* To the nearest, ties to even; sizes below 65520 only. */
static uint16_t half_of(float value)
{
    const uint32_t bits = bits_of(value), size = bits & 0x7fffffffu;
    const uint32_t normal = (size + 0xfffu + (size >> 13 & 1) - (112u << 23)) >> 13;
    /* From 0.5 to 1 floats are 2^-24 apart, as halves are below 2^-14. */
    const uint32_t small = bits_of(float_of(size) + 0.5F) - bits_of(0.5F);
    return (uint16_t)((size < 113u << 23 ? small : normal) | (bits >> 16 & 0x8000u));
}

static float float_of_half(uint16_t half)
{
    const uint32_t size = half & 0x7fffu;
    const float small = (float)size * 0x1p-24F;
    const uint32_t bits = size < 0x400u ? bits_of(small) : (size << 13) + (112u << 23);
    return float_of(bits | (uint32_t)(half & 0x8000u) << 16);
}

static void halves_of_any(const float *restrict values, float scale, uint16_t *restrict out,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = half_of(values[i] * scale);
}

static void floats_of_any(const uint16_t *restrict halves, float back, float *restrict out,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = float_of_half(halves[i]) * back;
}

#ifdef __x86_64__
/* The same numbers by the machine's own instructions. */
__attribute__((target("avx2,f16c"))) static void
halves_of_avx2(const float *restrict values, float scale, uint16_t *restrict out, size_t count)
{
    const size_t whole = count & ~(size_t)7;
    const __m256 factor = _mm256_set1_ps(scale);
    for (size_t i = 0; i < whole; i += 8) {
        const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
        const __m128i halves = _mm256_cvtps_ph(scaled, _MM_FROUND_TO_NEAREST_INT);
        memcpy(out + i, &halves, sizeof(halves));
    }
    halves_of_any(values + whole, scale, out + whole, count - whole);
}

__attribute__((target("avx2,f16c"))) static void
floats_of_avx2(const uint16_t *restrict halves, float back, float *restrict out, size_t count)
{
    const size_t whole = count & ~(size_t)7;
    const __m256 factor = _mm256_set1_ps(back);
    for (size_t i = 0; i < whole; i += 8) {
        __m128i eight;
        memcpy(&eight, halves + i, sizeof(eight));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_cvtph_ps(eight), factor));
    }
    floats_of_any(halves + whole, back, out + whole, count - whole);
}
#endif

static void halves_of(const float *values, float scale, uint16_t *out, size_t count)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) { /* every such machine has f16c */
        halves_of_avx2(values, scale, out, count);
        return;
    }
#endif
    halves_of_any(values, scale, out, count);
}

static void floats_of(const uint16_t *halves, float back, float *out, size_t count)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        floats_of_avx2(halves, back, out, count);
        return;
    }
#endif
    floats_of_any(halves, back, out, count);
}

/* So that the largest comes to lie between 2^14 and 2^15: small blocks keep their digits. */
static int8_t block_exponent(const float *values, size_t count)
{
    const float largest = largest_size(values, count);
    int exponent = 0;
    if (largest <= 0)
        return 0;
    frexpf(largest, &exponent);
    exponent = 15 - exponent;
    if (exponent > EXPONENT_MAX)
        exponent = EXPONENT_MAX;
    return (int8_t)(exponent < -EXPONENT_MAX ? -EXPONENT_MAX : exponent);
}

size_t codec_f16_encode(float threshold, const float *values, size_t count, uint8_t *out,
                        float *out_decoded)
{
    (void)threshold;
    uint8_t *at = out;
    for (size_t first = 0; first < count; first += CODEC_BLOCK) {
        const size_t size = block_size(count, first);
        const int8_t exponent = block_exponent(values + first, size);
        const float scale = ldexpf(1, exponent), back = ldexpf(1, -exponent);
        uint16_t halves[CODEC_BLOCK];
        halves_of(values + first, scale, halves, size);
        floats_of(halves, back, out_decoded + first, size);
        *at++ = (uint8_t)exponent;
        memcpy(at, halves, 2 * size);
        at += 2 * size;
    }
    return (size_t)(at - out);
}

bool codec_f16_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    if (size != 2 * count + block_count(count))
        return false;
    for (size_t first = 0; first < count; first += CODEC_BLOCK) {
        const size_t width = block_size(count, first);
        const int8_t exponent = (int8_t)*bytes++;
        const float back = ldexpf(1, -exponent);
        uint16_t halves[CODEC_BLOCK];
        memcpy(halves, bytes, 2 * width);
        floats_of(halves, back, out_values + first, width);
        bytes += 2 * width;
    }
    return true;
}
