/*
 * Codec: the bytes of a run of floats, all little-endian. A block is CODEC_BLOCK floats, the last
 * may have fewer.
 *
 *     f32    f32 for each
 *     f16    by block: i8 exponent, then u16 for each: the half-precision value of x * 2^exponent
 *     bf16   u16 for each: the upper half of its f32, rounded
 *     int8   by block: f32 scale, then i8 for each: x / scale, rounded
 *     1-bit  by block: f32 scale, then a bit for each, the lowest first, set where x is below 0
 *     top-k  u32 kept, u16 place for each of them, ascending, then their values as a run of f16
 *
 * The loops have no branches that depend on values, so that the compiler makes vectors of them.
 */
#include "exchange/codec.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

_Static_assert(CODEC_RUN_MAX <= 1 << 16, "a place in a run has 16 bits");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they lie");

enum { EXPONENT_MAX = 100, SAMPLE_MAX = 4096 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float largest_size(const float *values, size_t count)
{
    /* Sizes are in the order of their bits, which the compiler compares several at a time. */
    int32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t size = (int32_t)(bits_of(values[i]) & 0x7fffffffu);
        largest = size > largest ? size : largest;
    }
    return float_of((uint32_t)largest);
}

static size_t block_count(size_t count)
{
    return (count + CODEC_BLOCK - 1) / CODEC_BLOCK;
}

static size_t block_size(size_t count, size_t first)
{
    return count - first < CODEC_BLOCK ? count - first : CODEC_BLOCK;
}

/* ---- f32 ------------------------------------------------------------------------------------- */

static size_t f32_encode(float threshold, const float *values, size_t count, uint8_t *out,
                         float *out_decoded)
{
    (void)threshold;
    memcpy(out, values, count * sizeof(float));
    memmove(out_decoded, values, count * sizeof(float));
    return count * sizeof(float);
}

static bool f32_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    if (size != count * sizeof(float))
        return false;
    memcpy(out_values, bytes, size);
    return true;
}

/* ---- f16 ------------------------------------------------------------------------------------- */

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

static size_t f16_encode(float threshold, const float *values, size_t count, uint8_t *out,
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

static bool f16_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
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

/* ---- bf16 ------------------------------------------------------------------------------------ */

static size_t bf16_encode(float threshold, const float *values, size_t count, uint8_t *out,
                          float *out_decoded)
{
    (void)threshold;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(values[i]);
        const uint16_t upper = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
        memcpy(out + 2 * i, &upper, sizeof(upper));
        out_decoded[i] = float_of((uint32_t)upper << 16);
    }
    return 2 * count;
}

static bool bf16_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    if (size != 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint16_t upper;
        memcpy(&upper, bytes + 2 * i, sizeof(upper));
        out_values[i] = float_of((uint32_t)upper << 16);
    }
    return true;
}

/* ---- int8 ------------------------------------------------------------------------------------ */

static size_t int8_encode(float threshold, const float *values, size_t count, uint8_t *out,
                          float *out_decoded)
{
    (void)threshold;
    uint8_t *at = out;
    for (size_t first = 0; first < count; first += CODEC_BLOCK) {
        const size_t size = block_size(count, first);
        const float scale = largest_size(values + first, size) / 127;
        /* A scale so small that its inverse is not finite: zeros, and the rest stays for later. */
        const float inverse = scale > 0x1p-120F ? 1 / scale : 0;
        memcpy(at, &scale, sizeof(scale));
        at += sizeof(scale);
        for (size_t i = 0; i < size; i++) {
            const float scaled = values[first + i] * inverse;
            const int8_t rounded = (int8_t)(scaled + copysignf(0.5F, scaled));
            at[i] = (uint8_t)rounded;
            out_decoded[first + i] = (float)rounded * scale;
        }
        at += size;
    }
    return (size_t)(at - out);
}

static bool int8_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    if (size != count + sizeof(float) * block_count(count))
        return false;
    for (size_t first = 0; first < count; first += CODEC_BLOCK) {
        const size_t width = block_size(count, first);
        float scale;
        memcpy(&scale, bytes, sizeof(scale));
        bytes += sizeof(scale);
        for (size_t i = 0; i < width; i++)
            out_values[first + i] = (float)(int8_t)bytes[i] * scale;
        bytes += width;
    }
    return true;
}

/* ---- 1-bit ----------------------------------------------------------------------------------- */

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

static size_t onebit_encode(float threshold, const float *values, size_t count, uint8_t *out,
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

static bool onebit_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
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

/* ---- top-k ----------------------------------------------------------------------------------- */

static size_t topk_encode(float threshold, const float *values, size_t count, uint8_t *out,
                          float *out_decoded)
{
    float kept_values[CODEC_RUN_MAX];
    uint16_t places[CODEC_RUN_MAX];
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        places[kept] = (uint16_t)i;
        kept_values[kept] = values[i];
        kept += fabsf(values[i]) >= threshold;
    }
    memset(out_decoded, 0, count * sizeof(float));
    memcpy(out, &kept, sizeof(kept));
    memcpy(out + sizeof(kept), places, kept * sizeof(*places));
    const size_t head = sizeof(kept) + kept * sizeof(*places);
    if (kept == 0)
        return head;
    const size_t size = f16_encode(threshold, kept_values, kept, out + head, kept_values);
    for (size_t i = 0; i < kept; i++)
        out_decoded[places[i]] = kept_values[i];
    return head + size;
}

