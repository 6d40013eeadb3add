#include "base/schedule.h"

#include "base/assert.h"
#include "base/date.h"
#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>

enum { DAY_SECONDS = 86400, WEEK_DAYS = 7, ALL_DAYS = 127 };

static const char *const day_names[WEEK_DAYS] = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
};
static const char *const day_words[WEEK_DAYS] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

struct cursor {
    struct text text;
    size_t at;
};

static char peek(const struct cursor *cursor)
{
    if (cursor->at >= cursor->text.size)
        return '\0';
    return cursor->text.data[cursor->at];
}

static void skip_spaces(struct cursor *cursor)
{
    while (peek(cursor) == ' ' || peek(cursor) == '\t')
        cursor->at++;
}

static bool take(struct cursor *cursor, char wanted)
{
    if (cursor->at >= cursor->text.size || cursor->text.data[cursor->at] != wanted)
        return false;
    cursor->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        c = (char)(c + ('a' - 'A'));
    return c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* The word, number or sign at the cursor, for a message; not removed. */
static struct text next_word(const struct cursor *cursor)
{
    enum { WORD_SIZE_MAX = 24 };
    size_t size = 0;
    while (cursor->at + size < cursor->text.size && size < WORD_SIZE_MAX) {
        const char c = cursor->text.data[cursor->at + size];
        if (!is_letter(c) && !is_digit(c) && c != ':')
            break;
        size++;
    }
    const bool is_sign = size == 0 && cursor->at < cursor->text.size;
    return (struct text){cursor->text.data + cursor->at, is_sign ? 1 : size};
}

static int refuse(const struct cursor *cursor, const char *wanted, struct error *error)
{
    const struct text word = next_word(cursor);
    if (word.size == 0)
        return error_set(error, ERROR_INVALID, "the schedule ends where %s is missing", wanted);
    if (word.size == 1 && (word.data[0] < ' ' || word.data[0] > '~'))
        return error_set(error, ERROR_INVALID, "at character %zu of the schedule: expected %s",
                         cursor->at + 1, wanted);
    return error_set(error, ERROR_INVALID,
                     "at character %zu of the schedule: \"" TEXT_FORMAT "\" where %s is expected",
                     cursor->at + 1, TEXT_ARGS(word), wanted);
}

static bool is_word(struct text text, const char *word)
{
    const size_t size = strlen(word);
    for (size_t i = 0; i < size && i < text.size; i++)
        if (lower(text.data[i]) != lower(word[i]))
            return false;
    return text.size == size;
}

static int refuse_day(const struct cursor *cursor, struct text word, struct error *error)
{
    char hint[NEAREST_HINT_SIZE];
    struct nearest nearest;
    nearest_init(&nearest, word);
    for (size_t i = 0; i < WEEK_DAYS; i++)
        nearest_offer(&nearest, day_words[i]);
    for (size_t i = 0; i < WEEK_DAYS; i++)
        nearest_offer(&nearest, day_names[i]);
    nearest_offer(&nearest, "always");
    nearest_offer(&nearest, "now");
    nearest_offer(&nearest, "daily");
    return error_set(error, ERROR_INVALID,
                     "at character %zu of the schedule: \"" TEXT_FORMAT
                     "\" is not a day of the week%s",
                     cursor->at + 1, TEXT_ARGS(word), nearest_hint(&nearest, hint));
}

static int take_day(struct cursor *cursor, unsigned *out_day, struct error *error)
{
    skip_spaces(cursor);
    if (!is_letter(peek(cursor)))
        return refuse(cursor, "a day such as Mon", error);
    const struct text word = next_word(cursor);
    for (unsigned i = 0; i < WEEK_DAYS; i++)
        if (is_word(word, day_words[i]) || is_word(word, day_names[i])) {
            cursor->at += word.size;
            *out_day = i;
            return 0;
        }
    return refuse_day(cursor, word, error);
}

/* "Mon-Fri,Sun" or "daily", up to the times. */
static int take_days(struct cursor *cursor, unsigned *out_days, struct error *error)
{
    unsigned days = 0;
    if (is_word(next_word(cursor), "daily")) {
        cursor->at += strlen("daily");
        *out_days = ALL_DAYS;
        return 0;
    }
    do {
        unsigned first, last;
        if (take_day(cursor, &first, error) < 0)
            return -1;
        last = first;
        skip_spaces(cursor);
        if (take(cursor, '-') && take_day(cursor, &last, error) < 0)
            return -1;
        /* "Fri-Mon" goes on over the end of the week. */
        for (unsigned day = first;; day = (day + 1) % WEEK_DAYS) {
            days |= 1U << day;
            if (day == last)
                break;
        }
        skip_spaces(cursor);
    } while (take(cursor, ','));
    *out_days = days;
    return 0;
}

static int take_number(struct cursor *cursor, size_t digits_max, int maximum, const char *what,
                       int *out_number, struct error *error)
{
    struct cursor ahead = *cursor;
    int number = 0;
    while (is_digit(peek(&ahead)) && ahead.at - cursor->at < digits_max)
        number = number * 10 + (ahead.text.data[ahead.at++] - '0');
    if (ahead.at == cursor->at || is_digit(peek(&ahead)) || number > maximum)
        return refuse(cursor, what, error);
    *cursor = ahead;
    *out_number = number;
    return 0;
}

/* The minutes or seconds after a colon, where there is one. */
static int take_sixtieth(struct cursor *cursor, const char *what, int *out_number,
                         struct error *error)
{
    if (!take(cursor, ':'))
        return 0;
    return take_number(cursor, 2, 59, what, out_number, error);
}

/* "18", "18:00", "18:00:30" or "24:00", in seconds. */
static int take_time(struct cursor *cursor, int *out_s, struct error *error)
{
    const char *what = "a time such as 18:00";
    int hour = 0, minute = 0, second = 0;
    skip_spaces(cursor);
    const struct cursor begin = *cursor;
    if (take_number(cursor, 2, 24, what, &hour, error) < 0 ||
        take_sixtieth(cursor, what, &minute, error) < 0 ||
        take_sixtieth(cursor, what, &second, error) < 0 || (hour == 24 && minute + second > 0))
        return refuse(&begin, what, error);
    *out_s = hour * 3600 + minute * 60 + second;
    return 0;
}

static int take_dash(struct cursor *cursor, const char *what, struct error *error)
{
    skip_spaces(cursor);
    if (!take(cursor, '-'))
        return refuse(cursor, what, error);
    return 0;
}

static int add_part(const struct cursor *cursor, struct schedule *schedule,
                    struct schedule_part part, struct error *error)
{
    if (schedule->part_count == SCHEDULE_PART_MAX)
        return error_set(error, ERROR_INVALID,
                         "at character %zu of the schedule: more than %d spans of time",
                         cursor->at + 1, SCHEDULE_PART_MAX);
    schedule->parts[schedule->part_count++] = part;
    return 0;
}

static int take_weekly(struct cursor *cursor, struct schedule *schedule, struct error *error)
{
    struct schedule_part part = {0};
    if (take_days(cursor, &part.days, error) < 0)
        return -1;
    do {
        skip_spaces(cursor);
        const struct cursor begin = *cursor;
        if (take_time(cursor, &part.from_s, error) < 0 ||
            take_dash(cursor, "the - of a span such as 18:00-08:00", error) < 0 ||
            take_time(cursor, &part.until_s, error) < 0)
            return -1;
        if (part.from_s == DAY_SECONDS || part.from_s == part.until_s)
            return error_set(error, ERROR_INVALID,
                             "at character %zu of the schedule: a span that never opens; a whole "
                             "day is 00:00-24:00",
                             begin.at + 1);
        if (part.until_s < part.from_s)
            part.until_s += DAY_SECONDS;
        if (add_part(&begin, schedule, part, error) < 0)
            return -1;
        skip_spaces(cursor);
    } while (take(cursor, ','));
    return 0;
}

/* "2026-11-20 18:00", as a wall time. */
static int take_moment(struct cursor *cursor, int64_t *out_wall_s, struct error *error)
{
    const char *what = "a date such as 2026-11-20";
    struct date date = {0};
    int time_s;
    skip_spaces(cursor);
    const struct cursor begin = *cursor;
    if (take_number(cursor, 4, DATE_YEAR_MAX, what, &date.year, error) < 0 || !take(cursor, '-') ||
        take_number(cursor, 2, 99, what, &date.month, error) < 0 || !take(cursor, '-') ||
        take_number(cursor, 2, 99, what, &date.day, error) < 0 || date.year < 1970 ||
        date.year == DATE_YEAR_MAX)
        return refuse(&begin, what, error);
    if (!date_is_valid(date))
        return error_set(error, ERROR_INVALID,
                         "at character %zu of the schedule: %04d-%02d-%02d is no day", begin.at + 1,
                         date.year, date.month, date.day);
    if (!take(cursor, 'T') && peek(cursor) != ' ')
        return refuse(cursor, "a time after the date, such as 18:00,", error);
    if (take_time(cursor, &time_s, error) < 0)
        return -1;
    *out_wall_s = date_to_days(date) * DAY_SECONDS + time_s;
    return 0;
}

static int take_once(struct cursor *cursor, struct schedule *schedule, struct error *error)
{
    struct schedule_part part = {0};
    const struct cursor begin = *cursor;
    if (take_moment(cursor, &part.from_wall_s, error) < 0 ||
        take_dash(cursor, "the - before the closing time", error) < 0 ||
        take_moment(cursor, &part.until_wall_s, error) < 0)
        return -1;
    if (part.until_wall_s <= part.from_wall_s)
        return error_set(error, ERROR_INVALID,
                         "at character %zu of the schedule: a span that ends before it begins",
                         begin.at + 1);
    return add_part(&begin, schedule, part, error);
}

static int take_zone(struct cursor *cursor, struct schedule *schedule, struct error *error)
{
    const struct text name = {cursor->text.data + cursor->at, cursor->text.size - cursor->at};
    if (zone_check_name(name, error) < 0)
        return error_wrap(error, "at character %zu of the schedule", cursor->at + 1);
    return text_copy(name, schedule->zone, sizeof(schedule->zone), error);
}

int schedule_parse(struct text text, struct schedule *out_schedule, struct error *error)
{
    struct cursor cursor = {text_trim(text), 0};
    struct schedule schedule = {0};
    if (cursor.text.size == 0)
        return error_set(error, ERROR_INVALID,
                         "the schedule is empty; write always, or like Mon-Fri 18:00-08:00");
    if (is_word(next_word(&cursor), "always") || is_word(next_word(&cursor), "now")) {
        cursor.at += next_word(&cursor).size;
    } else {
        do {
            skip_spaces(&cursor);
            const int result = is_digit(peek(&cursor)) ? take_once(&cursor, &schedule, error)
                                                       : take_weekly(&cursor, &schedule, error);
            if (result < 0)
                return -1;
            skip_spaces(&cursor);
        } while (take(&cursor, ';'));
    }
    skip_spaces(&cursor);
    if (is_letter(peek(&cursor))) {
        if (take_zone(&cursor, &schedule, error) < 0)
            return -1;
    } else if (cursor.at < cursor.text.size) {
        return refuse(&cursor, "; or the end", error);
    }
    *out_schedule = schedule;
    return 0;
}

/* Text being written into a fixed field that is known to be long enough. */
struct writer {
    char *out;
    size_t size;
};

static void put(struct writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(writer->out + writer->size, SCHEDULE_TEXT_SIZE - writer->size, format, arguments);
    va_end(arguments);
    ASSERT(length >= 0 && writer->size + (size_t)length < SCHEDULE_TEXT_SIZE);
    writer->size += (size_t)length;
}

static void put_days(struct writer *writer, unsigned days)
{
    const char *between = "";
    for (unsigned day = 0; day < WEEK_DAYS; day++) {
        if (!(days & 1U << day))
            continue;
        unsigned last = day;
        while (last + 1 < WEEK_DAYS && (days & 1U << (last + 1)))
            last++;
        put(writer, "%s%s", between, day_words[day]);
        if (last > day)
            put(writer, "-%s", day_words[last]);
        between = ",";
        day = last;
    }
}

static void put_time(struct writer *writer, int64_t time_s)
{
    put(writer, "%02d:%02d", (int)(time_s / 3600), (int)(time_s / 60 % 60));
    if (time_s % 60 > 0)
        put(writer, ":%02d", (int)(time_s % 60));
}

static void put_moment(struct writer *writer, int64_t wall_s)
{
    const struct date date = date_of_days(wall_s / DAY_SECONDS);
    put(writer, "%04d-%02d-%02d ", date.year, date.month, date.day);
    put_time(writer, wall_s % DAY_SECONDS);
}

const char *schedule_format(const struct schedule *schedule, char out[SCHEDULE_TEXT_SIZE])
{
    struct writer writer = {out, 0};
    out[0] = '\0';
    if (schedule->part_count == 0)
        put(&writer, "always");
    for (size_t i = 0; i < schedule->part_count; i++) {
        const struct schedule_part *part = &schedule->parts[i];
        put(&writer, "%s", i ? "; " : "");
        if (part->days) {
            const bool is_next_day = part->until_s > DAY_SECONDS;
            put_days(&writer, part->days);
            put(&writer, " ");
            put_time(&writer, part->from_s);
            put(&writer, "-");
            put_time(&writer, is_next_day ? part->until_s - DAY_SECONDS : part->until_s);
        } else {
            put_moment(&writer, part->from_wall_s);
            put(&writer, " - ");
            put_moment(&writer, part->until_wall_s);
        }
    }
    if (schedule->zone[0])
        put(&writer, " %s", schedule->zone);
    return out;
}

bool schedule_is_weekly(const struct schedule *schedule)
{
    for (size_t i = 0; i < schedule->part_count; i++)
        if (schedule->parts[i].days)
            return true;
    return false;
}
