#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic int level_max = LOG_INFO;
static const char *const level_names[LOG_LEVEL_COUNT] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    atomic_store(&level_max, (int)level);
}

int log_level_parse(struct text name, enum log_level *out_level, struct error *error)
{
    for (int level = 0; level < LOG_LEVEL_COUNT; level++) {
        if (text_equal(name, text_of(level_names[level]))) {
            *out_level = (enum log_level)level;
            return 0;
        }
    }
    return error_set(error, ERROR_INVALID,
                     "log level \"%.*s\" is not one of error, warn, info, debug", (int)name.size,
                     name.data);
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    if ((int)level > atomic_load(&level_max))
        return;
    char line[1024];
    char stamp[CLOCK_TEXT_SIZE];
    clock_format_utc(clock_utc_ms(&clock_system), stamp);
    int size = snprintf(line, sizeof(line), "%s %s %s ", stamp, level_names[level], event);
    if (size < 0)
        return;

    va_list args;
    va_start(args, format);
    const int added = vsnprintf(line + size, sizeof(line) - (size_t)size, format, args);
    va_end(args);
    if (added < 0)
        return;
    size = size + added < (int)sizeof(line) - 1 ? size + added : (int)sizeof(line) - 2;
    for (int i = 0; i < size; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[size++] = '\n';
    /* One write, so that lines of several threads and processes do not mix. */
    if (write(STDERR_FILENO, line, (size_t)size) < 0)
        return; /* nowhere left to say so */
}
