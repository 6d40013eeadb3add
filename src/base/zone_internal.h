/* The rule in a TZif footer (POSIX TZ, section 8.3, with the wider hours of RFC 8536 3.3.1). */
#pragma once

#include "base/zone.h"

enum zone_day_kind {
    ZONE_DAY_JULIAN,   /* "J60": 1 to 365, February 29 is never counted */
    ZONE_DAY_OF_YEAR,  /* "59": 0 to 365, February 29 is counted */
    ZONE_DAY_OF_MONTH, /* "M3.5.0": the fifth (last) Sunday of March */
};

struct zone_day {
    enum zone_day_kind kind;
    int day;        /* of the year; or the weekday, 0 is Sunday */
    int month;      /* 1 to 12 */
    int week;       /* 1 to 5; 5 is the last */
    int64_t time_s; /* wall time of the change, from midnight; -167 h to 167 h */
};

struct zone_rule {
    int64_t standard_s; /* offset from UTC, east is positive */
    bool has_saving;
    int64_t saving_s;
    struct zone_day saving_begins;
    struct zone_day saving_ends;
};

/* CORRUPT when the text is not a rule. */
MUST_CHECK int zone_rule_parse(struct text text, struct zone_rule *out_rule, struct error *error);
int64_t zone_rule_offset_s(const struct zone_rule *rule, int64_t utc_s);
bool zone_rule_next_change(const struct zone_rule *rule, int64_t utc_s, int64_t *out_at_s);
