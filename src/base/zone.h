/*
 * Zone: a place's wall clock against UTC, from the system's time zone files.
 *
 * The C library's tzset has one zone per process; a market has one per lender. So a zone here is a
 * value: a parsed TZif file (RFC 8536) with its table of changes and, for the time after the last
 * of them, the rule in the file's footer ("CET-1CEST,M3.5.0,M10.5.0/3").
 *
 * Instants are UTC seconds since 1970. A wall time is the count of seconds since 1970-01-01 00:00
 * that a clock on the wall would show: date_to_days * 86400 + the time of day. In spring some wall
 * times do not happen (a gap), in autumn some happen twice (an overlap).
 *
 * Both must lie in the years DATE_YEAR_MIN to DATE_YEAR_MAX.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

#define ZONE_FOLDER "/usr/share/zoneinfo"

enum {
    ZONE_NAME_SIZE = 48, /* with the zero byte */
    ZONE_FILE_SIZE_MAX = 64 * 1024,
    ZONE_OFFSET_MAX_S = 26 * 3600,
};

struct zone;

/* Reads the bytes of a TZif file, version 1 or later. CORRUPT when they break its rules. */
MUST_CHECK int zone_parse(struct text bytes, struct zone **out_zone, struct error *error);
/*
 * Reads the file of a zone such as "Europe/Berlin" under `folder`. A name that could lead out of
 * the folder is INVALID; one that is not there is NOT_FOUND and the message names the nearest.
 */
MUST_CHECK int zone_open(const char *folder, struct text name, struct zone **out_zone,
                         struct error *error);
void zone_free(struct zone *zone); /* NULL is fine */
DEFINE_AUTO(zone);

/* INVALID unless the name is made of words such as "America/Argentina/Buenos_Aires". */
MUST_CHECK int zone_check_name(struct text name, struct error *error);

/* Wall time less UTC, at an instant. */
int64_t zone_offset_s(const struct zone *zone, int64_t utc_s);

enum zone_pick { ZONE_PICK_FIRST, ZONE_PICK_LAST };
/*
 * The instant at which the clock shows `wall_s`. In an overlap the first or the last time it does;
 * in a gap the instant of the change, which is when the clock jumps past it.
 */
int64_t zone_instant_s(const struct zone *zone, int64_t wall_s, enum zone_pick pick);

/* The first change of the offset's table or rule after an instant; false when there is none. */
bool zone_next_change(const struct zone *zone, int64_t utc_s, int64_t *out_at_s);
