/*
 * Window: when an offer is open, as UTC spans. Weekly grids and time zones are the shell's matter.
 *
 * Spans are sorted, do not touch each other and open before they close: open_ms <= t < close_ms.
 * No spans at all means always open.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instants end with the year 9999, so that adding any span to one cannot overflow. */
#define MARKET_TIME_MS_MAX INT64_C(253402300799999)

enum { WINDOW_SPANS_MAX = 512 };

struct window {
    const struct span *spans;
    size_t span_count;
};

/* INVALID unless the spans are as above, at most WINDOW_SPANS_MAX, and some time is left after
 * `now_ms`. */
MUST_CHECK int window_check(struct window window, int64_t now_ms, struct error *error);

bool window_is_open(struct window window, int64_t at_ms);
/* When the span around `at_ms` closes; INT64_MAX: never. `at_ms` itself when it is closed then. */
int64_t window_open_until_ms(struct window window, int64_t at_ms);
/* The first instant after `at_ms` at which it opens or closes; INT64_MAX: none. */
int64_t window_next_change_ms(struct window window, int64_t at_ms);
/* How long it is open between two instants. */
int64_t window_open_ms(struct window window, int64_t from_ms, int64_t until_ms);
