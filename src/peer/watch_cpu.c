/* CPU that is not ours. */
#include "base/text.h"
#include "peer/watch.h"

#include <stdlib.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)

enum {
    STAT_SIZE = 512, /* the first line is all that is read */
    /* The kernel counts whole ticks of 10 ms: less says more of them than of programs. */
    SPAN_MS_MIN = 100,
};

/* cpu  user nice system idle iowait irq softirq steal: all but idle, iowait and steal; proc(5). */
static int64_t busy_ms(const char *root)
{
    char text[STAT_SIZE];
    if (!watch_read(root, "/proc/stat", text, sizeof(text)) ||
        !text_starts_with(text_of(text), TEXT("cpu ")))
        return GUARD_UNKNOWN;
    int64_t ticks = 0;
    char *at = text + 4;
    for (int i = 0; i < 7; i++) {
        const int64_t value = strtoll(at, &at, 10);
        if (i != 3 && i != 4)
            ticks += value;
    }
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

int64_t watch_cpu_read(struct watch_cpu *watch, int64_t ours_ms, int64_t now_ns)
{
    const int64_t span_ms = (now_ns - watch->read_ns) / NS_PER_MS;
    if (watch->has_read && span_ms < SPAN_MS_MIN)
        return watch->cpu_milli;
    const int64_t busy = busy_ms(watch->root);
    if (busy < 0)
        return GUARD_UNKNOWN;
    if (!watch->has_read)
        watch->cpu_milli = GUARD_UNKNOWN;
    else if (ours_ms >= watch->ours_ms) {
        const int64_t others_ms = (busy - watch->busy_ms) - (ours_ms - watch->ours_ms);
        watch->cpu_milli = others_ms > 0 ? others_ms * 1000 / span_ms : 0;
    }
    watch->has_read = true;
    watch->read_ns = now_ns;
    watch->busy_ms = busy;
    watch->ours_ms = ours_ms;
    return watch->cpu_milli;
}
