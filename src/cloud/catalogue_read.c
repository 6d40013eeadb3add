/* Reads and writes a catalogue's own file. */
#include "base/assert.h"
#include "base/csv.h"
#include "cloud/catalogue_built_in.h"
#include "cloud/catalogue_internal.h"
#include "train/csv_record.h"

#include <inttypes.h>
#include <stdio.h>

/* To add a figure: its column here, in the struct, and in the file's description. */
static const char *const type_columns[] = {"instance_type",
                                           "region",
                                           "architecture",
                                           "vcpus",
                                           "memory_mib",
                                           "gpu",
                                           "gpus",
                                           "bandwidth_mbps",
                                           "usd_per_hour",
                                           "spot_usd_per_hour_min",
                                           "spot_usd_per_hour_max",
                                           "interruption_percent"};
static const char *const function_columns[] = {"function",
                                               "region",
                                               "architecture",
                                               "usd_per_million_gib_s",
                                               "usd_per_million_calls",
                                               "memory_mib_min",
                                               "memory_mib_max",
                                               "memory_mib_per_vcpu"};
enum {
    TYPE_COLUMNS = sizeof(type_columns) / sizeof(*type_columns),
    FUNCTION_COLUMNS = sizeof(function_columns) / sizeof(*function_columns),
    PERCENT_MAX = 100,
};

enum table { TABLE_NONE, TABLE_TYPES, TABLE_FUNCTIONS };

struct reading {
    struct catalogue *catalogue;
    struct arena *arena; /* of a row */
    enum table table;
};

static int parse_architecture(struct text field, enum cloud_architecture *out, struct error *error)
{
    for (int i = 0; i < CLOUD_ARCHITECTURE_COUNT; i++)
        if (text_is(field, cloud_architecture_name((enum cloud_architecture)i))) {
            *out = (enum cloud_architecture)i;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "architecture: neither x86_64 nor arm64");
}

/* "5-10" */
static int parse_band(struct text field, struct catalogue_type *type, struct error *error)
{
    struct text low, high;
    if (!field.size)
        return 0;
    if (!text_cut(field, '-', &low, &high) ||
        catalogue_parse_count(low, "low", &type->interruption_percent_min, error) < 0 ||
        catalogue_parse_count(high, "high", &type->interruption_percent_max, error) < 0 ||
        type->interruption_percent_max > PERCENT_MAX || type->interruption_percent_max < 1 ||
        type->interruption_percent_min > type->interruption_percent_max)
        return error_set(error, ERROR_INVALID, "interruption_percent: not a band like 5-10");
    return 0;
}

static int read_type(struct reading *reading, const struct text *fields, struct error *error)
{
    struct catalogue_type type = {0};
    struct arena *arena = reading->arena;
    if (catalogue_parse_name(arena, fields[0], type_columns[0], false, &type.name, error) < 0 ||
        catalogue_parse_name(arena, fields[1], "region", false, &type.region, error) < 0 ||
        parse_architecture(fields[2], &type.architecture, error) < 0 ||
        catalogue_parse_count(fields[3], "vcpus", &type.vcpus, error) < 0 ||
        catalogue_parse_count(fields[4], "memory_mib", &type.memory_mib, error) < 0 ||
        catalogue_parse_name(arena, fields[5], "gpu", true, &type.gpu, error) < 0 ||
        catalogue_parse_scaled(fields[6], "gpus", 1000, &type.gpu_milli, error) < 0 ||
        catalogue_parse_count(fields[7], "bandwidth_mbps", &type.bandwidth_mbps, error) < 0 ||
        catalogue_parse_usd(fields[8], "usd_per_hour", &type.usd_micro_per_hour, error) < 0 ||
        catalogue_parse_usd(fields[9], type_columns[9], &type.spot_usd_micro_per_hour_min, error) <
            0 ||
        catalogue_parse_usd(fields[10], type_columns[10], &type.spot_usd_micro_per_hour_max,
                            error) < 0 ||
        parse_band(fields[11], &type, error) < 0)
        return -1;
    if (type.vcpus < 1 || type.memory_mib < 1)
        return error_set(error, ERROR_INVALID, "vcpus and memory_mib have to be known");
    if (type.spot_usd_micro_per_hour_min > type.spot_usd_micro_per_hour_max)
        return error_set(error, ERROR_INVALID,
                         "spot_usd_per_hour_min is more than spot_usd_per_hour_max");
    return catalogue_add_type(reading->catalogue, &type, error);
}

