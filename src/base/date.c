#include "base/date.h"

enum { DAYS_PER_ERA = 146097, YEARS_PER_ERA = 400, DAYS_TO_1970 = 719468 };

int date_days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

bool date_is_valid(struct date date)
{
    return date.year >= DATE_YEAR_MIN && date.year <= DATE_YEAR_MAX && date.month >= 1 &&
           date.month <= 12 && date.day >= 1 &&
           date.day <= date_days_in_month(date.year, date.month);
}

/*
 * Years are counted from March, so that a leap day is a year's last and (153 m + 2) / 5 gives the
 * days before month m. An era is the calendar's period of 400 years. Both functions also serve the
 * years just outside the range, which the rules of a time zone look at.
 */
int64_t date_to_days(struct date date)
{
    const int64_t year = (int64_t)date.year - (date.month <= 2);
    const int64_t era = (year >= 0 ? year : year - (YEARS_PER_ERA - 1)) / YEARS_PER_ERA;
    const int64_t year_of_era = year - era * YEARS_PER_ERA;
    const int64_t month = (date.month + 9) % 12;
    const int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    const int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

struct date date_of_days(int64_t days)
{
    const int64_t shifted = days + DAYS_TO_1970;
    const int64_t era = (shifted >= 0 ? shifted : shifted - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
    const int64_t day_of_era = shifted - era * DAYS_PER_ERA;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month = (5 * day_of_year + 2) / 153;
    return (struct date){
        .year = (int)(year_of_era + era * YEARS_PER_ERA + (month >= 10)),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

int date_weekday(int64_t days)
{
    return (int)(((days + 3) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
}