static bool topk_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    float kept_values[CODEC_RUN_MAX];
    uint32_t kept;
    if (size < sizeof(kept))
        return false;
    memcpy(&kept, bytes, sizeof(kept));
    if (kept > count || size - sizeof(kept) < kept * sizeof(uint16_t))
        return false;
    const uint8_t *places = bytes + sizeof(kept);
    const size_t head = sizeof(kept) + kept * sizeof(uint16_t);
    if (!f16_decode(bytes + head, size - head, kept_values, kept))
        return false;
    memset(out_values, 0, count * sizeof(float));
    int64_t before = -1;
    for (size_t i = 0; i < kept; i++) {
        uint16_t place;
        memcpy(&place, places + 2 * i, sizeof(place));
        if (place <= before || place >= count)
            return false;
        out_values[place] = kept_values[i];
        before = place;
    }
    return true;
}

static int larger_first(const void *left, const void *right)
{
    const float a = *(const float *)left, b = *(const float *)right;
    return (a < b) - (a > b);
}

float codec_threshold(const float *values, size_t count, double density)
{
    float sizes[SAMPLE_MAX];
    const size_t sample = count < SAMPLE_MAX ? count : SAMPLE_MAX;
    ASSERT(count > 0 && density > 0 && density <= 1);
    for (size_t i = 0; i < sample; i++)
        sizes[i] = fabsf(values[(size_t)((double)i * (double)count / (double)sample)]);
    qsort(sizes, sample, sizeof(*sizes), larger_first);
    const size_t kept = (size_t)ceil(density * (double)sample);
    const float threshold = sizes[kept > 0 ? kept - 1 : 0];
    return threshold > 0 ? threshold : 0x1p-126F;
}

/* ---- The table ------------------------------------------------------------------------------- */

struct codec_ops {
    const char *name;
    size_t (*encode)(float threshold, const float *values, size_t count, uint8_t *out,
                     float *out_decoded);
    bool (*decode)(const uint8_t *bytes, size_t size, float *out_values, size_t count);
    size_t bits; /* of one float; top-k: of one that is kept */
    size_t block_bytes;
};

static const struct codec_ops codecs[CODEC_COUNT] = {
    [CODEC_F32] = {"f32", f32_encode, f32_decode, 32, 0},
    [CODEC_F16] = {"f16", f16_encode, f16_decode, 16, 1},
    [CODEC_BF16] = {"bf16", bf16_encode, bf16_decode, 16, 0},
    [CODEC_INT8] = {"int8", int8_encode, int8_decode, 8, 4},
    [CODEC_1BIT] = {"1bit", onebit_encode, onebit_decode, 1, 4},
    [CODEC_TOPK] = {"topk", topk_encode, topk_decode, 32, 1},
};

const char *codec_name(enum codec codec)
{
    ASSERT(codec < CODEC_COUNT);
    return codecs[codec].name;
}

int codec_parse(struct text name, enum codec *out_codec, struct error *error)
{
    for (int i = 0; i < CODEC_COUNT; i++)
        if (text_equal(name, text_of(codecs[i].name))) {
            *out_codec = (enum codec)i;
            return 0;
        }
    return error_set(error, ERROR_INVALID,
                     "\"%.*s\" is no way to compress: f32, f16, bf16, int8, 1bit or topk",
                     (int)(name.size < 32 ? name.size : 32), name.data);
}

size_t codec_size_max(enum codec codec, size_t count)
{
    const struct codec_ops *ops = &codecs[codec];
    const size_t head = codec == CODEC_TOPK ? sizeof(uint32_t) : 0;
    return head + block_count(count) * (ops->block_bytes + (CODEC_BLOCK * ops->bits + 7) / 8);
}

double codec_bytes_per_float(enum codec codec, double density)
{
    const struct codec_ops *ops = &codecs[codec];
    const double bytes = (double)ops->bits / 8 + (double)ops->block_bytes / CODEC_BLOCK;
    return codec == CODEC_TOPK ? density * bytes : bytes;
}

size_t codec_encode(enum codec codec, float threshold, const float *values, size_t count,
                    uint8_t *out, float *out_decoded)
{
    ASSERT(codec < CODEC_COUNT && count > 0 && count <= CODEC_RUN_MAX);
    const size_t size = codecs[codec].encode(threshold, values, count, out, out_decoded);
    ASSERT(size <= codec_size_max(codec, count));
    return size;
}

int codec_decode(enum codec codec, struct text bytes, float *out_values, size_t count,
                 struct error *error)
{
    ASSERT(codec < CODEC_COUNT && count > 0 && count <= CODEC_RUN_MAX);
    if (!codecs[codec].decode((const uint8_t *)bytes.data, bytes.size, out_values, count))
        return error_set(error, ERROR_CORRUPT, "data: %zu bytes are no run of %zu floats as %s",
                         bytes.size, count, codecs[codec].name);
    return 0;
}

/* Without branches, so that it is done at the speed of memory. */
#define TOO_LARGE 0x49800000u /* 2^20; what is not finite lies above it */

bool codec_copy_sane(const void *bytes, float *restrict out_values, size_t count)
{
    const uint8_t *at = bytes;
    uint32_t is_beyond = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, at + i * sizeof(bits), sizeof(bits));
        is_beyond |= (bits & 0x7fffffffu) >= TOO_LARGE;
        memcpy(out_values + i, &bits, sizeof(bits));
    }
    return !is_beyond;
}

bool codec_is_sane(const float *values, size_t count)
{
    uint32_t is_beyond = 0;
    for (size_t i = 0; i < count; i++)
        is_beyond |= (bits_of(values[i]) & 0x7fffffffu) >= TOO_LARGE;
    return !is_beyond;
}
