#include "base/date.h"
#include "base/zone_internal.h"

enum { SECONDS_PER_DAY = 86400, RULE_HOURS_MAX = 167, OFFSET_HOURS_MAX = 24 };

/* What is left of the rule; every take_ function removes what it read, or returns false. */
struct cursor {
    struct text rest;
};

static bool take_char(struct cursor *cursor, char wanted)
{
    if (cursor->rest.size == 0 || cursor->rest.data[0] != wanted)
        return false;
    cursor->rest = (struct text){cursor->rest.data + 1, cursor->rest.size - 1};
    return true;
}

static bool is_digit(struct text text)
{
    return text.size > 0 && text.data[0] >= '0' && text.data[0] <= '9';
}

static bool take_number(struct cursor *cursor, int minimum, int maximum, int *out_number)
{
    int number = 0;
    if (!is_digit(cursor->rest))
        return false;
    while (is_digit(cursor->rest) && number <= maximum) {
        number = number * 10 + (cursor->rest.data[0] - '0');
        cursor->rest = (struct text){cursor->rest.data + 1, cursor->rest.size - 1};
    }
    *out_number = number;
    return number >= minimum && number <= maximum;
}

/* "CEST" or "<+1030>". The name itself is of no use here. */
static bool take_name(struct cursor *cursor)
{
    const bool is_quoted = take_char(cursor, '<');
    size_t size = 0;
    for (; size < cursor->rest.size; size++) {
        const char c = cursor->rest.data[size];
        const bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        const bool is_sign = c == '+' || c == '-' || (c >= '0' && c <= '9');
        if (!is_letter && !(is_quoted && is_sign))
            break;
    }
    cursor->rest = (struct text){cursor->rest.data + size, cursor->rest.size - size};
    return size >= 3 && (!is_quoted || take_char(cursor, '>'));
}

/* "5", "-10:30" or "26:00:00", in seconds. */
static bool take_time(struct cursor *cursor, int hours_max, int64_t *out_s)
{
    const bool is_negative = take_char(cursor, '-');
    int hours = 0, minutes = 0, seconds = 0;
    if (!is_negative)
        take_char(cursor, '+');
    if (!take_number(cursor, 0, hours_max, &hours))
        return false;
    if (take_char(cursor, ':')) {
        if (!take_number(cursor, 0, 59, &minutes))
            return false;
        if (take_char(cursor, ':') && !take_number(cursor, 0, 59, &seconds))
            return false;
    }
    const int64_t total = hours * INT64_C(3600) + minutes * INT64_C(60) + seconds;
    *out_s = is_negative ? -total : total;
    return true;
}

static bool take_day(struct cursor *cursor, struct zone_day *out_day)
{
    struct zone_day day = {.time_s = INT64_C(2) * 3600};
    if (take_char(cursor, 'M')) {
        day.kind = ZONE_DAY_OF_MONTH;
        if (!take_number(cursor, 1, 12, &day.month) || !take_char(cursor, '.') ||
            !take_number(cursor, 1, 5, &day.week) || !take_char(cursor, '.') ||
            !take_number(cursor, 0, 6, &day.day))
            return false;
    } else if (take_char(cursor, 'J')) {
        day.kind = ZONE_DAY_JULIAN;
        if (!take_number(cursor, 1, 365, &day.day))
            return false;
    } else {
        day.kind = ZONE_DAY_OF_YEAR;
        if (!take_number(cursor, 0, 365, &day.day))
            return false;
    }
    if (take_char(cursor, '/') && !take_time(cursor, RULE_HOURS_MAX, &day.time_s))
        return false;
    *out_day = day;
    return true;
}

static bool take_saving(struct cursor *cursor, struct zone_rule *rule)
{
    int64_t west_s;
    rule->has_saving = true;
    rule->saving_s = rule->standard_s + 3600;
    if (!take_name(cursor))
        return false;
    if (cursor->rest.size > 0 && cursor->rest.data[0] != ',') {
        if (!take_time(cursor, OFFSET_HOURS_MAX, &west_s))
            return false;
        rule->saving_s = -west_s;
    }
    return take_char(cursor, ',') && take_day(cursor, &rule->saving_begins) &&
           take_char(cursor, ',') && take_day(cursor, &rule->saving_ends);
}

