/*
 * A catalogue of tables as others publish them: AWS's types of a region by their names' columns,
 * and the Spot Advisor's bands,
 *
 *     {"ranges": [{"index": 0, "max": 5}, ...],
 *      "spot_advisor": {"us-east-1": {"Linux": {"m5.large": {"s": 60, "r": 1}}}}}
 */
#include "base/assert.h"
#include "cloud/catalogue_internal.h"
#include "train/csv_record.h"

#include <ctype.h>
#include <inttypes.h>
#include <json.h>

enum { COLUMNS_MAX = 64, BANDS_MAX = 16, PERCENT_MAX = 100 };

enum column {
    COLUMN_NAME,
    COLUMN_VCPUS,
    COLUMN_MEMORY,
    COLUMN_GPU,
    COLUMN_GPUS,
    COLUMN_BANDWIDTH,
    COLUMN_PRICE,
    COLUMN_SPOT_MIN,
    COLUMN_SPOT_MAX,
    COLUMN_COUNT,
};
static const char *const columns[COLUMN_COUNT] = {
    "instance_type",
    "vcpus",
    "memory_gib",
    "accelerator",
    "accelerator_count",
    "baseline_bandwidth_mbps",
    "on_demand_usd_per_hour",
    "spot_min_usd_per_hour",
    "spot_max_usd_per_hour",
};

struct reading {
    struct catalogue *catalogue;
    struct arena *arena; /* of a row */
    const char *region;
    int places[COLUMN_COUNT];  /* of the columns in a row */
    struct json_object *bands; /* of the region, by type; NULL: none */
    int64_t band_ends[BANDS_MAX];
};

/* Graviton's families have a g behind their generation (m6g, c7gn, x2gd); a1 is the first. */
static enum cloud_architecture architecture_of(const char *name)
{
    const size_t family = strcspn(name, ".");
    const size_t letters = strcspn(name, "0123456789");
    if (family == 2 && strncmp(name, "a1", 2) == 0)
        return CLOUD_ARM64;
    for (size_t i = letters; i < family; i++)
        if (name[i] == 'g')
            return CLOUD_ARM64;
    return CLOUD_X86_64;
}

static void find_band(const struct reading *reading, struct catalogue_type *type)
{
    struct json_object *row, *range;
    if (!reading->bands || !json_object_object_get_ex(reading->bands, type->name, &row) ||
        !json_object_is_type(row, json_type_object) ||
        !json_object_object_get_ex(row, "r", &range) || !json_object_is_type(range, json_type_int))
        return;
    const int64_t index = json_object_get_int64(range);
    if (index < 0 || index >= BANDS_MAX || !reading->band_ends[index])
        return;
    type->interruption_percent_min = index ? reading->band_ends[index - 1] : 0;
    type->interruption_percent_max = reading->band_ends[index];
}

static int read_type(const struct reading *reading, const struct text *fields, struct error *error)
{
    struct catalogue_type type = {.region = reading->region};
    struct arena *arena = reading->arena;
    const int *places = reading->places;
    if (catalogue_parse_name(arena, fields[places[COLUMN_NAME]], columns[COLUMN_NAME], false,
                             &type.name, error) < 0 ||
        catalogue_parse_count(fields[places[COLUMN_VCPUS]], "vcpus", &type.vcpus, error) < 0 ||
        catalogue_parse_scaled(fields[places[COLUMN_MEMORY]], "memory_gib", 1024, &type.memory_mib,
                               error) < 0 ||
        catalogue_parse_name(arena, fields[places[COLUMN_GPU]], "accelerator", true, &type.gpu,
                             error) < 0 ||
        catalogue_parse_scaled(fields[places[COLUMN_GPUS]], "accelerator_count", 1000,
                               &type.gpu_milli, error) < 0 ||
        catalogue_parse_count(fields[places[COLUMN_BANDWIDTH]], columns[COLUMN_BANDWIDTH],
                              &type.bandwidth_mbps, error) < 0 ||
        catalogue_parse_usd(fields[places[COLUMN_PRICE]], columns[COLUMN_PRICE],
                            &type.usd_micro_per_hour, error) < 0 ||
        catalogue_parse_usd(fields[places[COLUMN_SPOT_MIN]], columns[COLUMN_SPOT_MIN],
                            &type.spot_usd_micro_per_hour_min, error) < 0 ||
        catalogue_parse_usd(fields[places[COLUMN_SPOT_MAX]], columns[COLUMN_SPOT_MAX],
                            &type.spot_usd_micro_per_hour_max, error) < 0)
        return -1;
    if (type.vcpus < 1 || type.memory_mib < 1)
        return error_set(error, ERROR_INVALID, "vcpus and memory_gib have to be known");
    type.architecture = architecture_of(type.name);
    find_band(reading, &type);
    return catalogue_add_type(reading->catalogue, &type, error);
}

static int find_columns(struct reading *reading, const struct csv_record *record,
                        struct error *error)
{
    for (int column = 0; column < COLUMN_COUNT; column++) {
        reading->places[column] = -1;
        for (uint32_t i = 0; i < record->count; i++)
            if (text_is(record->fields[i], columns[column]))
                reading->places[column] = (int)i;
        if (reading->places[column] < 0)
            return error_set(error, ERROR_INVALID, "line %" PRIu64 ": there is no column \"%s\"",
                             record->line, columns[column]);
    }
    return 0;
}

