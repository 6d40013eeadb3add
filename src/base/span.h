/*
 * Span: a stretch of time between two UTC instants, the second not included.
 */
#pragma once

#include <stdint.h>

struct span {
    int64_t open_ms;
    int64_t close_ms; /* > open_ms */
};
