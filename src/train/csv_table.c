#include "train/csv_table.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "train/csv_record.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct reader {
    const char *at, *end;
    char separator;
    uint32_t line; /* where `at` stands, from 1 */
    uint32_t column_count;
    uint32_t label_column;
    uint8_t last_class; /* seen: the next is often the same */
    struct csv_table *table;
};

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The next field of the row, without its quotes; *out_is_last when its line ends behind it. */
static int next_field(struct reader *reader, struct text *out_field, bool *out_is_last,
                      struct error *error)
{
    const char *start = reader->at, *at = start, *end = reader->end;
    if (at < end && *at == '"') {
        start = ++at;
        while (at < end && (*at != '"' || (at + 1 < end && at[1] == '"'))) {
            reader->line += *at == '\n';
            at += *at == '"' ? 2 : 1;
        }
        if (at >= end)
            return error_set(error, ERROR_INVALID, "line %u: a quote is not closed", reader->line);
        *out_field = (struct text){start, (size_t)(at - start)};
        at++;
    } else {
        while (at < end && *at != reader->separator && *at != '\n')
            at++;
        *out_field = text_trim((struct text){start, (size_t)(at - start)});
    }
    while (at < end && (*at == '\r' || *at == ' '))
        at++;
    *out_is_last = at >= end || *at == '\n';
    if (at < end && *at != '\n' && *at != reader->separator)
        return error_set(error, ERROR_INVALID, "line %u: something follows a quoted field",
                         reader->line);
    reader->at = at < end ? at + 1 : end;
    return 0;
}

static bool skip_empty_lines(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == '\n' || *reader->at == '\r')) {
        reader->line += *reader->at == '\n';
        reader->at++;
    }
    return reader->at < reader->end;
}

static int take_name(struct text field, uint32_t line, char *out, struct error *error)
{
    if (!text_is_utf8(field) || text_copy(field, out, CSV_TABLE_NAME_SIZE, error) < 0)
        return error_set(error, ERROR_INVALID, "line %u: a name is longer than %d or is no UTF-8",
                         line, CSV_TABLE_NAME_SIZE - 1);
    return 0;
}

/* ---- Columns --------------------------------------------------------------------------------- */

/* What the first line holds. `out_fields` has room for one field more than is allowed. */
static int read_first(struct reader *reader, struct text *out_fields, struct error *error)
{
    bool is_last = false;
    while (!is_last) {
        if (reader->column_count == CSV_TABLE_FEATURES_MAX + 1)
            return error_set(error, ERROR_INVALID, "more than %d columns",
                             CSV_TABLE_FEATURES_MAX + 1);
        if (next_field(reader, &out_fields[reader->column_count++], &is_last, error) < 0)
            return -1;
    }
    if (reader->column_count < 2)
        return error_set(error, ERROR_INVALID,
                         "line %u: one column is too few: there must be numbers and a label",
                         reader->line);
    return 0;
}

/* A word where a number must be makes it a line of names; the last column may be the label's. */
static bool is_heading(const struct reader *reader, const struct text *fields)
{
    double ignored;
    for (uint32_t i = 0; i + 1 < reader->column_count; i++)
        if (fields[i].size && !csv_number_parse(fields[i], &ignored))
            return true;
    return false;
}

static int find_label(struct reader *reader, const struct text *fields, const char *label,
                      struct error *error)
{
    reader->label_column = reader->column_count - 1;
    if (!label)
        return 0;
    for (uint32_t i = 0; i < reader->column_count; i++)
        if (text_equal(fields[i], text_of(label))) {
            reader->label_column = i;
            return 0;
        }
    return error_set(error, ERROR_NOT_FOUND, "its first line names no column \"%.60s\"", label);
}

static int name_columns(struct reader *reader, const struct text *fields, struct error *error)
{
    struct csv_table *table = reader->table;
    table->feature_count = reader->column_count - 1;
    table->feature_names = calloc(table->feature_count, sizeof(*table->feature_names));
    ASSERT(table->feature_names);
    for (uint32_t i = 0, feature = 0; i < reader->column_count; i++) {
        char *name =
            i == reader->label_column ? table->label_name : table->feature_names[feature++];
        if (!fields)
            snprintf(name, CSV_TABLE_NAME_SIZE, "%u", i + 1);
        else if (take_name(fields[i], reader->line, name, error) < 0)
            return -1;
    }
    return 0;
}