int zone_rule_parse(struct text text, struct zone_rule *out_rule, struct error *error)
{
    struct cursor cursor = {text};
    struct zone_rule rule = {0};
    int64_t west_s;
    bool is_read = take_name(&cursor) && take_time(&cursor, OFFSET_HOURS_MAX, &west_s);
    if (is_read) {
        rule.standard_s = -west_s;
        if (cursor.rest.size > 0)
            is_read = take_saving(&cursor, &rule);
    }
    if (!is_read || cursor.rest.size > 0)
        return error_set(error, ERROR_CORRUPT, "the time zone file ends in a rule that is not one");
    *out_rule = rule;
    return 0;
}

static int64_t day_of_month(const struct zone_day *day, int year)
{
    const int64_t first = date_to_days((struct date){year, day->month, 1});
    const int wanted = (day->day + 6) % 7; /* Monday is 0 here, Sunday is 0 there */
    int64_t found = first + (wanted - date_weekday(first) + 7) % 7 + (day->week - 1) * INT64_C(7);
    if (found >= first + date_days_in_month(year, day->month))
        found -= 7;
    return found;
}

static int64_t day_in_year(const struct zone_day *day, int year)
{
    const int64_t january = date_to_days((struct date){year, 1, 1});
    switch (day->kind) {
    case ZONE_DAY_JULIAN:
        return january + day->day - 1 + (day->day >= 60 && date_days_in_month(year, 2) == 29);
    case ZONE_DAY_OF_YEAR:
        return january + day->day;
    case ZONE_DAY_OF_MONTH:
        break;
    }
    return day_of_month(day, year);
}

struct change {
    int64_t at_s;
    int64_t offset_s; /* from then on */
};

enum { YEARS_AROUND = 5, CHANGE_COUNT = 2 * YEARS_AROUND };

/*
 * The changes of the two years before, this one and two after, in their order: a rule's hour may
 * lie a week into the next year or the one before. Where saving lasts the whole year one year's
 * end is the next one's begin; the later year comes last and so prevails.
 */
static void list_changes(const struct zone_rule *rule, int64_t utc_s,
                         struct change out_changes[CHANGE_COUNT])
{
    const int64_t days = utc_s / SECONDS_PER_DAY - (utc_s % SECONDS_PER_DAY < 0);
    const int year = date_of_days(days).year;
    for (int i = 0; i < YEARS_AROUND; i++) {
        const int64_t begins =
            day_in_year(&rule->saving_begins, year - YEARS_AROUND / 2 + i) * SECONDS_PER_DAY +
            rule->saving_begins.time_s - rule->standard_s;
        const int64_t ends =
            day_in_year(&rule->saving_ends, year - YEARS_AROUND / 2 + i) * SECONDS_PER_DAY +
            rule->saving_ends.time_s - rule->saving_s;
        const struct change begin = {begins, rule->saving_s}, end = {ends, rule->standard_s};
        struct change *pair = &out_changes[(size_t)2 * (size_t)i];
        pair[0] = begins <= ends ? begin : end;
        pair[1] = begins <= ends ? end : begin;
    }
    for (int i = 1; i < CHANGE_COUNT; i++)
        for (int j = i; j > 0 && out_changes[j].at_s < out_changes[j - 1].at_s; j--) {
            const struct change later = out_changes[j - 1];
            out_changes[j - 1] = out_changes[j];
            out_changes[j] = later;
        }
}

int64_t zone_rule_offset_s(const struct zone_rule *rule, int64_t utc_s)
{
    struct change changes[CHANGE_COUNT];
    int64_t offset_s = rule->standard_s;
    if (!rule->has_saving)
        return offset_s;
    list_changes(rule, utc_s, changes);
    for (int i = 0; i < CHANGE_COUNT && changes[i].at_s <= utc_s; i++)
        offset_s = changes[i].offset_s;
    return offset_s;
}

bool zone_rule_next_change(const struct zone_rule *rule, int64_t utc_s, int64_t *out_at_s)
{
    struct change changes[CHANGE_COUNT];
    if (!rule->has_saving)
        return false;
    list_changes(rule, utc_s, changes);
    for (int i = 0; i < CHANGE_COUNT; i++)
        if (changes[i].at_s > utc_s) {
            *out_at_s = changes[i].at_s;
            return true;
        }
    return false;
}
