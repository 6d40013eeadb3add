/*
 * Fixed: base-2 logarithms and powers in integers, so that prices are equal bit for bit anywhere.
 *
 * A logarithm is a signed 64-bit number with 32 bits after the point (Q32).
 */
#pragma once

#include <stdint.h>

#define FIXED_Q32_ONE (INT64_C(1) << 32)
#define FIXED_Q16_ONE (INT64_C(1) << 16)

/* Rounded down to 2^-32; value > 0. */
int64_t fixed_log2_q32(unsigned __int128 value);

/* 2^exponent to the nearest whole number, halves up; INT64_MAX from 2^63 on. */
int64_t fixed_exp2(int64_t exponent_q32);

/* 2^exponent with 16 bits after the point. */
int64_t fixed_exp2_q16(int64_t exponent_q32);

/* value x numerator / denominator, truncated; the product is 128 bits wide. */
int64_t fixed_scale(int64_t value, int64_t numerator, int64_t denominator);

int64_t fixed_clamp(int64_t value, int64_t minimum, int64_t maximum);
