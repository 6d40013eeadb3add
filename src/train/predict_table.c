/*
 * Predict table: the rows of a CSV file, their columns found by the names that the model learnt by.
 *
 * A column of words has a feature "COLUMN=WORD" for each. Columns that the model does not know are
 * left aside. A model that forecasts is asked about every window of rows that follow one another;
 * what it tells lies ahead, so that no label is there to hold it against.
 */
#include "base/assert.h"
#include "base/memory.h"
#include "train/csv_record.h"
#include "train/predict_data_internal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column_kind { COLUMN_UNUSED, COLUMN_NUMBER, COLUMN_WORDS };

struct column {
    char name[IMPORT_NAME_SIZE];
    enum column_kind kind;
    uint32_t place; /* of a number */
};

struct table {
    struct predict_data *data;
    struct csv_record record;
    const struct predictor_feature *features; /* NULL: numbers by their order */
    uint32_t width;                           /* of one row */
    struct column *columns;                   /* [count] of the file */
    uint32_t count;
    struct map words; /* "COLUMN=WORD": its place + 1 */
    int64_t label;    /* its column; -1: there is none */
    uint64_t rows;    /* seen */
};

static void table_done(struct table *table)
{
    csv_record_done(&table->record);
    free(table->columns);
    map_done(&table->words);
}

/* ---- Columns ----------------------------------------------------------------------------------
 */

static void *as_value(size_t number)
{
    return (void *)(number + 1); // NOLINT(performance-no-int-to-ptr): a number, never followed
}

/* By the first record, or by their numbers from 1; a column without a name has its number too. */
static int name_columns(struct table *table, bool has_heading, struct error *error)
{
    for (uint32_t i = 0; i < table->count; i++) {
        struct column *column = &table->columns[i];
        const struct text name = table->record.fields[i];
        *column = (struct column){0};
        if (!has_heading || name.size == 0)
            snprintf(column->name, sizeof(column->name), "%u", i + 1);
        else if (text_copy(name, column->name, sizeof(column->name), error) < 0)
            return error_wrap(error, "line %" PRIu64 ", column %u", table->record.line, i + 1);
    }
    return 0;
}

static bool find_feature(struct table *table, const struct map *columns, uint32_t place)
{
    const char *name = table->features[place].name;
    uintptr_t found = (uintptr_t)map_get_text(columns, text_of(name));
    if (found) {
        table->columns[found - 1].kind = COLUMN_NUMBER;
        table->columns[found - 1].place = place;
        return true;
    }
    for (const char *at = strchr(name, '='); at && !found; at = strchr(at + 1, '='))
        found = (uintptr_t)map_get_text(columns, (struct text){name, (size_t)(at - name)});
    if (!found)
        return false;
    table->columns[found - 1].kind = COLUMN_WORDS;
    map_put_text(&table->words, text_of(name), as_value(place));
    return true;
}

/* NULL: all features are there; else the first that is not. */
static const char *find_features(struct table *table)
{
    const char *label = predictor_label_name(table->data->options->predictor), *missing = NULL;
    struct map columns;
    map_init(&columns);
    map_clear(&table->words);
    for (uint32_t i = 0; i < table->count; i++)
        if (!map_get_text(&columns, text_of(table->columns[i].name)))
            map_put_text(&columns, text_of(table->columns[i].name), as_value(i));
    for (uint32_t i = 0; i < table->width && !missing; i++)
        missing = find_feature(table, &columns, i) ? NULL : table->features[i].name;
    const uintptr_t found = label ? (uintptr_t)map_get_text(&columns, text_of(label)) : 0;
    table->label =
        found && table->columns[found - 1].kind == COLUMN_UNUSED ? (int64_t)found - 1 : -1;
    map_done(&columns);
    return missing;
}

/* Training numbers the columns of a file without a heading, and never those of one with names. */
static int find_by_name(struct table *table, bool *out_has_heading, struct error *error)
{
    *out_has_heading = false;
    if (name_columns(table, false, error) < 0)
        return -1;
    if (!find_features(table))
        return 0;
    *out_has_heading = true;
    if (name_columns(table, true, error) < 0)
        return -1;
    const char *missing = find_features(table);
    if (!missing)
        return 0;
    const char *at = strchr(missing, '=');
    const int size = at ? (int)(at - missing) : (int)strlen(missing);
    return error_set(error, ERROR_INVALID,
                     "line %" PRIu64 ": the model's column \"%.*s\" is missing in the heading",
                     table->record.line, size < 64 ? size : 64, missing);
}

/* All numbers of a row, and perhaps a label behind them. */
static int find_by_order(struct table *table, bool *out_has_heading, struct error *error)
{
    double ignored;
    if (table->count != table->width && table->count != table->width + 1)
        return error_set(error, ERROR_INVALID,
                         "line %" PRIu64 ": %u columns, and the model takes %u numbers",
                         table->record.line, table->count, table->width);
    if (name_columns(table, false, error) < 0)
        return -1;
    *out_has_heading = false;
    for (uint32_t i = 0; i < table->width; i++) {
        table->columns[i].kind = COLUMN_NUMBER;
        table->columns[i].place = i;
        *out_has_heading |= !csv_number_parse(table->record.fields[i], &ignored);
    }
    table->label = table->count > table->width ? (int64_t)table->width : -1;
    return 0;
}

