#include "base/memory.h"
#include "train/import_scale_internal.h"
#include "train/predict_data_internal.h"
#include "train/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct predict_label predict_data_label(const struct predict_data *data, struct text name)
{
    struct error ignored;
    uint64_t number;
    if (data->classes.count > 0) {
        const uintptr_t known = (uintptr_t)map_get_text(&data->classes, name);
        return (struct predict_label){.is_known = true, .class = (int32_t)known - 1};
    }
    if (text_parse_u64(name, &number, &ignored) < 0)
        return (struct predict_label){0};
    return (struct predict_label){.is_known = true,
                                  .class = number < data->spec->classes ? (int32_t)number : -1};
}

/* ---- Arrays, images and sparse rows -----------------------------------------------------------
 */

static int refuse_shape(const struct predict_data *data, const struct import *import,
                        struct error *error)
{
    const struct model_spec *spec = data->spec;
    return error_set(
        error, ERROR_INVALID,
        "its records are %u x %u x %u, and the model takes %" PRIu64 " x %" PRIu64 " x %" PRIu64,
        import->channels, import->height, import->width, spec->channels, spec->height, spec->width);
}

static bool is_shape_equal(const struct model_spec *spec, const struct import *import)
{
    return import->channels == spec->channels && import->height == spec->height &&
           import->width == spec->width;
}

static int check_sparse(const struct predict_data *data, const struct import *import,
                        struct error *error)
{
    const struct model_spec *spec = data->spec;
    const bool is_kept = spec->vocabulary > 0 && spec->height == 2;
    const uint64_t places = is_kept ? spec->vocabulary : spec->width;
    if (!is_kept && (spec->vocabulary > 0 || spec->height != 1 || spec->channels != 1))
        return error_set(error, ERROR_INVALID, "its rows are sparse, and the model takes none");
    if (predictor_units(data->options->predictor) != PREDICTOR_UNITS_MODEL)
        return error_set(error, ERROR_INVALID,
                         "its rows are sparse, and the model takes the columns of a table");
    if (import->width > places)
        return error_set(error, ERROR_INVALID,
                         "a row has place %u, and the model takes %" PRIu64 " places",
                         import->width, places);
    return 0;
}

/* Scaled in training and not here, or the other way round, numbers would be told with no word of
 * warning that mean nothing. */
static int check_form(const struct predict_data *data, const struct import *import,
                      struct error *error)
{
    const enum predictor_units units = predictor_units(data->options->predictor);
    if (import->form == IMPORT_SPARSE)
        return check_sparse(data, import, error);
    if (data->spec->vocabulary > 0)
        return error_set(error, ERROR_INVALID, "its records are %s, and the model takes %s",
                         import_form_name(import->form),
                         data->spec->height == 1 ? "texts" : "sparse rows");
    if (!is_shape_equal(data->spec, import))
        return refuse_shape(data, import, error);
    if (data->options->is_raw || (import->form == IMPORT_BYTES) == (units == PREDICTOR_UNITS_BYTES))
        return 0;
    return error_set(
        error, ERROR_INVALID,
        import->form == IMPORT_BYTES
            ? "its records are bytes, and nothing with the model says how bytes are scaled: name "
              "the model.safetensors that training left, or say --raw"
            : "its records are floats, and the model takes bytes of images (--raw: as they are)");
}

static int put_sparse(struct predict_data *data, const struct import_rows *rows, uint32_t row,
                      struct error *error)
{
    const float *values;
    const uint32_t *indices;
    const size_t entries = import_sparse_entries(rows, row, &values, &indices);
    const bool is_kept = data->spec->vocabulary > 0;
    if (is_kept && entries > data->spec->width)
        return error_set(error, ERROR_INVALID,
                         "record %u has %zu entries, and the model takes %" PRIu64, row, entries,
                         data->spec->width);
    memset(data->input, 0, data->input_size * sizeof(*data->input));
    for (size_t i = 0; i < entries; i++) {
        if (is_kept) {
            data->input[i] = (float)indices[i];
            data->input[data->spec->width + i] = values[i];
        } else {
            data->input[indices[i]] = values[i];
        }
    }
    return 0;
}

