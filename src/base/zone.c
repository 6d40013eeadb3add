/*
 * A TZif file, all numbers big-endian:
 *
 *     "TZif" version[1] zero[15] isutcnt isstdcnt leapcnt timecnt typecnt charcnt   6 x u32
 *     times[timecnt]  i32 in the first part, i64 in the second
 *     index[timecnt]  u8 into types
 *     types[typecnt]  utoff i32, isdst u8, name index u8
 *     names[charcnt] leaps[leapcnt] isstd[isstdcnt] isut[isutcnt]
 *
 * From version 2 on the first part is for old readers; the same follows again with 64-bit times,
 * and then "\n" rule "\n".
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/date.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/zone_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADER_SIZE = 44, TYPE_SIZE = 6, TYPE_COUNT_MAX = 256, SECONDS_PER_DAY = 86400 };

enum { FOLDER_SIZE_MAX = 192, TABLE_SIZE_MAX = 256 * 1024 };

/* Files made for old readers begin with a change at -2^59. */
#define CHANGE_MAX_S (INT64_C(1) << 60)

struct change {
    int64_t at_s;
    int64_t offset_s; /* from then on */
};

struct zone {
    int64_t first_offset_s; /* before the first change */
    struct change *changes;
    size_t change_count;
    bool has_rule; /* for the time from the last change on */
    struct zone_rule rule;
};

struct header {
    uint8_t version; /* 0 for version 1, else '2' or later */
    uint32_t isut_count;
    uint32_t isstd_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t char_count;
};

static uint32_t read_u32(const char *data)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 8 | (uint8_t)data[i];
    return value;
}

static int64_t read_time(const char *data, size_t time_size)
{
    if (time_size == 4)
        return (int32_t)read_u32(data);
    return (int64_t)((uint64_t)read_u32(data) << 32 | read_u32(data + 4));
}

static int refuse(struct error *error, const char *why)
{
    return error_set(error, ERROR_CORRUPT, "the time zone file is damaged: %s", why);
}

static int read_header(struct text bytes, struct header *out_header, struct error *error)
{
    if (bytes.size < HEADER_SIZE || memcmp(bytes.data, "TZif", 4) != 0)
        return refuse(error, "it does not begin with \"TZif\"");
    const char *counts = bytes.data + 20;
    const struct header header = {
        .version = (uint8_t)bytes.data[4],
        .isut_count = read_u32(counts),
        .isstd_count = read_u32(counts + 4),
        .leap_count = read_u32(counts + 8),
        .time_count = read_u32(counts + 12),
        .type_count = read_u32(counts + 16),
        .char_count = read_u32(counts + 20),
    };
    if (header.version != 0 && header.version < '2')
        return refuse(error, "its version is unknown");
    if (header.type_count == 0 || header.type_count > TYPE_COUNT_MAX)
        return refuse(error, "it has no type of local time, or too many");
    *out_header = header;
    return 0;
}

static uint64_t part_size(const struct header *header, size_t time_size)
{
    return HEADER_SIZE + (uint64_t)header->time_count * (time_size + 1) +
           (uint64_t)header->type_count * TYPE_SIZE + header->char_count +
           (uint64_t)header->leap_count * (time_size + 4) + header->isstd_count +
           header->isut_count;
}

/* Takes one part, whose size has been checked, into the zone. */
static int read_part(const char *part, const struct header *header, size_t time_size,
                     struct zone *zone, struct error *error)
{
    const char *times = part + HEADER_SIZE;
    const char *indexes = times + header->time_count * time_size;
    const char *types = indexes + header->time_count;
    if (header->leap_count > 0)
        return refuse(error, "it counts leap seconds, which UTC instants here do not");
    for (uint32_t i = 0; i < header->type_count; i++) {
        const int32_t offset_s = (int32_t)read_u32(types + (size_t)i * TYPE_SIZE);
        if (offset_s < -ZONE_OFFSET_MAX_S || offset_s > ZONE_OFFSET_MAX_S)
            return refuse(error, "an offset is longer than a day");
    }
    zone->first_offset_s = (int32_t)read_u32(types);
    zone->changes = calloc(header->time_count + 1, sizeof(*zone->changes));
    ASSERT(zone->changes);
    for (uint32_t i = 0; i < header->time_count; i++) {
        const int64_t at_s = read_time(times + i * time_size, time_size);
        const uint8_t type = (uint8_t)indexes[i];
        if (at_s < -CHANGE_MAX_S || at_s > CHANGE_MAX_S ||
            (i > 0 && at_s <= zone->changes[i - 1].at_s))
            return refuse(error, "its changes are not in order");
        if (type >= header->type_count)
            return refuse(error, "a change is to a type that is not there");
        zone->changes[i] =
            (struct change){at_s, (int32_t)read_u32(types + (size_t)type * TYPE_SIZE)};
        zone->change_count = i + 1;
    }
    return 0;
}

