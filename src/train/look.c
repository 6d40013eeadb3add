#include "train/look.h"

#include "train/csv_columns.h"
#include "train/reader_internal.h"

#include <string.h>

/* On a character's boundary. */
static struct text shorten(struct arena *arena, struct text value)
{
    if (value.size > LOOK_VALUE_SIZE_MAX) {
        value.size = LOOK_VALUE_SIZE_MAX;
        while (value.size && ((uint8_t)value.data[value.size] & 0xc0) == 0x80)
            value.size--;
    }
    return arena_copy_text(arena, value);
}

static struct json_array make_row(struct arena *arena, size_t count)
{
    struct json_array row = {.count = count < LOOK_COLUMNS_MAX ? count : LOOK_COLUMNS_MAX};
    row.items = arena_alloc(arena, row.count * sizeof(struct text) + 1);
    return row;
}

static struct json_array copy_row(struct arena *arena, const struct text *values, size_t count)
{
    const struct json_array row = make_row(arena, count);
    for (size_t i = 0; i < row.count; i++)
        ((struct text *)row.items)[i] = shorten(arena, values[i]);
    return row;
}

static struct json_array number_columns(struct arena *arena, size_t count)
{
    const struct json_array row = make_row(arena, count);
    for (size_t i = 0; i < row.count; i++)
        ((struct text *)row.items)[i] = text_of(arena_format(arena, "%zu", i + 1));
    return row;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The next row; false at the end. The last of a file that goes on may be cut, and may look wrong
 * for that alone: it is not shown, nor is what is wrong with it said. */
typedef int next_row(void *context, struct json_array *out_row, bool *out_has_row,
                     struct error *error);

static int look_at_rows(next_row *next, void *context, bool is_whole, struct look *look,
                        struct error *error)
{
    struct look_row *rows = look->rows.items;
    size_t *count = &look->rows.count;
    bool has_row = true;
    while (*count < LOOK_ROWS_MAX) {
        if (next(context, &rows[*count].values, &has_row, error) < 0) {
            if (is_whole || !*count)
                return -1;
            return 0;
        }
        if (!has_row)
            break;
        ++*count;
    }
    if (!is_whole && !has_row && *count > 1)
        --*count;
    return 0;
}

struct table_rows {
    struct arena *arena;
    struct csv_record *record;
    bool is_held; /* the record is still to be given */
};

static int next_record(void *context, struct json_array *out_row, bool *out_has_row,
                       struct error *error)
{
    struct table_rows *rows = context;
    *out_has_row = true;
    if (!rows->is_held && csv_record_next(rows->record, out_has_row, error) < 0)
        return -1;
    rows->is_held = false;
    if (*out_has_row)
        *out_row = copy_row(rows->arena, rows->record->fields, rows->record->count);
    return 0;
}

static int look_at_table(struct arena *arena, struct data_stream *stream, bool is_whole,
                         struct look *look, struct error *error)
{
    struct csv_record record AUTO_CSV_RECORD;
    struct import_options options;
    bool has_record;
    import_options_default(&options);
    csv_record_init(&record, stream, IMPORT_COLUMNS_MAX);
    if (csv_record_next(&record, &has_record, error) < 0)
        return -1;
    if (!has_record)
        return error_set(error, ERROR_INVALID, "the file is empty");
    const bool has_heading = csv_is_heading(&record, &options);
    look->columns = has_heading ? copy_row(arena, record.fields, record.count)
                                : number_columns(arena, record.count);
    struct table_rows rows = {arena, &record, .is_held = !has_heading};
    return look_at_rows(next_record, &rows, is_whole, look, error);
}

struct line_rows {
    struct arena *arena;
    struct data_stream *stream;
};

/* LABEL <tab> TEXT, or running text. */
static int next_line(void *context, struct json_array *out_row, bool *out_has_row,
                     struct error *error)
{
    struct line_rows *rows = context;
    struct text line, values[2];
    do {
        if (data_stream_line(rows->stream, &line, out_has_row, error) < 0)
            return -1;
    } while (*out_has_row && !text_trim(line).size);
    if (!*out_has_row)
        return 0;
    const bool is_labelled = text_cut(line, '\t', &values[0], &values[1]);
    *out_row = copy_row(rows->arena, is_labelled ? values : &line, is_labelled ? 2 : 1);
    return 0;
}

/* ---- Files ----------------------------------------------------------------------------------- */

bool look_is_archive(struct text name)
{
    static const struct text endings[] = {
        {".tar", 4}, {".tar.gz", 7}, {".tgz", 4}, {".tar.zst", 8}, {".zip", 4}};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (text_ends_with(name, endings[i]))
            return true;
    return false;
}

int look_at(struct arena *arena, const char *path, bool is_whole, struct look *out_look,
            struct error *error)
{
    const struct reader *reader;
    struct look look = {.format = TEXT(LOOK_FOLDER)};
    look.rows.items = arena_alloc(arena, LOOK_ROWS_MAX * sizeof(struct look_row));
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (look_is_archive(text_of(path))) {
        *out_look = look;
        return 0;
    }
    if (reader_find(path, NULL, &reader, error) < 0)
        return -1;
    look.format = text_of(reader->name);
    const bool is_table = reader == &reader_csv;
    if (is_table || reader == &reader_text || reader == &reader_libsvm) {
        struct line_rows lines = {arena, NULL};
        if (data_stream_open(path, UINT64_MAX, &stream, error) < 0)
            return -1;
        lines.stream = stream;
        if ((is_table ? look_at_table(arena, stream, is_whole, &look, error)
                      : look_at_rows(next_line, &lines, is_whole, &look, error)) < 0)
            return error_wrap(error, "\"%s\" (%s)", path, reader->name);
    }
    *out_look = look;
    return 0;
}

/* ---- Said ------------------------------------------------------------------------------------ */

static const struct json_field row_fields[] = {
    {"values", JSON_TEXTS, offsetof(struct look_row, values), .is_required = true,
     .size_max = LOOK_COLUMNS_MAX},
};
static const struct json_schema row_schema = JSON_SCHEMA("row", row_fields, struct look_row);

static const struct json_field look_fields[] = {
    {"format", JSON_TEXT, offsetof(struct look, format), .is_required = true},
    {"columns", JSON_TEXTS, offsetof(struct look, columns), .is_required = true,
     .size_max = LOOK_COLUMNS_MAX},
    {"rows", JSON_ARRAY, offsetof(struct look, rows), .is_required = true,
     .size_max = LOOK_ROWS_MAX, .schema = &row_schema},
};
const struct json_schema look_schema = JSON_SCHEMA("look", look_fields, struct look);

static void write_row(struct json_writer *writer, const struct json_array *row)
{
    json_array_begin(writer);
    for (size_t i = 0; i < row->count; i++)
        json_text(writer, ((const struct text *)row->items)[i]);
    json_array_end(writer);
}

void look_write(struct json_writer *writer, const struct look *look)
{
    json_object_begin(writer);
    json_field_text(writer, "format", look->format);
    json_key(writer, "columns");
    write_row(writer, &look->columns);
    json_key(writer, "rows");
    json_array_begin(writer);
    for (size_t i = 0; i < look->rows.count; i++)
        write_row(writer, &((const struct look_row *)look->rows.items)[i].values);
    json_array_end(writer);
    json_object_end(writer);
}
