/*
 * LIBSVM: one row a line, "LABEL INDEX:VALUE INDEX:VALUE ...", indices rising from 1; what follows
 * a # is left out. Rows stay sparse. An index of 0 is taken where the file counts from 0.
 */
#include "base/memory.h"
#include "train/csv_record.h"
#include "train/reader_internal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    const struct import_options *options;
    struct import *import;
    uint64_t line;
    uint32_t index_max;
    bool has_zero; /* an index: then all count from 0 */
    uint32_t *indices;
    float *values;
};

static void rows_done(struct rows *rows)
{
    free(rows->indices);
    free(rows->values);
}

static bool next_word(struct text *rest, struct text *out_word)
{
    *rest = text_trim(*rest);
    size_t size = 0;
    while (size < rest->size && rest->data[size] != ' ' && rest->data[size] != '\t')
        size++;
    *out_word = (struct text){rest->data, size};
    *rest = (struct text){rest->data + size, rest->size - size};
    return size > 0;
}

static int read_entry(const struct rows *rows, struct text word, size_t column, uint32_t *out_index,
                      float *out_value, struct error *error)
{
    struct text index, value;
    uint64_t number = 0;
    double amount = 0;
    struct error ignored;
    if (!text_cut(word, ':', &index, &value) || text_parse_u64(index, &number, &ignored) < 0 ||
        !csv_number_parse(value, &amount) || fabs(amount) > (double)FLT_MAX)
        return error_set(error, ERROR_INVALID,
                         "line %" PRIu64 ", column %zu: \"%.*s\" is not INDEX:VALUE", rows->line,
                         column, (int)(word.size < 40 ? word.size : 40), word.data);
    if (number > IMPORT_SPARSE_WIDTH_MAX)
        return error_set(error, ERROR_INVALID,
                         "line %" PRIu64 ", column %zu: index %" PRIu64 " is above %d", rows->line,
                         column, number, IMPORT_SPARSE_WIDTH_MAX);
    *out_index = (uint32_t)number;
    *out_value = (float)amount;
    return 0;
}

static int read_entries(struct rows *rows, struct text line, struct text rest, uint32_t *out_count,
                        struct error *error)
{
    uint32_t count = 0;
    struct text word;
    while (next_word(&rest, &word)) {
        const size_t column = (size_t)(word.data - line.data) + 1;
        if (count == IMPORT_ROW_ENTRIES_MAX)
            return error_set(error, ERROR_INVALID, "line %" PRIu64 ": more than %d entries",
                             rows->line, IMPORT_ROW_ENTRIES_MAX);
        if (read_entry(rows, word, column, &rows->indices[count], &rows->values[count], error) < 0)
            return -1;
        if (count && rows->indices[count] <= rows->indices[count - 1])
            return error_set(error, ERROR_INVALID,
                             "line %" PRIu64 ", column %zu: index %u does not rise", rows->line,
                             column, rows->indices[count]);
        count++;
    }
    if (count && rows->indices[0] == 0)
        rows->has_zero = true;
    if (count && rows->indices[count - 1] > rows->index_max)
        rows->index_max = rows->indices[count - 1];
    *out_count = count;
    return 0;
}

static int add_target(struct rows *rows, struct text word, struct error *error)
{
    double value;
    if (!csv_number_parse(word, &value) || fabs(value) > (double)FLT_MAX)
        return error_set(error, ERROR_INVALID, "line %" PRIu64 ": label \"%.*s\" is not a number",
                         rows->line, (int)(word.size < 40 ? word.size : 40), word.data);
    if (rows->options->is_number)
        return import_add_number_target(&rows->import->train, (float)value, error);
    int32_t label;
    /* "+1" and "1" are the same class. */
    if (word.data[0] == '+')
        word = (struct text){word.data + 1, word.size - 1};
    if (import_class(rows->import, word, IMPORT_CLASSES_MAX, &label, error) < 0)
        return error_wrap(error, "line %" PRIu64, rows->line);
    return import_add_class_target(&rows->import->train, label, error);
}

static int add_line(struct rows *rows, struct text line, struct error *error)
{
    const char *comment = memchr(line.data, '#', line.size);
    struct text rest = {line.data, comment ? (size_t)(comment - line.data) : line.size}, label;
    uint32_t count;
    if (!next_word(&rest, &label))
        return 0;
    if (add_target(rows, label, error) < 0 || read_entries(rows, line, rest, &count, error) < 0 ||
        import_add_sparse(&rows->import->train, rows->indices, rows->values, count, error) < 0)
        return -1;
    return import_row_end(&rows->import->train, error);
}

/* Indices from 1 become places from 0. */
static void move_down(struct import_rows *rows)
{
    uint32_t *indices = (uint32_t *)(void *)rows->indices.data;
    for (size_t i = 0; i < rows->indices.size / sizeof(*indices); i++)
        indices[i]--;
}

int reader_libsvm_read(const struct reader_source *source, const struct import_options *options,
                       struct import *out_import, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    __attribute__((cleanup(rows_done))) struct rows rows = {.options = options,
                                                            .import = out_import};
    if (reader_source_open(source, options->size_max, &stream, error) < 0)
        return -1;
    rows.indices = memory_zeroed(IMPORT_ROW_ENTRIES_MAX, sizeof(*rows.indices));
    rows.values = memory_zeroed(IMPORT_ROW_ENTRIES_MAX, sizeof(*rows.values));
    for (;;) {
        struct text line;
        bool has_line;
        if (data_stream_line(stream, &line, &has_line, error) < 0)
            return -1;
        if (!has_line)
            break;
        rows.line = data_stream_line_number(stream);
        if (add_line(&rows, line, error) < 0)
            return -1;
    }
    if (rows.index_max == 0)
        return error_set(error, ERROR_INVALID, "no row has an entry with an index above 0");
    out_import->form = IMPORT_SPARSE;
    out_import->target = options->is_number ? IMPORT_NUMBER : IMPORT_CLASS;
    out_import->channels = out_import->height = 1;
    out_import->width = rows.index_max + (rows.has_zero ? 1 : 0);
    if (!rows.has_zero)
        move_down(&out_import->train);
    if (!options->is_number)
        import_sort_classes(out_import);
    return 0;
}

static int read_file(const char *path, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    const struct reader_source source = {.path = path};
    return reader_libsvm_read(&source, options, out_import, error);
}

/* The first line has a number and then "INDEX:". */
static bool looks_like(struct text start)
{
    struct text line, tail = {0}, label, entry, index, value;
    double ignored;
    uint64_t number;
    struct error error;
    text_cut(start, '\n', &line, &tail);
    return next_word(&line, &label) && csv_number_parse(label, &ignored) &&
           next_word(&line, &entry) && text_cut(entry, ':', &index, &value) &&
           text_parse_u64(index, &number, &error) == 0 && csv_number_parse(value, &ignored);
}

static bool matches(const struct reader_clue *clue)
{
    return !clue->is_folder &&
           (text_ends_with(clue->name, TEXT(".libsvm")) ||
            text_ends_with(clue->name, TEXT(".svm")) || looks_like(clue->start));
}

const struct reader reader_libsvm = {
    .name = "libsvm",
    .help = "LABEL INDEX:VALUE ... in each line, sparse",
    .matches = matches,
    .read = read_file,
};
