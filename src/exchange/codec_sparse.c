/* Codec: some of the floats, by their places. */
#include "base/assert.h"
#include "exchange/codec_internal.h"

#include <math.h>
#include <stdlib.h>

_Static_assert(CODEC_RUN_MAX <= 1 << 16, "a place in a run has 16 bits");

enum { SAMPLE_MAX = 4096, ZEROS_SAMPLE = 64 };

/* ---- f32, most of them 0 --------------------------------------------------------------------- */

/* So that runs without zeros, which are most, cost nothing. */
static bool may_be_sparse(const float *values, size_t count)
{
    const size_t sample = count < ZEROS_SAMPLE ? count : ZEROS_SAMPLE;
    size_t zeros = 0;
    for (size_t i = 0; i < sample; i++)
        zeros += bits_of(values[i * count / sample]) == 0;
    return 2 * zeros >= sample;
}

size_t codec_sparse_encode(const float *values, size_t count, uint8_t *out)
{
    float kept_values[CODEC_RUN_MAX];
    uint16_t places[CODEC_RUN_MAX];
    uint32_t kept = 0;
    ASSERT(count > 0 && count <= CODEC_RUN_MAX);
    if (!may_be_sparse(values, count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        places[kept] = (uint16_t)i;
        kept_values[kept] = values[i];
        kept += bits_of(values[i]) != 0; /* -0 too is kept */
    }
    const size_t head = sizeof(kept) + kept * sizeof(*places);
    const size_t size = head + kept * sizeof(float);
    if (2 * size > count * sizeof(float))
        return 0;
    memcpy(out, &kept, sizeof(kept));
    memcpy(out + sizeof(kept), places, kept * sizeof(*places));
    memcpy(out + head, kept_values, kept * sizeof(float));
    return size;
}

size_t codec_sparse_bytes(const float *values, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += bits_of(values[i]) != 0;
    return kept * (sizeof(uint16_t) + sizeof(float));
}

/* Puts the values at their places among zeros: false unless those ascend. */
static bool spread(const uint8_t *places, const float *kept_values, size_t kept, float *out_values,
                   size_t count)
{
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

bool codec_sparse_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
{
    float kept_values[CODEC_RUN_MAX];
    uint32_t kept;
    if (size < sizeof(kept))
        return false;
    memcpy(&kept, bytes, sizeof(kept));
    const size_t head = sizeof(kept) + (size_t)kept * sizeof(uint16_t);
    if (kept > count || size != head + kept * sizeof(float) || 2 * size > count * sizeof(float))
        return false;
    memcpy(kept_values, bytes + head, kept * sizeof(float));
    return spread(bytes + sizeof(kept), kept_values, kept, out_values, count);
}

/* ---- top-k ----------------------------------------------------------------------------------- */

size_t codec_topk_encode(float threshold, const float *values, size_t count, uint8_t *out,
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
    ASSERT(kept <= count);
    memset(out_decoded, 0, count * sizeof(float));
    memcpy(out, &kept, sizeof(kept));
    memcpy(out + sizeof(kept), places, kept * sizeof(*places));
    const size_t head = sizeof(kept) + kept * sizeof(*places);
    if (kept == 0)
        return head;
    const size_t size = codec_f16_encode(threshold, kept_values, kept, out + head, kept_values);
    for (size_t i = 0; i < kept; i++)
        out_decoded[places[i]] = kept_values[i];
    return head + size;
}

bool codec_topk_decode(const uint8_t *bytes, size_t size, float *out_values, size_t count)
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
    if (!codec_f16_decode(bytes + head, size - head, kept_values, kept))
        return false;
    return spread(places, kept_values, kept, out_values, count);
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
