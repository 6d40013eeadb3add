/*
 * Units: amounts as people write them, and back.
 *
 *     share     "50%" or "0.5"                -> thousandths (500)
 *     bytes     "2GiB", "512 MiB", "4096"     -> bytes; kB, MB, GB are powers of ten
 *     duration  "30s", "1h30m", "250ms"       -> milliseconds; a bare number is seconds
 *     credits   "1.5 credits", "2", "-0.25"   -> microcredits, exact to the sixth digit
 *     cores     "2", "0.5", "50%"             -> thousandths of a core
 *     bandwidth "100Mbit", "1.5 Gbit", "20"   -> kbit per second; a bare number is Mbit
 *     factor    "0.9", "1.25", "90%"          -> thousandths, of any size
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

MUST_CHECK int units_parse_share(struct text text, int64_t *out_milli, struct error *error);
MUST_CHECK int units_parse_bytes(struct text text, int64_t *out_bytes, struct error *error);
MUST_CHECK int units_parse_duration(struct text text, int64_t *out_ms, struct error *error);
/* The same with a sign before it: "-5h30m", "+2h". */
MUST_CHECK int units_parse_signed_duration(struct text text, int64_t *out_ms, struct error *error);
MUST_CHECK int units_parse_credits(struct text text, int64_t *out_micro, struct error *error);
MUST_CHECK int units_parse_cores(struct text text, int64_t *out_milli, struct error *error);
MUST_CHECK int units_parse_bandwidth(struct text text, int64_t *out_kbit, struct error *error);
MUST_CHECK int units_parse_factor(struct text text, int64_t *out_milli, struct error *error);

enum { UNITS_TEXT_SIZE = 40 };

/* "1.5 GiB", "1h 5m", "0.000583 credits": short, for people. Each returns `out`. */
const char *units_format_bytes(int64_t bytes, char out[UNITS_TEXT_SIZE]);
const char *units_format_duration(int64_t ms, char out[UNITS_TEXT_SIZE]);
/* With what is counted in. */
const char *units_format_amount(int64_t micro, const char *unit, char out[UNITS_TEXT_SIZE]);
const char *units_format_credits(int64_t micro, char out[UNITS_TEXT_SIZE]);
