/*
 * Codec: the bytes of a run of floats, all little-endian. A block is CODEC_BLOCK floats, the last
 * may have fewer.
 *
 *     f32    f32 for each; or, where that takes no more than half the bytes, u32 kept, u16 place
 * for each of them, ascending, then f32 for each: the others are 0 f16    by block: i8 exponent,
 * then u16 for each: the half-precision value of x * 2^exponent bf16   u16 for each: the upper half
 * of its f32, rounded int8   by block: f32 scale, then i8 for each: x / scale, rounded 1-bit  by
 * block: f32 scale, then a bit for each, the lowest first, set where x is below 0 top-k  u32 kept,
 * u16 place for each of them, ascending, then their values as a run of f16
 *
 * The loops have no branches that depend on values, so that the compiler makes vectors of them.
 */
#include "exchange/codec.h"

#include "base/assert.h"
#include "exchange/codec_internal.h"

#include <math.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they lie");

/* ---- f32 ------------------------------------------------------------------------------------- */

static size_t f32_encode(float threshold, const float *values, size_t count, uint8_t *out,
                         float *out_decoded)
{
    (void)threshold;
    memmove(out_decoded, values, count * sizeof(float));
    const size_t sparse = codec_sparse_encode(values, count, out);
    if (sparse > 0)
        return sparse;
    memcpy(out, values, count * sizeof(float));
    return count * sizeof(float);
}

static bool f32_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    if (size != count * sizeof(float))
        return codec_sparse_decode(bytes, size, out_values, count);
    memcpy(out_values, bytes, size);
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
    [CODEC_F16] = {"f16", codec_f16_encode, codec_f16_decode, 16, 1},
    [CODEC_BF16] = {"bf16", bf16_encode, bf16_decode, 16, 0},
    [CODEC_INT8] = {"int8", int8_encode, int8_decode, 8, 4},
    [CODEC_1BIT] = {"1bit", codec_onebit_encode, codec_onebit_decode, 1, 4},
    [CODEC_TOPK] = {"topk", codec_topk_encode, codec_topk_decode, 32, 1},
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