static int read_footer(struct text footer, struct zone *zone, struct error *error)
{
    struct text rule, rest;
    if (footer.size < 2 || footer.data[0] != '\n')
        return refuse(error, "it has no footer");
    footer = (struct text){footer.data + 1, footer.size - 1};
    if (!text_cut(footer, '\n', &rule, &rest))
        return refuse(error, "its footer does not end");
    if (rule.size == 0)
        return 0;
    zone->has_rule = true;
    return zone_rule_parse(rule, &zone->rule, error);
}

int zone_parse(struct text bytes, struct zone **out_zone, struct error *error)
{
    struct header header;
    size_t time_size = 4;
    if (bytes.size > ZONE_FILE_SIZE_MAX)
        return refuse(error, "it is too long");
    if (read_header(bytes, &header, error) < 0)
        return -1;
    uint64_t size = part_size(&header, time_size);
    if (size > bytes.size)
        return refuse(error, "it is cut short");
    const bool has_second = header.version != 0;
    if (has_second) {
        bytes = (struct text){bytes.data + size, bytes.size - size};
        time_size = 8;
        if (read_header(bytes, &header, error) < 0)
            return -1;
        size = part_size(&header, time_size);
        if (size > bytes.size)
            return refuse(error, "it is cut short");
    }
    struct zone read = {0};
    const struct text footer = {bytes.data + size, bytes.size - size};
    if (read_part(bytes.data, &header, time_size, &read, error) < 0 ||
        (has_second && read_footer(footer, &read, error) < 0)) {
        free(read.changes);
        return -1;
    }
    struct zone *zone = malloc(sizeof(*zone));
    ASSERT(zone);
    *zone = read;
    *out_zone = zone;
    return 0;
}

void zone_free(struct zone *zone)
{
    if (!zone)
        return;
    free(zone->changes);
    free(zone);
}

