/*
 * Loads: date,vm,"24 34 29 ..." with 288 percentages, one every five minutes. Availability: a JSON
 * object {"metadata": {"gap_seconds": 195}, "data": [0, 1, ...]}.
 */
#include "base/arena.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/json_schema.h"
#include "sim/trace.h"
#include "sim/trace_lines.h"

#include <stdlib.h>

enum { SAMPLES_PER_HOUR = 12, FILE_BYTES_MAX = 8 << 20, COUNT_MAX = 255 };

void trace_loads_done(struct trace_loads *loads)
{
    free(loads->days);
    *loads = (struct trace_loads){0};
}

void trace_availability_done(struct trace_availability *availability)
{
    free(availability->counts);
    *availability = (struct trace_availability){0};
}

static int read_day(struct text samples, const struct trace_lines *lines, struct trace_day *out_day,
                    struct error *error)
{
    for (int hour = 0; hour < 24; hour++) {
        int64_t sum = 0;
        for (int i = 0; i < SAMPLES_PER_HOUR; i++) {
            struct text word;
            struct error ignored;
            int64_t value = 0;
            const bool is_last = hour == 23 && i == SAMPLES_PER_HOUR - 1;
            if (text_cut(samples, ' ', &word, &samples) == is_last ||
                text_parse_i64(word, &value, &ignored) < 0 || value < 0 || value > 100)
                return trace_lines_refuse(lines, "288 percentages are expected", error);
            sum += value;
        }
        out_day->load_percent[hour] = (uint8_t)(sum / SAMPLES_PER_HOUR);
    }
    return 0;
}

static int add_day(struct text line, const struct trace_lines *lines, struct trace_loads *loads,
                   struct error *error)
{
    struct text date, machine, samples;
    if (!text_cut(line, ',', &date, &line) || !text_cut(line, ',', &machine, &samples))
        return trace_lines_refuse(lines, "date, machine and loads are expected", error);
    if (loads->count == TRACE_DAYS_MAX)
        return trace_lines_refuse(lines, "more days than are read", error);
    if (loads->count == loads->capacity) {
        loads->capacity = loads->capacity ? 2 * loads->capacity : 1024;
        loads->days = realloc(loads->days, loads->capacity * sizeof(*loads->days));
        ASSERT(loads->days);
    }
    if (read_day(samples, lines, &loads->days[loads->count], error) < 0)
        return -1;
    loads->count++;
    return 0;
}

int trace_read_loads(const char *path, struct trace_loads *out_loads, struct error *error)
{
    *out_loads = (struct trace_loads){0};
    AUTO(trace_lines) struct trace_lines *lines = NULL;
    if (trace_lines_open(path, &lines, error) < 0)
        return -1;
    struct text line;
    bool is_end;
    while (trace_lines_next(lines, &line, &is_end, error) == 0) {
        if (is_end)
            return 0;
        if (trace_lines_number(lines) == 1 && text_starts_with(line, TEXT("date,")))
            continue;
        if (add_day(line, lines, out_loads, error) < 0)
            break;
    }
    trace_loads_done(out_loads);
    return -1;
}

struct availability_file {
    struct {
        int64_t gap_seconds;
    } metadata;
    struct text data;
};

static const struct json_field metadata_fields[] = {
    {"gap_seconds", JSON_I64, 0, .is_required = true, .minimum = 1, .maximum = 3600},
};
static const struct json_schema metadata_schema =
    JSON_SCHEMA("metadata", metadata_fields, ((struct availability_file *)0)->metadata);
static const struct json_field availability_fields[] = {
    {"metadata", JSON_OBJECT, offsetof(struct availability_file, metadata), .is_required = true,
     .schema = &metadata_schema},
    {"data", JSON_ANY, offsetof(struct availability_file, data), .is_required = true,
     .size_max = FILE_BYTES_MAX},
};
static const struct json_schema availability_schema =
    JSON_SCHEMA("availability", availability_fields, struct availability_file);

static int read_counts(struct text list, struct trace_samples *out, struct error *error)
{
    list = text_trim(list);
    if (list.size < 2 || list.data[0] != '[' || list.data[list.size - 1] != ']')
        return error_set(error, ERROR_CORRUPT, "data is not a list");
    list = (struct text){list.data + 1, list.size - 2};
    out->counts = calloc(list.size + 1, 1); /* a count takes a byte of the list at least */
    ASSERT(out->counts);
    while (list.size > 0) {
        struct text word;
        int64_t value = 0;
        if (!text_cut(list, ',', &word, &list))
            list = (struct text){0};
        if (text_parse_i64(text_trim(word), &value, error) < 0 || value < 0 || value > COUNT_MAX)
            return error_set(error, ERROR_CORRUPT, "data has something that is no count");
        out->counts[out->count++] = (uint8_t)value;
    }
    return 0;
}

void trace_samples_done(struct trace_samples *samples)
{
    free(samples->counts);
    *samples = (struct trace_samples){0};
}

static int read_samples(const char *path, struct trace_samples *out, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, FILE_BYTES_MAX);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct availability_file file = {0};
    if (file_read(path, &bytes, error) < 0 ||
        json_read(arena, buffer_text(&bytes), &availability_schema, &file, error) < 0)
        return -1;
    out->gap_s = file.metadata.gap_seconds;
    return read_counts(file.data, out, error);
}

int trace_read_samples(const char *path, struct trace_samples *out, struct error *error)
{
    struct trace_samples samples = {0};
    if (read_samples(path, &samples, error) < 0) {
        trace_samples_done(&samples);
        return error_wrap(error, "%.150s", path);
    }
    *out = samples;
    return 0;
}

/* Each hour's mean over the samples that begin in it. */
static int hours_of(const struct trace_samples *samples, struct trace_availability *out,
                    struct error *error)
{
    const int64_t gap_s = samples->gap_s;
    const size_t hour_count =
        samples->count > 0 ? (size_t)((int64_t)(samples->count - 1) * gap_s / 3600) + 1 : 0;
    if (hour_count > TRACE_HOURS_MAX)
        return error_set(error, ERROR_CORRUPT, "more hours than are read");
    out->counts = calloc(hour_count + 1, 1);
    ASSERT(out->counts);
    out->hour_count = hour_count;
    size_t next = 0;
    for (size_t hour = 0; hour < hour_count; hour++) {
        int64_t sum = 0, count = 0;
        for (; next < samples->count && (size_t)((int64_t)next * gap_s / 3600) == hour; next++) {
            sum += samples->counts[next];
            count++;
        }
        ASSERT(count > 0); /* a gap is an hour at most */
        out->counts[hour] = (uint8_t)((sum + count / 2) / count);
    }
    return 0;
}

int trace_read_availability(const char *path, struct trace_availability *out, struct error *error)
{
    struct trace_samples samples = {0};
    *out = (struct trace_availability){0};
    if (trace_read_samples(path, &samples, error) < 0)
        return -1;
    const int result = hours_of(&samples, out, error);
    trace_samples_done(&samples);
    return result < 0 ? error_wrap(error, "%.150s", path) : 0;
}
