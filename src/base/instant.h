/*
 * Instant: a point in time as RFC 3339 writes it.
 *
 *     2026-11-20T18:00Z, 2026-11-20T18:00:30.250Z, 2026-11-20T19:00+01:00
 *
 * Seconds may be left out. The zone may not: a wall time without one is a different instant for
 * each reader.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

/* UTC milliseconds, of the years 1970 to 9998. */
MUST_CHECK int instant_parse(struct text text, int64_t *out_ms, struct error *error);

enum { INSTANT_TEXT_SIZE = 32 };

/* In UTC, to the second, or to the millisecond when it is not a whole one. Returns `out`. */
const char *instant_format(int64_t ms, char out[INSTANT_TEXT_SIZE]);
