#include "market/window.h"

int window_check(struct window window, int64_t now_ms, struct error *error)
{
    if (window.span_count > WINDOW_SPANS_MAX)
        return error_set(error, ERROR_INVALID, "windows: at most %d spans", WINDOW_SPANS_MAX);
    for (size_t i = 0; i < window.span_count; i++) {
        const struct span *span = &window.spans[i];
        if (span->open_ms < 0 || span->close_ms > MARKET_TIME_MS_MAX ||
            span->close_ms <= span->open_ms)
            return error_set(error, ERROR_INVALID,
                             "windows: span %zu does not open before it closes", i + 1);
        if (i > 0 && span->open_ms <= window.spans[i - 1].close_ms)
            return error_set(error, ERROR_INVALID,
                             "windows: span %zu does not come after the one before", i + 1);
    }
    if (window.span_count > 0 && window.spans[window.span_count - 1].close_ms <= now_ms)
        return error_set(error, ERROR_INVALID, "windows: all of them are past");
    return 0;
}

/* The first span that closes after `at_ms`; span_count: none. */
static size_t find_span(struct window window, int64_t at_ms)
{
    size_t low = 0, high = window.span_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (window.spans[middle].close_ms > at_ms)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool window_is_open(struct window window, int64_t at_ms)
{
    return window_open_until_ms(window, at_ms) > at_ms;
}

int64_t window_open_until_ms(struct window window, int64_t at_ms)
{
    if (window.span_count == 0)
        return INT64_MAX;
    const size_t at = find_span(window, at_ms);
    return at < window.span_count && window.spans[at].open_ms <= at_ms ? window.spans[at].close_ms
                                                                       : at_ms;
}

int64_t window_next_change_ms(struct window window, int64_t at_ms)
{
    const size_t at = find_span(window, at_ms);
    if (at == window.span_count)
        return INT64_MAX;
    const struct span *span = &window.spans[at];
    return span->open_ms > at_ms ? span->open_ms : span->close_ms;
}

int64_t window_open_ms(struct window window, int64_t from_ms, int64_t until_ms)
{
    if (until_ms <= from_ms)
        return 0;
    if (window.span_count == 0)
        return until_ms - from_ms;
    int64_t open_ms = 0;
    for (size_t i = find_span(window, from_ms); i < window.span_count; i++) {
        const struct span *span = &window.spans[i];
        if (span->open_ms >= until_ms)
            break;
        const int64_t opens_ms = span->open_ms > from_ms ? span->open_ms : from_ms;
        const int64_t closes_ms = span->close_ms < until_ms ? span->close_ms : until_ms;
        open_ms += closes_ms - opens_ms;
    }
    return open_ms;
}