static int find_columns(struct table *table, bool *out_has_heading, struct error *error)
{
    table->count = table->record.count;
    table->columns = memory_zeroed(table->count, sizeof(*table->columns));
    return table->features ? find_by_name(table, out_has_heading, error)
                           : find_by_order(table, out_has_heading, error);
}

/* ---- Rows -------------------------------------------------------------------------------------
 */

static int refuse_field(const struct table *table, uint32_t index, const char *why,
                        struct error *error)
{
    const struct text field = table->record.fields[index];
    return error_set(error, ERROR_INVALID,
                     "record %" PRIu64 " (line %" PRIu64 "): column \"%s\": \"%.*s\" %s",
                     table->rows, table->record.line, table->columns[index].name,
                     (int)(field.size < 40 ? field.size : 40), field.data, why);
}

static int put_number(const struct table *table, uint32_t index, float *row, struct error *error)
{
    const struct predict_data_options *options = table->data->options;
    const struct text field = table->record.fields[index];
    const uint32_t place = table->columns[index].place;
    double value = 0;
    if (csv_is_missing(field)) {
        if (!options->fills_means || !table->features)
            return refuse_field(table, index,
                                "is missing (--missing mean takes the mean of the training's rows)",
                                error);
        value = options->is_raw ? 0 : table->features[place].mean;
    } else if (!csv_number_parse(field, &value) || fabs(value) > (double)FLT_MAX) {
        return refuse_field(table, index, "is not a number", error);
    }
    row[place] = (float)value;
    return 0;
}

/* Written as training names the places of words. */
static int put_word(const struct table *table, uint32_t index, float *row, struct error *error)
{
    char name[IMPORT_FEATURE_NAME_SIZE];
    const struct text field = table->record.fields[index];
    if (csv_is_missing(field))
        return 0;
    snprintf(name, sizeof(name), "%s=%.*s", table->columns[index].name,
             (int)(field.size < 64 ? field.size : 64), field.data);
    text_make_plain(name);
    const uintptr_t found = (uintptr_t)map_get_text(&table->words, text_of(name));
    if (!found)
        return refuse_field(table, index, "is no word that the model has learnt", error);
    row[found - 1] = 1;
    return 0;
}

static struct predict_label label_of(const struct table *table)
{
    const struct predict_data *data = table->data;
    const struct text field =
        table->label < 0 ? (struct text){0} : table->record.fields[table->label];
    double number;
    if (data->spec->height > 1 || csv_is_missing(field))
        return (struct predict_label){0};
    if (data->spec->loss != LOSS_MSE)
        return predict_data_label(data, field);
    return (struct predict_label){.is_known = csv_number_parse(field, &number) &&
                                              fabs(number) <= (double)FLT_MAX,
                                  .number = (float)number};
}

static int take_row(struct table *table, struct error *error)
{
    struct predict_data *data = table->data;
    const uint64_t height = data->spec->height;
    float *row = data->input + (height - 1) * table->width;
    if (table->record.count != table->count)
        return error_set(error, ERROR_INVALID,
                         "record %" PRIu64 " (line %" PRIu64 "): %u fields, not %u", table->rows,
                         table->record.line, table->record.count, table->count);
    /* A window moves on by one row. */
    memmove(data->input, data->input + table->width,
            (height - 1) * table->width * sizeof(*data->input));
    memset(row, 0, table->width * sizeof(*row));
    for (uint32_t i = 0; i < table->count; i++) {
        const enum column_kind kind = table->columns[i].kind;
        if ((kind == COLUMN_NUMBER && put_number(table, i, row, error) < 0) ||
            (kind == COLUMN_WORDS && put_word(table, i, row, error) < 0))
            return -1;
    }
    if (++table->rows < height)
        return 0;
    const struct predict_label label = label_of(table);
    return predict_data_take(data, &label, error);
}

static int check_model(struct table *table, struct error *error)
{
    const struct predict_data *data = table->data;
    const struct predictor *predictor = data->options->predictor;
    uint32_t count;
    if (data->spec->vocabulary > 0 && !predictor_is_sparse(predictor))
        return error_set(error, ERROR_INVALID, "the model takes texts, and no table");
    if (predictor_is_sparse(predictor))
        return error_set(error, ERROR_INVALID,
                         "the model takes sparse rows: of a table with hashed words nothing says "
                         "which columns they came from");
    table->features = predictor_features(predictor, &count);
    if (!table->features && !data->options->is_raw)
        return error_set(error, ERROR_INVALID,
                         "nothing beside the model says what its columns are: put its columns.json "
                         "there, or say --raw for numbers as the model takes them");
    table->width = (uint32_t)(table->features ? count : data->input_size);
    if (table->width * data->spec->height != data->input_size && table->features)
        return error_set(error, ERROR_INVALID, "the model takes images, and no table");
    return 0;
}

int predict_table_read(struct predict_data *data, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    __attribute__((cleanup(table_done))) struct table table = {.data = data};
    bool has_record = true, has_heading = false;
    map_init(&table.words);
    if (check_model(&table, error) < 0 ||
        data_stream_open(data->options->path, data->size_max, &stream, error) < 0)
        return -1;
    csv_record_init(&table.record, stream, IMPORT_COLUMNS_MAX);
    for (;;) {
        if (csv_record_next(&table.record, &has_record, error) < 0)
            return -1;
        if (!has_record)
            return 0;
        const bool is_first = !table.columns;
        if (is_first && find_columns(&table, &has_heading, error) < 0)
            return -1;
        if (!(is_first && has_heading) && take_row(&table, error) < 0)
            return -1;
    }
}
