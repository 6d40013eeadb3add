/*
 * Date: days of the Gregorian calendar, counted from 1970-01-01, for any year from 1 to 9999.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct date {
    int year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

enum { DATE_YEAR_MIN = 1, DATE_YEAR_MAX = 9999 };

/* Whether the calendar has this day. */
bool date_is_valid(struct date date);
int date_days_in_month(int year, int month);

int64_t date_to_days(struct date date);
struct date date_of_days(int64_t days);
/* 0 is Monday, 6 is Sunday. */
int date_weekday(int64_t days);
