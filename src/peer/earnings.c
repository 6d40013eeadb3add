#include "peer/earnings.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/json_schema.h"

#include <limits.h>
#include <stdio.h>

#define DAY_MS INT64_C(86400000)

enum { FILE_SIZE_MAX = 1024, STORE_MS = 60000 };

static const struct json_field earnings_fields[] = {
    {"earned_micro", JSON_I64, offsetof(struct earnings, earned_micro), .is_required = true},
    {"withheld_micro", JSON_I64, offsetof(struct earnings, withheld_micro), .is_required = true},
    {"told_ms", JSON_I64, offsetof(struct earnings, told_ms), .is_required = true},
    {"day", JSON_I64, offsetof(struct earnings, day), .is_required = true},
    {"before_micro", JSON_I64, offsetof(struct earnings, before_micro), .is_required = true},
    {"stored_ms", JSON_I64, offsetof(struct earnings, stored_ms), .is_required = true},
};
static const struct json_schema earnings_schema =
    JSON_SCHEMA("earnings", earnings_fields, struct earnings);

static int earnings_path(const char *state_dir, char out[PATH_MAX], struct error *error)
{
    if (snprintf(out, PATH_MAX, "%s/earnings.json", state_dir) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    return 0;
}

int earnings_load(const char *state_dir, struct earnings *out_earnings, struct error *error)
{
    char path[PATH_MAX];
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, FILE_SIZE_MAX);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct earnings earnings = {0};
    if (earnings_path(state_dir, path, error) < 0 || file_read(path, &json, error) < 0 ||
        json_read(arena, buffer_text(&json), &earnings_schema, &earnings, error) < 0)
        return -1;
    *out_earnings = earnings;
    return 0;
}

int earnings_store(const char *state_dir, const struct earnings *earnings, struct error *error)
{
    char path[PATH_MAX];
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, FILE_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &earnings_schema, earnings);
    const struct text text = buffer_text(&json);
    if (earnings_path(state_dir, path, error) < 0)
        return -1;
    return file_replace(path, &text, 1, 0600, error);
}

bool earnings_take(struct earnings *earnings, int64_t earned_micro, int64_t withheld_micro,
                   int64_t now_ms)
{
    const int64_t day = now_ms / DAY_MS;
    const bool is_new = earnings->told_ms == 0 || day != earnings->day ||
                        earned_micro < earnings->before_micro; /* another market, or its clock */
    if (is_new) {
        /* What came since the last word of the day before is of this day: a machine that is away
         * earns nothing. Of the first word ever nothing is known to be of today. */
        const bool is_known = earnings->told_ms != 0 && earned_micro >= earnings->earned_micro;
        earnings->before_micro = is_known ? earnings->earned_micro : earned_micro;
        earnings->day = day;
    }
    earnings->earned_micro = earned_micro;
    earnings->withheld_micro = withheld_micro;
    earnings->told_ms = now_ms;
    const bool is_due = is_new || now_ms - earnings->stored_ms >= STORE_MS;
    if (is_due)
        earnings->stored_ms = now_ms;
    return is_due;
}

int64_t earnings_today_micro(const struct earnings *earnings, int64_t now_ms)
{
    return now_ms / DAY_MS == earnings->day ? earnings->earned_micro - earnings->before_micro : 0;
}

void earnings_write(const struct earnings *earnings, int64_t now_ms, struct json_writer *writer)
{
    json_field_i64(writer, "earned_microcredits", earnings->earned_micro);
    json_field_i64(writer, "earned_today_microcredits", earnings_today_micro(earnings, now_ms));
    json_field_i64(writer, "withheld_microcredits", earnings->withheld_micro);
    json_field_i64(writer, "earned_told_ms", earnings->told_ms);
}
