/* Predict texts: lines of LABEL <tab> TEXT or of TEXT alone, and folders of texts. */
#include "base/assert.h"
#include "base/buffer.h"
#include "train/data_stream.h"
#include "train/predict_data_internal.h"
#include "train/reader_internal.h"

#include <inttypes.h>
#include <string.h>

enum { SAMPLE_SIZE_MAX = 8 << 20 };

static int take_text(struct predict_data *data, struct text sample, const char *class,
                     struct text label, struct error *error)
{
    const bool is_taken = predictor_take_text(data->options->predictor, sample, data->input);
    const struct predict_label told = class            ? predict_data_label(data, text_of(class))
                                      : label.size > 0 ? predict_data_label(data, text_trim(label))
                                                       : (struct predict_label){0};
    ASSERT(is_taken);
    return predict_data_take(data, &told, error);
}

/* All lines have a label, or none has: the first one tells. */
static int take_lines(struct predict_data *data, const char *path, const char *class,
                      struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    bool is_first = true, has_labels = false;
    if (data_stream_open(path, data->size_max, &stream, error) < 0)
        return -1;
    for (;;) {
        struct text line, label = {0}, sample;
        bool has_line;
        if (data_stream_line(stream, &line, &has_line, error) < 0)
            return -1;
        if (!has_line)
            return 0;
        if (text_trim(line).size == 0)
            continue;
        const bool has_tab = !class && text_cut(line, '\t', &label, &sample);
        if (is_first)
            has_labels = has_tab;
        is_first = false;
        if (has_labels && !has_tab)
            return error_set(error, ERROR_INVALID,
                             "line %" PRIu64 ": no tab between a label and a text, as before",
                             data_stream_line_number(stream));
        if (!has_labels)
            label = (struct text){0}, sample = line;
        if (take_text(data, sample, class, label, error) < 0)
            return -1;
    }
}

static int take_file(struct predict_data *data, const char *path, const char *class,
                     struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, (size_t)2 * SAMPLE_SIZE_MAX);
    if (data_stream_open(path, SAMPLE_SIZE_MAX, &stream, error) < 0)
        return -1;
    for (;;) {
        size_t got;
        uint8_t *room = buffer_reserve(&bytes, 1 << 16);
        if (!room)
            return error_set(error, ERROR_EXHAUSTED, "it is too long");
        if (data_stream_read(stream, room, 1 << 16, &got, error) < 0)
            return -1;
        if (got == 0)
            return take_text(data, buffer_text(&bytes), class, (struct text){0}, error);
        buffer_advance(&bytes, got);
    }
}

static int take_class(struct predict_data *data, const char *class, struct error *error)
{
    char folder[READER_PATH_SIZE], path[READER_PATH_SIZE];
    struct reader_names names AUTO_NAMES = {0};
    if (reader_join(data->options->path, class, folder, error) < 0 ||
        reader_names_read(folder, &names, error) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++)
        if (text_ends_with(text_of(names.names[i]), TEXT(".txt")) &&
            (reader_join(folder, names.names[i], path, error) < 0 ||
             take_file(data, path, class, error) < 0))
            return error_wrap(error, "%s/%s", class, names.names[i]);
    return 0;
}

static int take_folder(struct predict_data *data, struct error *error)
{
    const char *folder = data->options->path;
    char path[READER_PATH_SIZE];
    struct reader_names names AUTO_NAMES = {0};
    if (reader_names_read(folder, &names, error) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.names[i], *dot = strrchr(name, '.');
        if (reader_is_folder(folder, name)) {
            if (take_class(data, name, error) < 0)
                return -1;
        } else if (dot && (strcmp(dot, ".pos") == 0 || strcmp(dot, ".neg") == 0)) {
            if (reader_join(folder, name, path, error) < 0 ||
                take_lines(data, path, dot + 1, error) < 0)
                return error_wrap(error, "%s", name);
        }
    }
    return 0;
}

int predict_texts_read(struct predict_data *data, struct error *error)
{
    if (!predictor_takes_text(data->options->predictor))
        return error_set(error, ERROR_INVALID,
                         data->spec->vocabulary
                             ? "the model's words are not known: put its columns.json beside it"
                             : "the model takes numbers, and no texts");
    return reader_is_folder(data->options->path, ".")
               ? take_folder(data, error)
               : take_lines(data, data->options->path, NULL, error);
}
