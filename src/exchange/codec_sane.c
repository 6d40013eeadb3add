/*
 * Codec: what a model's numbers may be.
 *
 * The passes have no branches, so that they are done at the speed of memory, and are built twice:
 * for every processor, and for those with AVX2.
 */
#include "exchange/codec_internal.h"

#define INLINE    static inline __attribute__((always_inline))
#define TOO_LARGE 0x49800000u /* 2^20; what is not finite lies above it */

INLINE bool codec_copy_sane_any(const void *bytes, float *restrict out_values, size_t count)
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

INLINE bool codec_subtract_sane_any(const float *restrict values, const float *restrict base,
                                    float *restrict out, size_t count)
{
    uint32_t is_beyond = 0;
    for (size_t i = 0; i < count; i++) {
        const float difference = values[i] - base[i];
        is_beyond |= (bits_of(difference) & 0x7fffffffu) >= TOO_LARGE;
        out[i] = difference;
    }
    return !is_beyond;
}

INLINE bool codec_is_sane_any(const float *values, size_t count)
{
    uint32_t is_beyond = 0;
    for (size_t i = 0; i < count; i++)
        is_beyond |= (bits_of(values[i]) & 0x7fffffffu) >= TOO_LARGE;
    return !is_beyond;
}

/* name() runs name_any(). */
#ifdef __x86_64__
#define BUILT_TWICE(name, parameters, arguments)                                                   \
    __attribute__((target("avx2"))) static bool name##_avx2 parameters                             \
    {                                                                                              \
        return name##_any arguments;                                                               \
    }                                                                                              \
    bool name parameters                                                                           \
    {                                                                                              \
        return __builtin_cpu_supports("avx2") ? name##_avx2 arguments : name##_any arguments;      \
    }
#else
#define BUILT_TWICE(name, parameters, arguments)                                                   \
    bool name parameters                                                                           \
    {                                                                                              \
        return name##_any arguments;                                                               \
    }
#endif

BUILT_TWICE(codec_copy_sane, (const void *bytes, float *restrict out_values, size_t count),
            (bytes, out_values, count))
BUILT_TWICE(codec_subtract_sane,
            (const float *restrict values, const float *restrict base, float *restrict out,
             size_t count),
            (values, base, out, count))
BUILT_TWICE(codec_is_sane, (const float *values, size_t count), (values, count))
