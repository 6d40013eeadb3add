/*
 * Tables: numbers and categories in rows, one column of which is the target.
 *
 * A row becomes its numbers, then its categories. One-hot: a place for each value, dense. Hashed: a
 * sparse row; the numbers have the first places, a category of column C and value V has the place
 * import_hash(C, V) modulo the buckets behind them. A missing category has no place.
 */
#include "base/assert.h"
#include "base/memory.h"
#include "train/csv_columns.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
    const struct import_options *options;
    struct csv_columns columns;
    struct import *import;
    uint32_t number_count;
    bool is_sparse;
    float *row;        /* [width] of a dense row, [column count] of a sparse one */
    uint32_t *indices; /* [column count] of a sparse row */
};

static void table_done(struct table *table)
{
    csv_columns_done(&table->columns);
    free(table->row);
    free(table->indices);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static uint32_t count_places(struct table *table)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < table->columns.count; i++) {
        struct csv_column *column = &table->columns.columns[i];
        if (column->kind == CSV_COLUMN_NUMBER)
            column->place = place++;
    }
    table->number_count = place;
    for (uint32_t i = 0; i < table->columns.count; i++) {
        struct csv_column *column = &table->columns.columns[i];
        if (column->kind != CSV_COLUMN_CATEGORY)
            continue;
        column->place = place;
        if (!table->is_sparse)
            place += (uint32_t)column->values.count;
    }
    return place;
}

static void name_places(struct table *table)
{
    struct import *import = table->import;
    import->feature_count = table->is_sparse ? table->number_count : import->width;
    import->features = calloc(import->feature_count + (size_t)1, sizeof(*import->features));
    ASSERT(import->features);
    for (uint32_t i = 0; i < table->columns.count; i++) {
        const struct csv_column *column = &table->columns.columns[i];
        if (column->kind == CSV_COLUMN_NUMBER) {
            struct import_feature *feature = &import->features[column->place];
            snprintf(feature->name, sizeof(feature->name), "%s", column->name);
            feature->is_scaled = true;
        }
        if (column->kind != CSV_COLUMN_CATEGORY || table->is_sparse)
            continue;
        for (size_t k = 0; k < column->values.count; k++) {
            struct import_feature *feature = &import->features[column->place + k];
            const struct text value = column->values.names[k];
            snprintf(feature->name, sizeof(feature->name), "%s=%.*s", column->name,
                     (int)(value.size < 64 ? value.size : 64), value.data);
            text_make_plain(feature->name);
        }
    }
}

