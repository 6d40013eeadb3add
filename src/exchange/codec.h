/*
 * Codec: how a run of floats travels: whole, rounded, by sign, or only the largest of them.
 *
 *     f32    4 bytes each, as they are; where most are exactly 0 the others only, by place
 *     f16    2 bytes each, and one exponent for each block
 *     bf16   2 bytes each
 *     int8   1 byte each, and one scale for each block
 *     1-bit  the signs, and the mean of their sizes for each block
 *     top-k  those whose size reaches a threshold, by place and value (f16)
 *
 * Encoding tells what the other end will decode: who sends keeps the rest for the next time
 * (compressor.h). Decoding takes any bytes. Pure; the bytes of each are described in codec.c.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum codec {
    CODEC_F32,
    CODEC_F16,
    CODEC_BF16,
    CODEC_INT8,
    CODEC_1BIT,
    CODEC_TOPK,
    CODEC_COUNT,
};

enum { CODEC_BLOCK = 1024, CODEC_RUN_MAX = 32 << 10 };

const char *codec_name(enum codec codec); /* "f32", "f16", "bf16", "int8", "1bit", "topk" */
MUST_CHECK int codec_parse(struct text name, enum codec *out_codec, struct error *error);

/* Bytes that a run of `count` floats takes at most. */
size_t codec_size_max(enum codec codec, size_t count);
/* Bytes a float takes on the average; `density` is the share that top-k keeps. */
double codec_bytes_per_float(enum codec codec, double density);

/*
 * Encodes 1 to CODEC_RUN_MAX finite floats into `out` (of codec_size_max) and returns the bytes
 * written. `out_decoded` (may be `values`) is what a decoder will find. `threshold` is top-k's.
 */
size_t codec_encode(enum codec codec, float threshold, const float *values, size_t count,
                    uint8_t *out, float *out_decoded);

/*
 * A run that travels as f32, written by the places of what is not 0, without loss: the bytes
 * written into `out` (of codec_size_max), or 0 where that would not halve it. Other runs travel as
 * they lie in memory.
 */
size_t codec_sparse_encode(const float *values, size_t count, uint8_t *out);
/* Bytes of any number of floats that travel so, less each run's head. */
size_t codec_sparse_bytes(const float *values, size_t count);

/* CORRUPT unless `bytes` are exactly a run of `count` floats. What comes out may be any number. */
MUST_CHECK int codec_decode(enum codec codec, struct text bytes, float *out_values, size_t count,
                            struct error *error);

/* The size that about `density` of the floats reach, by a sample of them that depends on nothing
 * else; above 0. */
float codec_threshold(const float *values, size_t count, double density);

/* Whether all are finite and below 2^20: no parameter of a model that learns comes near, and sums
 * of such values stay finite. */
bool codec_is_sane(const float *values, size_t count);
/* The same of floats as they travel, copied meanwhile. */
bool codec_copy_sane(const void *bytes, float *restrict out_values, size_t count);
/* The same of values - base, which `out` is set to. */
bool codec_subtract_sane(const float *restrict values, const float *restrict base,
                         float *restrict out, size_t count);
