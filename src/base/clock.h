/*
 * Clock: where time comes from. Real in programs, virtual in tests and the simulator.
 *
 * Monotonic nanoseconds measure spans; UTC milliseconds since 1970 name instants.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*monotonic_ns)(const struct clock *clock);
    int64_t (*utc_ms)(const struct clock *clock);
};

/* The machine's clock. */
extern const struct clock clock_system;

struct virtual_clock {
    struct clock clock; /* pass &virtual_clock.clock */
    int64_t now_ns;
    int64_t utc_base_ms;
};

void virtual_clock_init(struct virtual_clock *virtual_clock, int64_t utc_base_ms);
void virtual_clock_advance(struct virtual_clock *virtual_clock, int64_t span_ns);

static inline int64_t clock_monotonic_ns(const struct clock *clock)
{
    return clock->monotonic_ns(clock);
}

static inline int64_t clock_utc_ms(const struct clock *clock)
{
    return clock->utc_ms(clock);
}

/* "2026-11-15T08:44:55.120Z"; `out` has room for CLOCK_TEXT_SIZE bytes. */
enum { CLOCK_TEXT_SIZE = 32 };
void clock_format_utc(int64_t utc_ms, char out[CLOCK_TEXT_SIZE]);