static int read_function(struct reading *reading, const struct text *fields, struct error *error)
{
    struct catalogue_function function = {0};
    struct arena *arena = reading->arena;
    if (catalogue_parse_name(arena, fields[0], "function", false, &function.name, error) < 0 ||
        catalogue_parse_name(arena, fields[1], "region", false, &function.region, error) < 0 ||
        parse_architecture(fields[2], &function.architecture, error) < 0 ||
        catalogue_parse_usd(fields[3], function_columns[3], &function.usd_micro_per_million_gib_s,
                            error) < 0 ||
        catalogue_parse_usd(fields[4], function_columns[4], &function.usd_micro_per_million_calls,
                            error) < 0 ||
        catalogue_parse_count(fields[5], function_columns[5], &function.memory_mib_min, error) <
            0 ||
        catalogue_parse_count(fields[6], function_columns[6], &function.memory_mib_max, error) <
            0 ||
        catalogue_parse_count(fields[7], function_columns[7], &function.memory_mib_per_vcpu,
                              error) < 0)
        return -1;
    if (function.memory_mib_min < 1 || function.memory_mib_max < function.memory_mib_min ||
        function.memory_mib_per_vcpu < 1 || function.usd_micro_per_million_gib_s < 1)
        return error_set(error, ERROR_INVALID,
                         "a function's memory and price per second have to be known");
    return catalogue_add_function(reading->catalogue, &function, error);
}

static int read_heading(const struct csv_record *record, const char *const *columns,
                        uint32_t column_count, struct error *error)
{
    for (uint32_t i = 0; i < column_count; i++)
        if (i >= record->count || !text_is(record->fields[i], columns[i]))
            return error_set(error, ERROR_INVALID, "column %u is not \"%s\"", i + 1, columns[i]);
    if (record->count > column_count)
        return error_set(error, ERROR_INVALID, "there are more than %u columns", column_count);
    return 0;
}

static int read_row(struct reading *reading, const struct csv_record *record, struct error *error)
{
    const struct text first = record->fields[0];
    if (text_is(first, "date") && record->count == 2)
        return catalogue_set_date(reading->catalogue, record->fields[1], error);
    if (text_is(first, "source") && record->count == 2)
        return catalogue_set_source(reading->catalogue, record->fields[1], error);
    if (text_is(first, type_columns[0])) {
        reading->table = TABLE_TYPES;
        return read_heading(record, type_columns, TYPE_COLUMNS, error);
    }
    if (text_is(first, function_columns[0])) {
        reading->table = TABLE_FUNCTIONS;
        return read_heading(record, function_columns, FUNCTION_COLUMNS, error);
    }
    if (reading->table == TABLE_NONE)
        return error_set(error, ERROR_INVALID, "a row before \"date\", \"source\" and a heading");
    const uint32_t wanted = reading->table == TABLE_TYPES ? TYPE_COLUMNS : FUNCTION_COLUMNS;
    if (record->count != wanted)
        return error_set(error, ERROR_INVALID, "%u fields instead of %u", record->count, wanted);
    return reading->table == TABLE_TYPES ? read_type(reading, record->fields, error)
                                         : read_function(reading, record->fields, error);
}

static int check_whole(const struct catalogue *catalogue, struct error *error)
{
    if (!catalogue->date[0] || !catalogue->source[0])
        return error_set(error, ERROR_INVALID, "the catalogue has no line \"%s\"",
                         catalogue->date[0] ? "source" : "date");
    if (!catalogue_type_count(catalogue))
        return error_set(error, ERROR_INVALID, "the catalogue has no instance types");
    return 0;
}

static int read_stream(struct data_stream *stream, struct catalogue **out_catalogue,
                       struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = catalogue_new();
    AUTO(arena) struct arena *arena = arena_new(0);
    struct reading reading = {.catalogue = catalogue, .arena = arena};
    struct csv_record record AUTO_CSV_RECORD;
    bool has_record;
    csv_record_init(&record, stream, TYPE_COLUMNS + 1);
    if (csv_record_next(&record, &has_record, error) < 0)
        return -1;
    if (!has_record || record.count != 2 || !text_is(record.fields[0], "catalogue") ||
        !text_is(record.fields[1], "1"))
        return error_set(error, ERROR_INVALID,
                         "no catalogue: its first line is not \"catalogue,1\"");
    for (;;) {
        arena_clear(arena);
        if (csv_record_next(&record, &has_record, error) < 0)
            return -1;
        if (!has_record)
            break;
        if (read_row(&reading, &record, error) < 0)
            return error_wrap(error, "line %" PRIu64, record.line);
    }
    if (check_whole(catalogue, error) < 0)
        return -1;
    *out_catalogue = TAKE(catalogue);
    return 0;
}

