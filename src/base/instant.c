#include "base/instant.h"

#include "base/date.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define DAY_MS INT64_C(86400000)

static bool take(struct text *rest, char wanted)
{
    if (!rest->size || rest->data[0] != wanted)
        return false;
    rest->data++;
    rest->size--;
    return true;
}

static bool take_digits(struct text *rest, size_t count, int maximum, int *out)
{
    int value = 0;
    if (rest->size < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!isdigit((unsigned char)rest->data[i]))
            return false;
        value = value * 10 + (rest->data[i] - '0');
    }
    rest->data += count;
    rest->size -= count;
    *out = value;
    return value <= maximum;
}

/* Up to milliseconds; finer digits are refused, not rounded. */
static bool take_fraction(struct text *rest, int *out_ms)
{
    int ms = 0, scale = 100;
    if (!rest->size || !isdigit((unsigned char)rest->data[0]))
        return false;
    for (; rest->size && isdigit((unsigned char)rest->data[0]); scale /= 10) {
        const int digit = rest->data[0] - '0';
        if (scale == 0 && digit != 0)
            return false;
        ms += digit * scale;
        rest->data++;
        rest->size--;
    }
    *out_ms = ms;
    return true;
}

static bool take_time(struct text *rest, int64_t *out_ms)
{
    int hour, minute, second = 0, ms = 0;
    if (!take_digits(rest, 2, 23, &hour) || !take(rest, ':') || !take_digits(rest, 2, 59, &minute))
        return false;
    if (take(rest, ':') && !take_digits(rest, 2, 59, &second))
        return false;
    if (take(rest, '.') && !take_fraction(rest, &ms))
        return false;
    *out_ms = ((hour * INT64_C(60) + minute) * 60 + second) * 1000 + ms;
    return true;
}

static bool take_zone(struct text *rest, int64_t *out_ms)
{
    *out_ms = 0;
    if (take(rest, 'Z') || take(rest, 'z'))
        return true;
    const bool is_west = rest->size && rest->data[0] == '-';
    int hour, minute;
    if ((!take(rest, '+') && !take(rest, '-')) || !take_digits(rest, 2, 23, &hour) ||
        !take(rest, ':') || !take_digits(rest, 2, 59, &minute))
        return false;
    *out_ms = (hour * INT64_C(60) + minute) * 60000 * (is_west ? -1 : 1);
    return true;
}

int instant_parse(struct text text, int64_t *out_ms, struct error *error)
{
    struct text rest = text_trim(text);
    struct date date = {0};
    int64_t time_ms, zone_ms;
    if (!take_digits(&rest, 4, DATE_YEAR_MAX - 1, &date.year) || !take(&rest, '-') ||
        !take_digits(&rest, 2, 12, &date.month) || !take(&rest, '-') ||
        !take_digits(&rest, 2, 31, &date.day) || date.year < 1970 || !date_is_valid(date) ||
        (!take(&rest, 'T') && !take(&rest, 't') && !take(&rest, ' ')) ||
        !take_time(&rest, &time_ms) || !take_zone(&rest, &zone_ms) || rest.size)
        return error_set(error, ERROR_INVALID,
                         "\"%.*s\" is not an instant; write it like 2026-11-20T18:00Z or "
                         "2026-11-20T19:00+01:00",
                         (int)(text.size < 40 ? text.size : 40), text.data);
    *out_ms = date_to_days(date) * DAY_MS + time_ms - zone_ms;
    return 0;
}

const char *instant_format(int64_t ms, char out[INSTANT_TEXT_SIZE])
{
    const int64_t day = (ms - (ms < 0 ? DAY_MS - 1 : 0)) / DAY_MS;
    const struct date date = date_of_days(day);
    const int64_t of_day = ms - day * DAY_MS;
    const int length = snprintf(
        out, INSTANT_TEXT_SIZE, "%04d-%02d-%02dT%02" PRId64 ":%02" PRId64 ":%02" PRId64, date.year,
        date.month, date.day, of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60);
    if (of_day % 1000)
        snprintf(out + length, INSTANT_TEXT_SIZE - (size_t)length, ".%03" PRId64 "Z",
                 of_day % 1000);
    else
        snprintf(out + length, INSTANT_TEXT_SIZE - (size_t)length, "Z");
    return out;
}
