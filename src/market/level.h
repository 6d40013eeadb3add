/*
 * Level: a size, a time or a share as one of 256 keys of a book. Never falls as the value rises.
 */
#pragma once

#include "market/slot.h"

#include <stdint.h>

enum { LEVEL_COUNT = 256, LEVEL_SIZE_MAX = 249 };

/* Eight levels to an octave: 0 for 0, 1 for 1, 9 for 2, 249 from 2^31 on. */
static inline uint8_t level_of(int64_t value)
{
    if (value <= 0)
        return 0;
    if (value > INT32_MAX)
        return LEVEL_SIZE_MAX;
    const int octave = 31 - __builtin_clz((uint32_t)value);
    const uint32_t eighth = ((uint32_t)value << (31 - octave)) >> 28 & 7;
    return (uint8_t)(1 + 8 * octave + (int)eighth);
}

/* The larger the value, the lower. */
static inline uint8_t level_below(int64_t value)
{
    return (uint8_t)(UINT8_MAX - level_of(value));
}

static inline uint8_t level_of_bytes(int64_t bytes)
{
    return level_of(bytes >> 20);
}

static inline uint8_t level_of_run(int64_t ms)
{
    return level_of(ms / 60000);
}

/* Thousandths from 0 to 1000: each of its own from 800 on, where most wishes are. */
static inline uint8_t level_of_share(int64_t milli)
{
    if (milli < 500)
        return (uint8_t)(milli <= 0 ? 0 : 1 + milli / 50);
    return (uint8_t)(milli < 800 ? 11 + (milli - 500) / 7 : milli < 1000 ? milli - 746 : 254);
}

/* Slots of six hours since `began_ms`; 255: for ever. */
static inline uint8_t level_of_instant(int64_t began_ms, int64_t instant_ms)
{
    if (instant_ms == INT64_MAX)
        return UINT8_MAX;
    const int64_t slots = (instant_ms - began_ms) / SLOT_MS + 1;
    return (uint8_t)(slots < 1 ? 1 : slots > UINT8_MAX - 1 ? UINT8_MAX - 1 : slots);
}
