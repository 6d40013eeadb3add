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

static struct look_row copy_row(struct arena *arena, const struct text *values, size_t count)
{
    struct look_row row = {.count = count < LOOK_COLUMNS_MAX ? count : LOOK_COLUMNS_MAX};
    row.values = arena_alloc(arena, row.count * sizeof(*row.values) + 1);
    for (size_t i = 0; i < row.count; i++)
        row.values[i] = shorten(arena, values[i]);
    return row;
}

static struct look_row number_columns(struct arena *arena, size_t count)
{
    struct look_row row = {.count = count < LOOK_COLUMNS_MAX ? count : LOOK_COLUMNS_MAX};
    row.values = arena_alloc(arena, row.count * sizeof(*row.values) + 1);
    for (size_t i = 0; i < row.count; i++)
        row.values[i] = text_of(arena_format(arena, "%zu", i + 1));
    return row;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* The next row; false at the end. The last of a file that goes on may be cut, and may look wrong
 * for that alone: it is not shown, nor is what is wrong with it said. */
typedef int next_row(void *context, struct look_row *out_row, bool *out_has_row,
                     struct error *error);

static int look_at_rows(next_row *next, void *context, bool is_whole, struct look *look,
                        struct error *error)
{
    struct look_row row;
    bool has_row = true;
    while (look->row_count < LOOK_ROWS_MAX) {
        if (next(context, &row, &has_row, error) < 0) {
            if (is_whole || !look->row_count)
                return -1;
            break;
        }
        if (!has_row)
            break;
        look->rows[look->row_count++] = row;
    }
    if (!is_whole && look->row_count > 1 && look->row_count < LOOK_ROWS_MAX)
        look->row_count--;
    return 0;
}

struct table_rows {
    struct arena *arena;
    struct csv_record *record;
    bool is_held; /* the record is still to be given */
};

static int next_record(void *context, struct look_row *out_row, bool *out_has_row,
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
static int next_line(void *context, struct look_row *out_row, bool *out_has_row,
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
    struct look look = {.format = LOOK_FOLDER};
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (look_is_archive(text_of(path))) {
        *out_look = look;
        return 0;
    }
    if (reader_find(path, NULL, &reader, error) < 0)
        return -1;
    look.format = reader->name;
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

static void write_row(struct json_writer *writer, const struct look_row *row)
{
    json_array_begin(writer);
    for (size_t i = 0; i < row->count; i++)
        json_text(writer, row->values[i]);
    json_array_end(writer);
}

void look_write(struct json_writer *writer, const struct look *look)
{
    json_object_begin(writer);
    json_field_string(writer, "format", look->format);
    json_key(writer, "columns");
    write_row(writer, &look->columns);
    json_key(writer, "rows");
    json_array_begin(writer);
    for (size_t i = 0; i < look->row_count; i++)
        write_row(writer, &look->rows[i]);
    json_array_end(writer);
    json_object_end(writer);
}
