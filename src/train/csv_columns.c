#include "train/csv_columns.h"

#include "base/assert.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

/* A word where a number must be makes it a line of names; the last column may be the label's. Where
 * columns of words are expected, only a line that has no number at all. */
bool csv_is_heading(const struct csv_record *record, const struct import_options *options)
{
    double ignored;
    uint32_t words = 0, numbers = 0;
    for (uint32_t i = 0; i < record->count; i++) {
        const bool is_number = csv_number_parse(record->fields[i], &ignored);
        numbers += is_number;
        words += !is_number && record->fields[i].size && i + 1 < record->count;
    }
    return options->categories == IMPORT_CATEGORIES_REFUSE ? words > 0 : numbers == 0;
}

static int read_names(struct csv_columns *columns, const struct csv_record *record,
                      const struct import_options *options, struct error *error)
{
    if (record->count < 2)
        return error_set(error, ERROR_INVALID,
                         "line %" PRIu64
                         ": one column is too few: there must be numbers and a label",
                         record->line);
    columns->has_heading = csv_is_heading(record, options);
    columns->columns = calloc(record->count, sizeof(*columns->columns));
    ASSERT(columns->columns);
    columns->count = record->count;
    for (uint32_t i = 0; i < columns->count; i++)
        map_init(&columns->columns[i].values);
    for (uint32_t i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->columns[i];
        const struct text name = record->fields[i];
        if (!columns->has_heading || name.size == 0)
            snprintf(column->name, sizeof(column->name), "%u", i + 1);
        else if (!text_is_plain(name) ||
                 text_copy(name, column->name, sizeof(column->name), error) < 0)
            return error_set(error, ERROR_INVALID,
                             "line %" PRIu64 ", column %u: a name is longer than %d or is no plain "
                             "UTF-8",
                             record->line, i + 1, IMPORT_NAME_SIZE - 1);
    }
    return 0;
}

/* "a, b and 3 more" */
static const char *columns_list(const struct csv_columns *columns, char *out, size_t out_size)
{
    enum { ROOM_FOR_REST = 24 };
    size_t used = 0;
    uint32_t shown = 0;
    for (; shown < columns->count; shown++) {
        const char *name = columns->columns[shown].name;
        if (used + strlen(name) + ROOM_FOR_REST > out_size)
            break;
        used += (size_t)snprintf(out + used, out_size - used, "%s%s", used ? ", " : "", name);
    }
    if (shown < columns->count)
        snprintf(out + used, out_size - used, " and %u more", columns->count - shown);
    return out;
}

static int find_column(const struct csv_columns *columns, struct text name, uint32_t *out_at,
                       struct error *error)
{
    for (uint32_t i = 0; i < columns->count; i++)
        if (text_is(name, columns->columns[i].name)) {
            *out_at = i;
            return 0;
        }
    char list[200];
    return error_set(error, ERROR_NOT_FOUND, "there is no column \"" TEXT_FORMAT "\"%s%s",
                     TEXT_ARGS(name),
                     columns->has_heading ? "; there are "
                                          : ": the file has no line of names, so they are "
                                            "called 1, 2 and so on",
                     columns->has_heading ? columns_list(columns, list, sizeof(list)) : "");
}

/* Each of a list of names is a column; `field` is where they were given. */
static int check_names(const struct csv_columns *columns, const char *names, const char *field,
                       struct error *error)
{
    struct text rest = text_of(names ? names : ""), name;
    while (rest.size) {
        struct text tail = {0};
        uint32_t at;
        text_cut(rest, ',', &name, &tail);
        name = text_trim(name);
        if (name.size && !text_is(name, "*") && find_column(columns, name, &at, error) < 0)
            return error_wrap(error, "train.read.%s", field);
        rest = tail;
    }
    return 0;
}

