/* Memory: what is free, and how long programs wait for it (pressure stall information). */
#include "base/scope.h"
#include "peer/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

/* Waiting for 150 ms in 2 s; windows of 2 s need no privilege. Documentation/accounting/psi. */
#define TRIGGER "some 150000 2000000"

enum { MEMINFO_SIZE = 512, PRESSURE_SIZE = 256, SPAN_MS_MIN = 100 };

static int64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : GUARD_UNKNOWN;
}

void watch_memory_read(struct watch_memory *watch, int64_t now_ns, int64_t *out_free_bytes,
                       int64_t *out_stall_milli)
{
    char text[MEMINFO_SIZE];
    *out_free_bytes = *out_stall_milli = GUARD_UNKNOWN;
    if (watch_read(watch->root, "/proc/meminfo", text, MEMINFO_SIZE)) {
        const int64_t kib = number_after(text, "MemAvailable:");
        if (kib >= 0)
            *out_free_bytes = kib << 10;
    }
    if (!watch_read(watch->root, "/proc/pressure/memory", text, PRESSURE_SIZE))
        return;
    const int64_t stall_us = number_after(text, "total=");
    if (stall_us < 0)
        return;
    const int64_t span_ms = (now_ns - watch->read_ns) / NS_PER_MS;
    if (watch->has_read && span_ms >= SPAN_MS_MIN)
        watch->stall_milli = (stall_us - watch->stall_us) / span_ms;
    if (!watch->has_read || span_ms >= SPAN_MS_MIN) {
        watch->has_read = true;
        watch->read_ns = now_ns;
        watch->stall_us = stall_us;
    }
    *out_stall_milli = watch->stall_milli;
}

int watch_memory_open_trigger(const char *root)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/proc/pressure/memory", root) >= (int)sizeof(path))
        return -1;
    AUTO_FD int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || write(fd, TRIGGER, sizeof(TRIGGER)) < 0)
        return -1;
    return TAKE_FD(fd);
}
