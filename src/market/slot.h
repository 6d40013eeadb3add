/*
 * Slot: the six-hour parts of a day that prices are set for.
 *
 * A slot has an index counted from 1970-01-01 00:00 in the market's time, which is UTC plus the
 * operator's fixed offset; indices before that are negative. Written "2026-11-14/18-24".
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

#define SLOT_MS            (INT64_C(6) * 3600 * 1000)
#define SLOT_OFFSET_MS_MAX (INT64_C(14) * 3600 * 1000) /* either way */
#define SLOT_INDEX_MAX     INT64_C(11731587)           /* the last of the year 9999 */
#define SLOT_INDEX_MIN     (-INT64_C(2878112))         /* the first of the year 0 */

enum { SLOT_PER_DAY = 4, SLOT_TEXT_SIZE = 32 };

int64_t slot_index(int64_t ms, int64_t offset_ms);
int64_t slot_start_ms(int64_t index, int64_t offset_ms);
int slot_of_day(int64_t index); /* 0..3 */

const char *slot_hours_name(int of_day); /* "00-06", "06-12", "12-18", "18-24" */
const char *slot_word(int of_day);       /* "night", "morning", "afternoon", "evening" */

/* Returns `out`. */
const char *slot_format(int64_t index, char out[SLOT_TEXT_SIZE]);

/* "18-24" is the one of the day `today` is in; "2026-11-14/18-24" any other. INVALID. */
MUST_CHECK int slot_parse(struct text text, int64_t today, int64_t *out_index, struct error *error);