static int put_row(struct predict_data *data, const struct import *import,
                   const struct import_rows *rows, uint32_t row, struct error *error)
{
    const size_t at = (size_t)row * data->input_size;
    if (import->form == IMPORT_SPARSE)
        return put_sparse(data, rows, row, error);
    if (import->form == IMPORT_FLOATS)
        memcpy(data->input, (const float *)(const void *)rows->values.data + at,
               data->input_size * sizeof(*data->input));
    else
        for (size_t i = 0; i < data->input_size; i++)
            data->input[i] = rows->values.data[at + i];
    return 0;
}

static struct predict_label label_of(const struct predict_data *data, const struct import *import,
                                     const struct import_rows *rows, uint32_t row)
{
    if (rows->targets.size == 0)
        return (struct predict_label){0};
    const double target = import_target_of(import, rows, row);
    if (import->target == IMPORT_NUMBER)
        return (struct predict_label){.is_known = true, .number = (float)target};
    if (import->class_names.count > 0)
        return predict_data_label(data, import->class_names.names[(size_t)target]);
    return (struct predict_label){
        .is_known = true, .class = target < (double)data->spec->classes ? (int32_t)target : -1};
}

static int take_rows(struct predict_data *data, const struct import *import,
                     const struct import_rows *rows, struct error *error)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct predict_label label = label_of(data, import, rows, i);
        if (put_row(data, import, rows, i, error) < 0 || predict_data_take(data, &label, error) < 0)
            return -1;
    }
    return 0;
}

static int import_and_take(struct predict_data *data, struct error *error)
{
    struct import import AUTO_IMPORT = {0};
    struct import_options options;
    const struct model_spec *spec = data->spec;
    import_options_default(&options);
    options.format = data->options->format;
    options.size_max = data->size_max;
    options.is_number = spec->loss == LOSS_MSE;
    options.is_asked = true;
    options.image_height = (uint32_t)spec->height;
    options.image_width = (uint32_t)spec->width;
    options.image_channels =
        spec->channels == 1 || spec->channels == 3 ? (uint32_t)spec->channels : 0;
    if (import_read(data->options->path, &options, &import, error) < 0)
        return -1;
    if (check_form(data, &import, error) < 0 ||
        take_rows(data, &import, &import.train, error) < 0 ||
        take_rows(data, &import, &import.test, error) < 0)
        return error_wrap(error, "\"%.200s\"", data->options->path);
    return 0;
}

/* ---- The whole --------------------------------------------------------------------------------
 */

static void classes_init(struct predict_data *data)
{
    const char *name;
    map_init(&data->classes);
    for (uint32_t i = 0; (name = predictor_class_name(data->options->predictor, i)); i++)
        map_put_text(&data->classes, text_of(name),
                     (void *)(uintptr_t)(i + 1)); // NOLINT(performance-no-int-to-ptr): a number
}

int predict_data_read(const struct predict_data_options *options, struct error *error)
{
    const struct reader *reader;
    struct predict_data data = {.options = options,
                                .spec = predictor_spec(options->predictor),
                                .size_max =
                                    options->size_max ? options->size_max : UINT64_C(64) << 30,
                                .input_size = predictor_input_size(options->predictor)};
    if (reader_find(options->path, options->format, &reader, error) < 0)
        return -1;
    data.input = memory_zeroed(data.input_size, sizeof(*data.input));
    classes_init(&data);
    int result;
    if (strcmp(reader->name, "csv") == 0 || strcmp(reader->name, "text") == 0) {
        result = reader->name[0] == 'c' ? predict_table_read(&data, error)
                                        : predict_texts_read(&data, error);
        if (result < 0)
            error_wrap(error, "\"%.200s\" (%s)", options->path, reader->name);
    } else {
        result = import_and_take(&data, error);
    }
    map_done(&data.classes);
    free(data.input);
    return result;
}
