#include "base/clock.h"

#include "base/assert.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t system_monotonic_ns(const struct clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_MONOTONIC);
}

static int64_t system_utc_ms(const struct clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME) / 1000000;
}

const struct clock clock_system = {system_monotonic_ns, system_utc_ms};

static int64_t virtual_monotonic_ns(const struct clock *clock)
{
    return ((const struct virtual_clock *)(const void *)clock)->now_ns;
}

static int64_t virtual_utc_ms(const struct clock *clock)
{
    const struct virtual_clock *virtual_clock = (const struct virtual_clock *)(const void *)clock;
    return virtual_clock->utc_base_ms + virtual_clock->now_ns / 1000000;
}

void virtual_clock_init(struct virtual_clock *virtual_clock, int64_t utc_base_ms)
{
    *virtual_clock = (struct virtual_clock){
        .clock = {virtual_monotonic_ns, virtual_utc_ms},
        .utc_base_ms = utc_base_ms,
    };
}

void virtual_clock_advance(struct virtual_clock *virtual_clock, int64_t span_ns)
{
    ASSERT(span_ns >= 0);
    virtual_clock->now_ns += span_ns;
}

void clock_format_utc(int64_t utc_ms, char out[CLOCK_TEXT_SIZE])
{
    const int64_t millis = ((utc_ms % 1000) + 1000) % 1000;
    const time_t seconds = (time_t)((utc_ms - millis) / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char day[24];
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out, CLOCK_TEXT_SIZE, "%s.%03dZ", day, (int)millis);
}