static int read_heading(struct reader *reader, const struct csv_table_options *options,
                        struct error *error)
{
    struct text fields[CSV_TABLE_FEATURES_MAX + 1];
    const char *start = reader->at;
    if (read_first(reader, fields, error) < 0 ||
        find_label(reader, fields, options->label, error) < 0)
        return -1;
    const bool has_names = options->label || is_heading(reader, fields);
    if (name_columns(reader, has_names ? fields : NULL, error) < 0)
        return -1;
    if (has_names)
        reader->line++;
    else
        reader->at = start;
    return 0;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static int read_label(struct reader *reader, struct text field, uint8_t *out_class,
                      struct error *error)
{
    struct csv_table *table = reader->table;
    if (field.size == 0)
        return error_set(error, ERROR_INVALID, "line %u: the label is empty", reader->line);
    if (table->class_count && text_is(field, table->class_names[reader->last_class])) {
        *out_class = reader->last_class;
        return 0;
    }
    uint32_t i = 0;
    while (i < table->class_count && !text_is(field, table->class_names[i]))
        i++;
    if (i == table->class_count) {
        if (i == CSV_TABLE_CLASSES_MAX)
            return error_set(error, ERROR_INVALID,
                             "line %u: column \"%s\" has more than %d different values: the label "
                             "is one of a few classes, no measure",
                             reader->line, table->label_name, CSV_TABLE_CLASSES_MAX);
        if (take_name(field, reader->line, table->class_names[i], error) < 0)
            return -1;
        table->class_count++;
    }
    *out_class = reader->last_class = (uint8_t)i;
    return 0;
}

static int read_value(const struct reader *reader, struct text field, uint32_t feature, float *out,
                      struct error *error)
{
    double value = 0;
    if (!csv_number_parse(field, &value) || fabs(value) > (double)FLT_MAX)
        return error_set(error, ERROR_INVALID, "line %u: column \"%s\": \"%.*s\" is not a number",
                         reader->line, reader->table->feature_names[feature],
                         (int)(field.size < 40 ? field.size : 40), field.data);
    *out = (float)value;
    return 0;
}

static int read_row(struct reader *reader, struct error *error)
{
    struct csv_table *table = reader->table;
    float *values = table->values + (size_t)table->row_count * table->feature_count;
    bool is_last = false;
    for (uint32_t i = 0, feature = 0; i < reader->column_count; i++) {
        struct text field;
        if (is_last)
            return error_set(error, ERROR_INVALID, "line %u: %u fields, not %u", reader->line, i,
                             reader->column_count);
        if (next_field(reader, &field, &is_last, error) < 0)
            return -1;
        if (i == reader->label_column) {
            if (read_label(reader, field, &table->labels[table->row_count], error) < 0)
                return -1;
        } else {
            if (read_value(reader, field, feature, &values[feature], error) < 0)
                return -1;
            feature++;
        }
    }
    if (!is_last)
        return error_set(error, ERROR_INVALID, "line %u: more than %u fields", reader->line,
                         reader->column_count);
    table->row_count++;
    reader->line++;
    return 0;
}

/* No more rows than lines are left. */
static int make_room(struct reader *reader, struct error *error)
{
    struct csv_table *table = reader->table;
    size_t count = 1;
    for (const char *at = reader->at; (at = memchr(at, '\n', (size_t)(reader->end - at))); at++)
        count++;
    if (count > UINT32_MAX / 2)
        return error_set(error, ERROR_EXHAUSTED, "more than %u rows", UINT32_MAX / 2);
    table->labels = malloc(count);
    table->values = malloc(count * table->feature_count * sizeof(*table->values));
    table->class_names = calloc(CSV_TABLE_CLASSES_MAX, sizeof(*table->class_names));
    if (!table->labels || !table->values || !table->class_names)
        return error_set(error, ERROR_EXHAUSTED, "no memory for %zu rows", count);
    return 0;
}

/* ---- Classes --------------------------------------------------------------------------------- */

static int compare_names(const void *left, const void *right)
{
    const char *a = left, *b = right;
    double x, y;
    if (csv_number_parse(text_of(a), &x) && csv_number_parse(text_of(b), &y) && x != y)
        return x < y ? -1 : 1;
    return strcmp(a, b);
}

/* The rows' order says nothing: the same data give the same classes. */
static void sort_classes(struct csv_table *table)
{
    char names[CSV_TABLE_CLASSES_MAX][CSV_TABLE_NAME_SIZE];
    uint8_t places[CSV_TABLE_CLASSES_MAX] = {0};
    memcpy(names, table->class_names, sizeof(names));
    qsort(table->class_names, table->class_count, sizeof(*table->class_names), compare_names);
    for (uint32_t i = 0; i < table->class_count; i++)
        for (uint32_t k = 0; k < table->class_count; k++)
            if (!strcmp(names[i], table->class_names[k]))
                places[i] = (uint8_t)k;
    for (uint32_t i = 0; i < table->row_count; i++)
        table->labels[i] = places[table->labels[i]];
}

/* ---- The whole ------------------------------------------------------------------------------- */

static char find_separator(struct text csv)
{
    const char *end = memchr(csv.data, '\n', csv.size);
    const size_t size = end ? (size_t)(end - csv.data) : csv.size;
    static const char separators[] = {',', ';', '\t'};
    for (size_t i = 0; i < sizeof(separators); i++)
        if (memchr(csv.data, separators[i], size))
            return separators[i];
    return ',';
}

int csv_table_parse(struct text csv, const struct csv_table_options *options,
                    struct csv_table **out_table, struct error *error)
{
    const struct text mark = TEXT("\xef\xbb\xbf");
    if (csv.size > options->size_max)
        return error_set(error, ERROR_EXHAUSTED, "%zu bytes are more than the %zu allowed",
                         csv.size, options->size_max);
    if (text_starts_with(csv, mark))
        csv = (struct text){csv.data + mark.size, csv.size - mark.size};
    if (csv.size == 0)
        return error_set(error, ERROR_INVALID, "the file is empty");
    AUTO(csv_table) struct csv_table *table = calloc(1, sizeof(*table));
    ASSERT(table);
    struct reader reader = {.at = csv.data,
                            .end = csv.data + csv.size,
                            .separator = find_separator(csv),
                            .line = 1,
                            .table = table};
    if (!skip_empty_lines(&reader))
        return error_set(error, ERROR_INVALID, "the file is empty");
    if (read_heading(&reader, options, error) < 0 || make_room(&reader, error) < 0)
        return -1;
    while (skip_empty_lines(&reader))
        if (read_row(&reader, error) < 0)
            return -1;
    if (table->row_count < CSV_TABLE_ROWS_MIN)
        return error_set(error, ERROR_INVALID, "%u rows are too few: at least %d", table->row_count,
                         CSV_TABLE_ROWS_MIN);
    if (table->class_count < 2)
        return error_set(error, ERROR_INVALID,
                         "column \"%s\" has one value alone: there is nothing to tell apart",
                         table->label_name);
    sort_classes(table);
    *out_table = TAKE(table);
    return 0;
}

void csv_table_free(struct csv_table *table)
{
    if (!table)
        return;
    free(table->values);
    free(table->labels);
    free(table->feature_names);
    free(table->class_names);
    free(table);
}

/* ---- Files ----------------------------------------------------------------------------------- */

enum { PIECE = 1 << 20 };

/* gzread passes raw bytes through. */
static int read_all(gzFile file, struct buffer *bytes, struct error *error)
{
    for (;;) {
        uint8_t *room = buffer_reserve(bytes, PIECE);
        if (!room)
            return error_set(error, ERROR_EXHAUSTED, "it is larger than %zu bytes",
                             bytes->size_max);
        const int got = gzread(file, room, PIECE);
        if (got < 0)
            return error_set(error, ERROR_CORRUPT, "it cannot be read or is no whole gzip file");
        if (got == 0)
            return 0;
        buffer_advance(bytes, (size_t)got);
    }
}

int csv_table_open(const char *path, const struct csv_table_options *options,
                   struct csv_table **out_table, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    gzFile file = gzdopen(fd, "rb");
    if (!file)
        return error_set(error, ERROR_EXHAUSTED, "open \"%s\": no memory", path);
    (void)TAKE_FD(fd); /* gzclose closes it */
    gzbuffer(file, 1 << 18);
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, options->size_max + PIECE); /* read in pieces; the parser is exact */
    const int read = read_all(file, &bytes, error);
    gzclose_r(file); /* only read from: nothing to lose */
    if (read < 0 || csv_table_parse(buffer_text(&bytes), options, out_table, error) < 0)
        return error_wrap(error, "\"%s\"", path);
    return 0;
}
