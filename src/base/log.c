#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int level_max = LOG_INFO;
static const char *const level_names[LOG_LEVEL_COUNT] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    atomic_store(&level_max, (int)level);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load(&level_max);
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

enum { LINE_SIZE = 1024, FORMAT_SIZE = 512 };

/* The arguments in the format, with `mark` where the format itself has a quote. */
static int render(char mark, const char *format, va_list args, char out[LINE_SIZE])
{
    char marked[FORMAT_SIZE];
    size_t size = 0;
    for (; format[size] && size < FORMAT_SIZE - 1; size++)
        marked[size] = format[size];
    marked[size] = '\0';
    for (size_t i = 0; i < size; i++)
        if (marked[i] == '"')
            marked[i] = mark;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* only its quotes were changed */
    const int made = vsnprintf(out, LINE_SIZE, marked, args);
#pragma GCC diagnostic pop
    return made < LINE_SIZE ? made : LINE_SIZE - 1;
}

/*
 * Quotes of the format bound a value, quotes inside a value are its own and must be escaped. Drawn
 * with two different marks, the two texts differ exactly where the format has a quote, whatever
 * bytes the values have.
 */
static size_t escape(const char *one, const char *other, size_t size, char *out, size_t out_size)
{
    size_t used = 0;
    bool is_inside = false;
    for (size_t i = 0; i < size && used + 3 < out_size; i++) {
        const unsigned char byte = (unsigned char)one[i];
        if (one[i] != other[i]) {
            is_inside = !is_inside;
            out[used++] = '"';
            continue;
        }
        if (is_inside && (byte == '"' || byte == '\\'))
            out[used++] = '\\';
        out[used++] = (char)(byte ? byte : '?');
    }
    if (is_inside) /* the value was cut */
        out[used++] = '"';
    return used;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    if ((int)level > atomic_load(&level_max))
        return;
    char one[LINE_SIZE], other[LINE_SIZE], line[2 * LINE_SIZE];
    char stamp[CLOCK_TEXT_SIZE];
    clock_format_utc(clock_utc_ms(&clock_system), stamp);
    const int head = snprintf(line, LINE_SIZE, "%s %s %.200s ", stamp, level_names[level], event);
    if (head < 0)
        return;
    va_list args;
    va_start(args, format);
    const int one_size = render('\1', format, args, one);
    va_end(args);
    va_start(args, format);
    const int other_size = render('\2', format, args, other);
    va_end(args);
    if (one_size < 0 || one_size != other_size)
        return;
    size_t size = (size_t)head;
    size += escape(one, other, (size_t)one_size, line + size, sizeof(line) - size - 1);
    line[size] = '\0';
    text_make_plain(line); /* a machine's words, say, on the operator's terminal */
    size = strlen(line);
    line[size++] = '\n';
    /* One write, so that lines of several threads and processes do not mix. */
    if (write(STDERR_FILENO, line, size) < 0)
        return; /* nowhere left to say so */
}