int zone_check_name(struct text name, struct error *error)
{
    bool is_word_start = true, is_good = name.size > 0 && name.size < ZONE_NAME_SIZE;
    for (size_t i = 0; i < name.size && is_good; i++) {
        const char c = name.data[i];
        const bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        const bool is_inner = (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '+';
        /* No dot at all, so no "..", and no slash that begins or ends a name. */
        is_good = is_letter || (!is_word_start && (is_inner || (c == '/' && i + 1 < name.size)));
        is_word_start = c == '/';
    }
    if (is_good)
        return 0;
    size_t shown = 0; /* what was sent goes into the message only as far as it is plain text */
    while (shown < name.size && shown < 40 && name.data[shown] >= ' ' && name.data[shown] <= '~')
        shown++;
    return error_set(error, ERROR_INVALID,
                     "\"%.*s\" is not a time zone; write it like Europe/Berlin or UTC", (int)shown,
                     name.data);
}

/* zone.tab: a comment after '#', else country, coordinates, name and remarks, tabs between. */
static void offer_names(char *table, struct nearest *nearest)
{
    char *line_end = NULL;
    for (char *line = table; line && *line; line = line_end) {
        line_end = strchr(line, '\n');
        if (line_end)
            *line_end++ = '\0';
        char *coordinates = *line == '#' ? NULL : strchr(line, '\t');
        char *name = coordinates ? strchr(coordinates + 1, '\t') : NULL;
        if (!name)
            continue;
        name++;
        name[strcspn(name, "\t")] = '\0';
        nearest_offer(nearest, name);
    }
}

static int refuse_unknown(const char *folder, struct text name, struct error *error)
{
    char path[FOLDER_SIZE_MAX + ZONE_NAME_SIZE], hint[NEAREST_HINT_SIZE];
    struct error table_error;
    struct buffer table AUTO_BUFFER;
    struct nearest nearest;
    buffer_init(&table, TABLE_SIZE_MAX);
    snprintf(path, sizeof(path), "%s/zone.tab", folder);
    /* A machine without the package knows no zone at all: another matter than a wrong name. */
    if (file_read(path, &table, &table_error) < 0)
        return error_set(error, ERROR_UNAVAILABLE,
                         "no time zones in %s: install the package tzdata", folder);
    buffer_append_byte(&table, 0);
    nearest_init(&nearest, name);
    nearest_offer(&nearest, "UTC");
    offer_names((char *)table.data, &nearest);
    return error_set(error, ERROR_NOT_FOUND, "there is no time zone \"" TEXT_FORMAT "\"%s",
                     TEXT_ARGS(name), nearest_hint(&nearest, hint));
}

int zone_open(const char *folder, struct text name, struct zone **out_zone, struct error *error)
{
    char path[FOLDER_SIZE_MAX + ZONE_NAME_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, ZONE_FILE_SIZE_MAX);
    if (zone_check_name(name, error) < 0)
        return -1;
    ASSERT(strlen(folder) < FOLDER_SIZE_MAX);
    snprintf(path, sizeof(path), "%s/" TEXT_FORMAT, folder, TEXT_ARGS(name));
    if (file_read(path, &bytes, error) < 0)
        return refuse_unknown(folder, name, error);
    if (zone_parse(buffer_text(&bytes), out_zone, error) < 0)
        return error_wrap(error, "\"" TEXT_FORMAT "\"", TEXT_ARGS(name));
    return 0;
}

/* How many changes are at or before the instant. */
static size_t count_until(const struct zone *zone, int64_t utc_s)
{
    size_t low = 0, high = zone->change_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].at_s <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t zone_offset_s(const struct zone *zone, int64_t utc_s)
{
    const size_t count = count_until(zone, utc_s);
    if (count == zone->change_count && zone->has_rule)
        return zone_rule_offset_s(&zone->rule, utc_s);
    return count == 0 ? zone->first_offset_s : zone->changes[count - 1].offset_s;
}

bool zone_next_change(const struct zone *zone, int64_t utc_s, int64_t *out_at_s)
{
    const size_t count = count_until(zone, utc_s);
    if (count < zone->change_count) {
        *out_at_s = zone->changes[count].at_s;
        return true;
    }
    return zone->has_rule && zone_rule_next_change(&zone->rule, utc_s, out_at_s);
}

/*
 * The instant lies within the longest offset of the wall time taken as UTC. The stretches of
 * constant offset in that span are looked at in turn: in each the clock shows the wall time at
 * most once.
 */
int64_t zone_instant_s(const struct zone *zone, int64_t wall_s, enum zone_pick pick)
{
    const int64_t end_s = wall_s + ZONE_OFFSET_MAX_S;
    int64_t begin_s = wall_s - ZONE_OFFSET_MAX_S;
    int64_t found_s = 0, jump_s = 0;
    bool is_found = false, has_jump = false;
    while (begin_s <= end_s) {
        int64_t next_s = end_s + 1, change_s;
        const bool has_change = zone_next_change(zone, begin_s, &change_s) && change_s <= end_s;
        if (has_change)
            next_s = change_s;
        const int64_t instant_s = wall_s - zone_offset_s(zone, begin_s);
        if (instant_s >= begin_s && instant_s < next_s) {
            found_s = instant_s;
            is_found = true;
            if (pick == ZONE_PICK_FIRST)
                break;
        } else if (has_change && !has_jump && instant_s >= next_s &&
                   wall_s - zone_offset_s(zone, next_s) < next_s) {
            jump_s = next_s;
            has_jump = true;
        }
        begin_s = next_s;
    }
    ASSERT(is_found || has_jump);
    return is_found ? found_s : jump_s;
}