static int read_types(struct reading *reading, struct text csv, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct csv_record record AUTO_CSV_RECORD;
    bool has_record;
    if (data_stream_open_bytes(csv, CATALOGUE_SIZE_MAX, &stream, error) < 0)
        return -1;
    csv_record_init(&record, stream, COLUMNS_MAX);
    if (csv_record_next(&record, &has_record, error) < 0)
        return -1;
    if (!has_record)
        return error_set(error, ERROR_INVALID, "the table is empty");
    if (find_columns(reading, &record, error) < 0)
        return -1;
    const uint32_t column_count = record.count;
    for (;;) {
        arena_clear(reading->arena);
        if (csv_record_next(&record, &has_record, error) < 0)
            return -1;
        if (!has_record)
            return 0;
        if (record.count != column_count)
            return error_set(error, ERROR_INVALID, "line %" PRIu64 ": %u fields instead of %u",
                             record.line, record.count, column_count);
        if (read_type(reading, record.fields, error) < 0)
            return error_wrap(error, "line %" PRIu64, record.line);
    }
}

/* Ranges tell where a band ends, rounded up by one where another begins: the label's end is
 * kept. */
static int read_ranges(struct reading *reading, struct json_object *advisor, struct error *error)
{
    struct json_object *ranges, *index, *end;
    if (!json_object_object_get_ex(advisor, "ranges", &ranges) ||
        !json_object_is_type(ranges, json_type_array))
        return error_set(error, ERROR_INVALID, "the spot advisor's JSON has no \"ranges\"");
    for (size_t i = 0; i < json_object_array_length(ranges); i++) {
        struct json_object *range = json_object_array_get_idx(ranges, i);
        if (!json_object_is_type(range, json_type_object) ||
            !json_object_object_get_ex(range, "index", &index) ||
            !json_object_object_get_ex(range, "max", &end))
            return error_set(error, ERROR_INVALID,
                             "a range of the spot advisor has no index or max");
        const int64_t place = json_object_get_int64(index);
        const int64_t percent = json_object_get_int64(end);
        if (place < 0 || place >= BANDS_MAX || percent < 1 || percent > PERCENT_MAX)
            return error_set(error, ERROR_INVALID, "a range of the spot advisor is out of bounds");
        reading->band_ends[place] = percent < PERCENT_MAX ? percent - percent % 5 : PERCENT_MAX;
    }
    return 0;
}

static int read_advisor(struct reading *reading, struct json_object *advisor, struct error *error)
{
    struct json_object *regions, *region;
    if (!json_object_is_type(advisor, json_type_object) || read_ranges(reading, advisor, error) < 0)
        return -1;
    if (!json_object_object_get_ex(advisor, "spot_advisor", &regions) ||
        !json_object_is_type(regions, json_type_object) ||
        !json_object_object_get_ex(regions, reading->region, &region) ||
        !json_object_is_type(region, json_type_object) ||
        !json_object_object_get_ex(region, "Linux", &reading->bands) ||
        !json_object_is_type(reading->bands, json_type_object))
        return error_set(error, ERROR_INVALID, "the spot advisor's JSON has no Linux of %.40s",
                         reading->region);
    return 0;
}

static int parse_advisor(struct text json, struct json_object **out_advisor, struct error *error)
{
    struct json_tokener *tokener = json_tokener_new();
    ASSERT(tokener);
    struct json_object *advisor = json.size <= CATALOGUE_SIZE_MAX
                                      ? json_tokener_parse_ex(tokener, json.data, (int)json.size)
                                      : NULL;
    json_tokener_free(tokener);
    if (!advisor)
        return error_set(error, ERROR_INVALID, "the spot advisor's file is not JSON");
    if (!json_object_is_type(advisor, json_type_object)) {
        json_object_put(advisor);
        return error_set(error, ERROR_INVALID, "the spot advisor's JSON is no object");
    }
    *out_advisor = advisor;
    return 0;
}

static int keep_functions(struct catalogue *catalogue, const char *region, struct error *error)
{
    AUTO(catalogue) struct catalogue *own = catalogue_built_in();
    for (size_t i = 0; i < catalogue_function_count(own); i++) {
        const struct catalogue_function *function = catalogue_function_at(own, i);
        if (strcmp(function->region, region) == 0 &&
            catalogue_add_function(catalogue, function, error) < 0)
            return -1;
    }
    return 0;
}

static void put_json(struct json_object **object)
{
    json_object_put(*object);
}

int catalogue_read_aws(const struct catalogue_aws *aws, struct catalogue **out_catalogue,
                       struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = catalogue_new();
    AUTO(arena) struct arena *arena = arena_new(0);
    __attribute__((cleanup(put_json))) struct json_object *advisor = NULL;
    struct reading reading = {.catalogue = catalogue, .arena = arena, .region = aws->region};
    if (catalogue_set_date(catalogue, text_of(aws->date), error) < 0 ||
        catalogue_set_source(catalogue, text_of(aws->source), error) < 0 ||
        catalogue_parse_name(catalogue->arena, text_of(aws->region), "region", false,
                             &reading.region, error) < 0)
        return -1;
    if (aws->spot_advisor.size && (parse_advisor(aws->spot_advisor, &advisor, error) < 0 ||
                                   read_advisor(&reading, advisor, error) < 0))
        return -1;
    if (read_types(&reading, aws->csv, error) < 0 ||
        keep_functions(catalogue, reading.region, error) < 0)
        return -1;
    if (!catalogue_type_count(catalogue))
        return error_set(error, ERROR_INVALID, "the table has no types");
    *out_catalogue = TAKE(catalogue);
    return 0;
}