int catalogue_read(struct text csv, struct catalogue **out_catalogue, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (data_stream_open_bytes(csv, CATALOGUE_SIZE_MAX, &stream, error) < 0)
        return -1;
    return read_stream(stream, out_catalogue, error);
}

int catalogue_read_file(const char *path, struct catalogue **out_catalogue, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (data_stream_open(path, CATALOGUE_SIZE_MAX, &stream, error) < 0)
        return -1;
    if (read_stream(stream, out_catalogue, error) < 0)
        return error_wrap(error, "%.80s", path);
    return 0;
}

struct catalogue *catalogue_built_in(void)
{
    struct catalogue *catalogue = NULL;
    struct error error;
    const int read = catalogue_read(catalogue_built_in_text(), &catalogue, &error);
    ASSERT(read == 0);
    return catalogue;
}

int catalogue_open(const char *path, struct catalogue **out_catalogue, struct error *error)
{
    if (catalogue_read_file(path, out_catalogue, error) == 0)
        return 0;
    if (error->code != ERROR_NOT_FOUND)
        return -1;
    *out_catalogue = catalogue_built_in();
    return 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_heading(struct csv_writer *writer, const char *const *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        csv_string(writer, columns[i]);
    csv_row_end(writer);
}

/* A number in `scale`ths, a divisor of a million, without needless zeros; "" for what is not
 * known. */
static void write_scaled(struct csv_writer *writer, int64_t value, int64_t scale)
{
    char digits[48];
    if (!value) {
        csv_string(writer, "");
        return;
    }
    int size = snprintf(digits, sizeof(digits), "%" PRId64, value / scale);
    if (value % scale) {
        size += snprintf(digits + size, sizeof(digits) - (size_t)size, ".%06" PRId64,
                         value % scale * (1000000 / scale));
        while (digits[size - 1] == '0')
            digits[--size] = '\0';
    }
    csv_number(writer, digits);
}

static void write_type(struct csv_writer *writer, const struct catalogue_type *type)
{
    csv_string(writer, type->name);
    csv_string(writer, type->region);
    csv_string(writer, cloud_architecture_name(type->architecture));
    write_scaled(writer, type->vcpus, 1);
    write_scaled(writer, type->memory_mib, 1);
    csv_string(writer, type->gpu);
    write_scaled(writer, type->gpu_milli, 1000);
    write_scaled(writer, type->bandwidth_mbps, 1);
    write_scaled(writer, type->usd_micro_per_hour, 1000000);
    write_scaled(writer, type->spot_usd_micro_per_hour_min, 1000000);
    write_scaled(writer, type->spot_usd_micro_per_hour_max, 1000000);
    char band[48] = "";
    if (type->interruption_percent_max)
        snprintf(band, sizeof(band), "%" PRId64 "-%" PRId64, type->interruption_percent_min,
                 type->interruption_percent_max);
    csv_string(writer, band);
    csv_row_end(writer);
}

static void write_function(struct csv_writer *writer, const struct catalogue_function *function)
{
    csv_string(writer, function->name);
    csv_string(writer, function->region);
    csv_string(writer, cloud_architecture_name(function->architecture));
    write_scaled(writer, function->usd_micro_per_million_gib_s, 1000000);
    write_scaled(writer, function->usd_micro_per_million_calls, 1000000);
    write_scaled(writer, function->memory_mib_min, 1);
    write_scaled(writer, function->memory_mib_max, 1);
    write_scaled(writer, function->memory_mib_per_vcpu, 1);
    csv_row_end(writer);
}

static void write_line(struct csv_writer *writer, const char *name, const char *value)
{
    csv_string(writer, name);
    csv_string(writer, value);
    csv_row_end(writer);
}

void catalogue_write(const struct catalogue *catalogue, struct buffer *out)
{
    struct csv_writer writer;
    csv_writer_init(&writer, out);
    write_line(&writer, "catalogue", "1");
    write_line(&writer, "date", catalogue->date);
    write_line(&writer, "source", catalogue->source);
    write_heading(&writer, type_columns, TYPE_COLUMNS);
    for (size_t i = 0; i < catalogue_type_count(catalogue); i++)
        write_type(&writer, catalogue_type_at(catalogue, i));
    if (catalogue_function_count(catalogue))
        write_heading(&writer, function_columns, FUNCTION_COLUMNS);
    for (size_t i = 0; i < catalogue_function_count(catalogue); i++)
        write_function(&writer, catalogue_function_at(catalogue, i));
}