static int plan(struct table *table, struct error *error)
{
    const struct import_options *options = table->options;
    struct import *import = table->import;
    uint32_t category_count = 0;
    for (uint32_t i = 0; i < table->columns.count; i++)
        category_count += table->columns.columns[i].kind == CSV_COLUMN_CATEGORY;
    table->is_sparse = category_count && options->categories == IMPORT_CATEGORIES_HASHED;
    const uint32_t places = count_places(table);
    import->width = places + (table->is_sparse ? options->buckets : 0);
    if (import->width == 0)
        return error_set(error, ERROR_INVALID, "no column is left to learn from");
    if (import->width > (table->is_sparse ? IMPORT_SPARSE_WIDTH_MAX : IMPORT_WIDTH_MAX))
        return error_set(error, ERROR_INVALID,
                         "%u places in a row are more than %d: leave columns out (train.read.skip) "
                         "or use fewer buckets",
                         import->width,
                         table->is_sparse ? IMPORT_SPARSE_WIDTH_MAX : IMPORT_WIDTH_MAX);
    import->form = table->is_sparse ? IMPORT_SPARSE : IMPORT_FLOATS;
    import->target = options->is_number ? IMPORT_NUMBER : IMPORT_CLASS;
    import->channels = import->height = 1;
    snprintf(import->target_name, sizeof(import->target_name), "%s",
             table->columns.columns[table->columns.target].name);
    name_places(table);
    const uint32_t room = table->is_sparse ? table->columns.count : import->width;
    table->row = memory_zeroed(room, sizeof(*table->row));
    table->indices = memory_zeroed(table->columns.count, sizeof(*table->indices));
    return 0;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The file is read a second time: what it holds now is checked again. */
static int read_number(const struct csv_record *record, const struct csv_column *column,
                       struct text field, float *out, struct error *error)
{
    double value;
    if (!csv_number_parse(field, &value) || fabs(value) > (double)FLT_MAX)
        return error_set(error, ERROR_INVALID,
                         "line %" PRIu64 ": column \"%s\": \"%.*s\" is not a number", record->line,
                         column->name, (int)(field.size < 40 ? field.size : 40), field.data);
    *out = (float)value;
    return 0;
}

static int fill_missing(struct table *table, const struct csv_column *column, float *out,
                        struct error *error)
{
    if (table->options->missing == IMPORT_MISSING_MEAN && column->count == 0)
        return error_set(error, ERROR_INVALID, "column \"%s\" has no value at all", column->name);
    table->import->filled_values++;
    *out = table->options->missing == IMPORT_MISSING_CONSTANT
               ? (float)table->options->missing_value
               : (float)(column->sum / (double)column->count);
    return 0;
}

static bool has_gap(const struct table *table, const struct csv_record *record)
{
    for (uint32_t i = 0; i < record->count; i++)
        if (table->columns.columns[i].kind != CSV_COLUMN_SKIPPED &&
            csv_is_missing(record->fields[i]))
            return true;
    return false;
}

static int add_target(struct table *table, const struct csv_record *record, struct error *error)
{
    const struct csv_column *column = &table->columns.columns[table->columns.target];
    const struct text field = record->fields[table->columns.target];
    if (csv_is_missing(field))
        return error_set(error, ERROR_INVALID,
                         "line %" PRIu64 ": column \"%s\": the label is missing "
                         "(train.read.missing: drop leaves such rows out)",
                         record->line, column->name);
    if (table->options->is_number) {
        float value;
        if (read_number(record, column, field, &value, error) < 0)
            return -1;
        return import_add_number_target(&table->import->train, value, error);
    }
    int32_t label;
    if (import_class(table->import, field, CSV_CLASSES_MAX, &label, error) < 0)
        return error_wrap(error, "line %" PRIu64 ": column \"%s\"", record->line, column->name);
    return import_add_class_target(&table->import->train, label, error);
}

static int add_dense(struct table *table, const struct csv_record *record, struct error *error)
{
    struct import *import = table->import;
    memset(table->row, 0, import->width * sizeof(*table->row));
    for (uint32_t i = 0; i < record->count; i++) {
        const struct csv_column *column = &table->columns.columns[i];
        const struct text field = record->fields[i];
        if (column->kind == CSV_COLUMN_NUMBER) {
            float *out = &table->row[column->place];
            if ((csv_is_missing(field) ? fill_missing(table, column, out, error)
                                       : read_number(record, column, field, out, error)) < 0)
                return -1;
        } else if (column->kind == CSV_COLUMN_CATEGORY && !csv_is_missing(field)) {
            const uintptr_t number = (uintptr_t)map_get_text(&column->values, field);
            if (number == 0)
                return error_set(error, ERROR_CONFLICT,
                                 "line %" PRIu64 ": the file changed while it was read",
                                 record->line);
            table->row[column->place + number - 1] = 1;
        }
    }
    return spool_append(&import->train.values, table->row, import->width * sizeof(*table->row),
                        error);
}

/* Into rising order; two categories that fall onto one place add up. */
static uint32_t put_entry(struct table *table, uint32_t count, uint32_t index, float value)
{
    uint32_t at = count;
    while (at > 0 && table->indices[at - 1] > index)
        at--;
    if (at > 0 && table->indices[at - 1] == index) {
        table->row[at - 1] += value;
        return count;
    }
    memmove(table->indices + at + 1, table->indices + at, (count - at) * sizeof(*table->indices));
    memmove(table->row + at + 1, table->row + at, (count - at) * sizeof(*table->row));
    table->indices[at] = index;
    table->row[at] = value;
    return count + 1;
}

static int add_sparse(struct table *table, const struct csv_record *record, struct error *error)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < record->count; i++) {
        const struct csv_column *column = &table->columns.columns[i];
        const struct text field = record->fields[i];
        if (column->kind == CSV_COLUMN_NUMBER) {
            float value;
            if ((csv_is_missing(field) ? fill_missing(table, column, &value, error)
                                       : read_number(record, column, field, &value, error)) < 0)
                return -1;
            count = put_entry(table, count, column->place, value);
        } else if (column->kind == CSV_COLUMN_CATEGORY && !csv_is_missing(field)) {
            const uint64_t hash = import_hash(text_of(column->name), field);
            count = put_entry(table, count,
                              table->number_count + (uint32_t)(hash % table->options->buckets), 1);
        }
    }
    return import_add_sparse(&table->import->train, table->indices, table->row, count, error);
}

static int add_row(struct table *table, const struct csv_record *record, struct error *error)
{
    if (record->count != table->columns.count)
        return error_set(error, ERROR_INVALID, "line %" PRIu64 ": %u fields, not %u", record->line,
                         record->count, table->columns.count);
    if (table->options->missing == IMPORT_MISSING_DROP && has_gap(table, record)) {
        table->import->dropped_rows++;
        return 0;
    }
    if (add_target(table, record, error) < 0)
        return -1;
    if ((table->is_sparse ? add_sparse(table, record, error) : add_dense(table, record, error)) < 0)
        return -1;
    return import_row_end(&table->import->train, error);
}

static int add_rows(struct table *table, const struct reader_source *source, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (reader_source_open(source, table->options->size_max, &stream, error) < 0)
        return -1;
    struct csv_record record AUTO_CSV_RECORD;
    csv_record_init(&record, stream, IMPORT_COLUMNS_MAX);
    bool has_record = true, is_first = true;
    for (;;) {
        if (csv_record_next(&record, &has_record, error) < 0)
            return -1;
        if (!has_record)
            return 0;
        if (!(is_first && table->columns.has_heading) && add_row(table, &record, error) < 0)
            return -1;
        is_first = false;
    }
}

int reader_csv_read(const struct reader_source *source, const struct import_options *options,
                    struct import *out_import, struct error *error)
{
    __attribute__((cleanup(table_done))) struct table table = {.options = options,
                                                               .import = out_import};
    if (csv_columns_read(source, options, &table.columns, error) < 0 || plan(&table, error) < 0 ||
        add_rows(&table, source, error) < 0)
        return -1;
    if (!options->is_number)
        import_sort_classes(out_import);
    return 0;
}

static int read_file(const char *path, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    const struct reader_source source = {.path = path};
    return reader_csv_read(&source, options, out_import, error);
}

static bool matches(const struct reader_clue *clue)
{
    return !clue->is_folder &&
           (text_ends_with(clue->name, TEXT(".csv")) || text_ends_with(clue->name, TEXT(".tsv")) ||
            text_ends_with(clue->name, TEXT(".data")));
}

const struct reader reader_csv = {
    .name = "csv",
    .help = "rows of fields with commas, semicolons, tabs or blanks between",
    .matches = matches,
    .read = read_file,
};