static int name_columns(struct csv_columns *columns, const struct csv_record *record,
                        const struct import_options *options, struct error *error)
{
    if (read_names(columns, record, options, error) < 0)
        return -1;
    columns->target = columns->count - 1;
    if (options->target &&
        find_column(columns, text_of(options->target), &columns->target, error) < 0)
        return -1;
    /* A part of others' data may lack what others have. */
    if (!options->is_part &&
        (check_names(columns, options->skip_columns, "skip", error) < 0 ||
         check_names(columns, options->category_columns, "category_columns", error) < 0))
        return -1;
    const bool are_all = reader_list_has(options->category_columns, "*");
    for (uint32_t i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->columns[i];
        if (i == columns->target)
            column->kind = CSV_COLUMN_TARGET;
        else if (reader_list_has(options->skip_columns, column->name))
            column->kind = CSV_COLUMN_SKIPPED;
        else if (are_all || reader_list_has(options->category_columns, column->name))
            column->kind = CSV_COLUMN_CATEGORY;
    }
    return 0;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void note_value(struct csv_column *column, struct text field)
{
    if (column->has_too_many || map_get_text(&column->values, field))
        return;
    if (column->values.count == CSV_CATEGORIES_MAX) {
        column->has_too_many = true;
        map_done(&column->values);
        map_init(&column->values);
        return;
    }
    map_put_text(&column->values, field, column);
}

static void note_word(struct csv_column *column, struct text field, uint64_t line)
{
    column->kind = CSV_COLUMN_CATEGORY;
    column->word_line = line;
    const size_t size = field.size < sizeof(column->word) ? field.size : sizeof(column->word) - 1;
    memcpy(column->word, field.data, size);
    text_make_plain(column->word);
}

static int refuse_word(const struct csv_column *column, struct error *error)
{
    return error_set(error, ERROR_INVALID,
                     "line %" PRIu64 ": column \"%s\": \"%s\" is not a number (words are "
                     "categories with train.read.categories: one-hot)",
                     column->word_line, column->name, column->word);
}

static int see_row(struct csv_columns *columns, const struct csv_record *record,
                   const struct import_options *options, struct error *error)
{
    if (record->count != columns->count)
        return error_set(error, ERROR_INVALID, "line %" PRIu64 ": %u fields, not %u", record->line,
                         record->count, columns->count);
    for (uint32_t i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->columns[i];
        const struct text field = record->fields[i];
        double value;
        if (column->kind == CSV_COLUMN_TARGET || column->kind == CSV_COLUMN_SKIPPED)
            continue;
        if (csv_is_missing(field)) {
            column->missing++;
            if (column->kind == CSV_COLUMN_NUMBER && options->missing == IMPORT_MISSING_REFUSE &&
                options->categories == IMPORT_CATEGORIES_REFUSE)
                return error_set(error, ERROR_INVALID,
                                 "line %" PRIu64 ": column \"%s\": the value is missing, it is not "
                                 "a number (train.read.missing: drop, mean or a number)",
                                 record->line, column->name);
            continue;
        }
        if (options->categories == IMPORT_CATEGORIES_ONE_HOT)
            note_value(column, field);
        if (column->kind == CSV_COLUMN_CATEGORY)
            continue;
        if (csv_number_parse(field, &value) && fabs(value) <= (double)FLT_MAX) {
            column->sum += value;
            column->count++;
            continue;
        }
        note_word(column, field, record->line);
        if (options->categories == IMPORT_CATEGORIES_REFUSE)
            return refuse_word(column, error);
    }
    columns->rows++;
    return 0;
}

static int compare_texts(const void *left, const void *right)
{
    return text_compare(*(const struct text *)left, *(const struct text *)right);
}

/* In the order of their names: that of the rows says nothing. */
static void number_values(struct csv_column *column)
{
    const size_t count = column->values.count;
    if (count == 0)
        return;
    struct text *names = calloc(count, sizeof(*names));
    ASSERT(names);
    memcpy(names, column->values.names, count * sizeof(*names));
    qsort(names, count, sizeof(*names), compare_texts);
    struct map sorted;
    map_init(&sorted);
    for (size_t i = 0; i < count; i++)
        map_put_text(&sorted, names[i], (void *)(i + 1)); // NOLINT(performance-no-int-to-ptr)
    map_done(&column->values);
    column->values = sorted;
    free(names);
}

static int end_columns(struct csv_columns *columns, const struct import_options *options,
                       struct error *error)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        struct csv_column *column = &columns->columns[i];
        if (column->kind == CSV_COLUMN_NUMBER && column->missing &&
            options->missing == IMPORT_MISSING_REFUSE)
            return error_set(error, ERROR_INVALID,
                             "column \"%s\": %" PRIu64 " values are missing (train.read.missing: "
                             "drop, mean or a number)",
                             column->name, column->missing);
        if (column->kind == CSV_COLUMN_CATEGORY &&
            options->categories == IMPORT_CATEGORIES_ONE_HOT && column->has_too_many)
            return error_set(
                error, ERROR_INVALID,
                "column \"%s\" has more than %d different values: leave it out (train.read.skip)",
                column->name, CSV_CATEGORIES_MAX);
        number_values(column);
    }
    return 0;
}

int csv_columns_read(const struct reader_source *source, const struct import_options *options,
                     struct csv_columns *out_columns, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct csv_columns columns AUTO_CSV_COLUMNS = {0};
    if (reader_source_open(source, options->size_max, &stream, error) < 0)
        return -1;
    struct csv_record record AUTO_CSV_RECORD;
    csv_record_init(&record, stream, IMPORT_COLUMNS_MAX);
    bool has_record;
    if (csv_record_next(&record, &has_record, error) < 0)
        return -1;
    if (!has_record)
        return error_set(error, ERROR_INVALID, "the file is empty");
    if (name_columns(&columns, &record, options, error) < 0)
        return -1;
    if (columns.has_heading && csv_record_next(&record, &has_record, error) < 0)
        return -1;
    while (has_record)
        if (see_row(&columns, &record, options, error) < 0 ||
            csv_record_next(&record, &has_record, error) < 0)
            return -1;
    if (end_columns(&columns, options, error) < 0)
        return -1;
    *out_columns = columns;
    columns = (struct csv_columns){0};
    return 0;
}

void csv_columns_done(struct csv_columns *columns)
{
    for (uint32_t i = 0; i < columns->count; i++)
        map_done(&columns->columns[i].values);
    free(columns->columns);
    *columns = (struct csv_columns){0};
}
