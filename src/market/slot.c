#include "market/slot.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static const char *const hours_names[SLOT_PER_DAY] = {"00-06", "06-12", "12-18", "18-24"};
static const char *const words[SLOT_PER_DAY] = {"night", "morning", "afternoon", "evening"};

static int64_t divide_down(int64_t value, int64_t by)
{
    return value / by - (value % by < 0 ? 1 : 0);
}

int64_t slot_index(int64_t ms, int64_t offset_ms)
{
    return divide_down(ms + offset_ms, SLOT_MS);
}

int64_t slot_start_ms(int64_t index, int64_t offset_ms)
{
    return index * SLOT_MS - offset_ms;
}

int slot_of_day(int64_t index)
{
    return (int)(index - divide_down(index, SLOT_PER_DAY) * SLOT_PER_DAY);
}

const char *slot_hours_name(int of_day)
{
    ASSERT(of_day >= 0 && of_day < SLOT_PER_DAY);
    return hours_names[of_day];
}

const char *slot_word(int of_day)
{
    ASSERT(of_day >= 0 && of_day < SLOT_PER_DAY);
    return words[of_day];
}

struct date {
    int64_t year;
    int64_t month; /* 1..12 */
    int64_t day;   /* 1..31 */
};

/*
 * The proleptic Gregorian calendar in eras of 400 years (146 097 days) that start on 1 March, so
 * that the leap day is the last of its year.
 */
static struct date date_of_day(int64_t days)
{
    days += 719468; /* from 0000-03-01 to 1970-01-01 */
    const int64_t era = divide_down(days, 146097);
    const int64_t in_era = days - era * 146097;
    const int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * in_year + 2) / 153;
    const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    return (struct date){.year = year_of_era + era * 400 + (month <= 2 ? 1 : 0),
                         .month = month,
                         .day = in_year - (153 * month_from_march + 2) / 5 + 1};
}

static int64_t day_of_date(struct date date)
{
    const int64_t year = date.year - (date.month <= 2 ? 1 : 0);
    const int64_t era = divide_down(year, 400);
    const int64_t year_of_era = year - era * 400;
    const int64_t month_from_march = date.month > 2 ? date.month - 3 : date.month + 9;
    const int64_t in_year = (153 * month_from_march + 2) / 5 + date.day - 1;
    const int64_t in_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + in_year;
    return era * 146097 + in_era - 719468;
}

const char *slot_format(int64_t index, char out[SLOT_TEXT_SIZE])
{
    ASSERT(index >= SLOT_INDEX_MIN && index <= SLOT_INDEX_MAX);
    const struct date date = date_of_day(divide_down(index, SLOT_PER_DAY));
    const int length = snprintf(out, SLOT_TEXT_SIZE, "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "/%s",
                                date.year, date.month, date.day, hours_names[slot_of_day(index)]);
    ASSERT(length > 0 && length < SLOT_TEXT_SIZE);
    return out;
}

static bool read_digits(struct text text, size_t at, size_t count, int64_t *out)
{
    int64_t value = 0;
    for (size_t i = at; i < at + count; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (text.data[i] - '0');
    }
    *out = value;
    return true;
}

/* "2026-11-14": a day that the calendar has. */
static bool read_day(struct text text, int64_t *out_day)
{
    struct date date;
    if (text.size != 10 || text.data[4] != '-' || text.data[7] != '-' ||
        !read_digits(text, 0, 4, &date.year) || !read_digits(text, 5, 2, &date.month) ||
        !read_digits(text, 8, 2, &date.day) || date.month < 1 || date.month > 12)
        return false;
    const int64_t day = day_of_date(date);
    const struct date back = date_of_day(day);
    *out_day = day;
    return back.year == date.year && back.month == date.month && back.day == date.day;
}

int slot_parse(struct text text, int64_t today, int64_t *out_index, struct error *error)
{
    enum { HOURS_SIZE = 5, DAY_SIZE = 10 };
    int64_t day = divide_down(today, SLOT_PER_DAY);
    struct text hours = text;
    if (text.size == DAY_SIZE + 1 + HOURS_SIZE && text.data[DAY_SIZE] == '/' &&
        read_day((struct text){text.data, DAY_SIZE}, &day))
        hours = (struct text){text.data + DAY_SIZE + 1, HOURS_SIZE};
    for (int of_day = 0; of_day < SLOT_PER_DAY; of_day++)
        if (text_equal(hours, text_of(hours_names[of_day]))) {
            *out_index = day * SLOT_PER_DAY + of_day;
            return 0;
        }
    return error_set(error, ERROR_INVALID,
                     "\"%.*s\" is not a slot: write 00-06, 06-12, 12-18 or 18-24, or a day before "
                     "it, as in 2026-11-14/18-24",
                     (int)(text.size < 40 ? text.size : 40), text.data);
}
