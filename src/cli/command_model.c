/* souk model inspect, souk model export: what a trained model's file holds, and other formats of
 * it. */
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"
#include "train/model_card.h"
#include "train/model_file.h"
#include "train/onnx.h"
#include "train/safetensors.h"

#include <string.h>
#include <sys/stat.h>

struct inspect_options {
    const char *path;
};

static const struct option inspect_options[] = {
    {"path", OPTION_PATH, offsetof(struct inspect_options, path), "FILE",
     .help = "A safetensors file, or a folder with a model.safetensors.", .is_positional = true,
     .is_required = true},
};

static void print_json(const struct safetensors *file)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 4 << 20);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_key(&writer, "metadata");
    json_object_begin(&writer);
    for (uint32_t i = 0; i < file->metadata_count; i++)
        json_field_string(&writer, file->metadata[i].key, file->metadata[i].value);
    json_object_end(&writer);
    json_key(&writer, "tensors");
    json_array_begin(&writer);
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        json_object_begin(&writer);
        json_field_string(&writer, "name", file->tensors[i].name);
        json_key(&writer, "shape");
        json_array_begin(&writer);
        for (uint32_t d = 0; d < file->tensors[i].rank; d++)
            json_u64(&writer, file->tensors[i].shape[d]);
        json_array_end(&writer);
        json_object_end(&writer);
    }
    json_array_end(&writer);
    json_field_u64(&writer, "parameters", file->float_count);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

static const char *format_shape(struct arena *arena, const struct parameter *tensor)
{
    const char *shape = "";
    for (uint32_t i = 0; i < tensor->rank; i++)
        shape = arena_format(arena, "%s%s%u", shape, i ? " x " : "", tensor->shape[i]);
    return shape;
}

static int run_inspect(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct inspect_options *wanted = options;
    AUTO(safetensors) struct safetensors *file = NULL;
    struct stat status;
    const char *path = stat(wanted->path, &status) == 0 && S_ISDIR(status.st_mode)
                           ? arena_format(cli->arena, "%s/model.safetensors", wanted->path)
                           : wanted->path;
    if (safetensors_read(path, &file, error) < 0) {
        if (error->code != ERROR_CORRUPT && error->code != ERROR_EXHAUSTED)
            return -1;
        /* A header of impossible size says only that this is something else. */
        const struct error reason = *error;
        const char *detail = strstr(reason.message, "safetensors: ");
        return error_set(error, ERROR_CORRUPT,
                         "\"%.100s\" is not a model's file (safetensors), or damaged%s%.100s", path,
                         reason.code == ERROR_CORRUPT && detail ? ": " : "",
                         reason.code == ERROR_CORRUPT && detail ? detail + 13 : "");
    }
    if (cli->common.json) {
        print_json(file);
        return 0;
    }
    for (uint32_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, MODEL_CARD_SPEC_KEY) != 0) /* long, and for programs */
            printf("%s: %s\n", output_text(cli->arena, text_of(file->metadata[i].key)),
                   output_text(cli->arena, text_of(file->metadata[i].value)));
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"~TENSOR", "SHAPE", ">PARAMETERS", NULL});
    for (uint32_t i = 0; i < file->tensor_count; i++)
        TABLE_ROW(&table, output_text(cli->arena, text_of(file->tensors[i].name)),
                  format_shape(cli->arena, &file->tensors[i]),
                  output_number(cli->arena, file->tensors[i].count));
    table_show(&table, cli);
    printf("%zu parameters in all\n", file->float_count);
    return 0;
}

const struct command command_model_inspect = {
    .name = "model inspect",
    .summary = "Shows the tensors and the card of a trained model.",
    .example = "souk model inspect model.safetensors",
    COMMAND_OPTIONS(inspect_options, inspect_options),
    .run = run_inspect,
};

/* ---- export -----------------------------------------------------------------------------------
 */

enum export_format { EXPORT_ONNX, EXPORT_SAFETENSORS };
static const char *const export_formats[] = {"onnx", "safetensors", NULL};

struct export_options {
    const char *model;
    int format; /* enum export_format */
    const char *output;
};

static const struct option export_options[] = {
    {"model", OPTION_PATH, offsetof(struct export_options, model), "MODEL",
     .help = "A model.safetensors, a folder that holds one, or a checkpoint.",
     .is_positional = true, .is_required = true},
    {"format", OPTION_CHOICE, offsetof(struct export_options, format), "FORMAT", "onnx",
     "What to write.", .choices = export_formats},
    {"output", OPTION_PATH, offsetof(struct export_options, output), "FILE",
     .help = "The file to write; by default model.onnx or model.safetensors here.", .letter = 'o'},
};

static int export_safetensors(const struct model_file *file, const char *path, struct error *error)
{
    struct parameter_table table;
    struct buffer spec AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&spec, MODEL_SPEC_JSON_MAX);
    json_writer_init(&writer, &spec);
    model_spec_write(&writer, &file->spec);
    if (buffer_check(&spec, error) < 0 || model_spec_layout(&file->spec, &table, error) < 0)
        return -1;
    const struct safetensors_metadata own[] = {{"format", "pt"},
                                               {"model", model_kind_name(file->spec.kind)},
                                               {MODEL_CARD_SPEC_KEY, buffer_string(&spec)}};
    const bool has_spec = model_file_metadata(file, MODEL_CARD_SPEC_KEY) != NULL;
    return safetensors_write(path, &table, file->parameters, has_spec ? file->metadata : own,
                             has_spec ? file->metadata_count : sizeof(own) / sizeof(*own), error);
}

static void export_show(const struct cli *cli, const struct model_file *file, const char *path,
                        const char *format)
{
    if (!cli->common.json) {
        output_note(cli, "%s: %s with %s parameters as %s", path, model_kind_name(file->spec.kind),
                    output_number(cli->arena, file->parameter_count), format);
        return;
    }
    struct buffer out AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&out, 1 << 16);
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_string(&writer, "file", path);
    json_field_string(&writer, "format", format);
    json_field_string(&writer, "model", model_kind_name(file->spec.kind));
    json_field_u64(&writer, "parameters", file->parameter_count);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

static int run_export(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct export_options *wanted = options;
    AUTO(model_file) struct model_file *file = NULL;
    const bool is_onnx = wanted->format == EXPORT_ONNX;
    const char *path = wanted->output ? wanted->output
                       : is_onnx      ? "model.onnx"
                                      : "model.safetensors";
    if (model_file_open(wanted->model, &file, error) < 0)
        return -1;
    const int result = is_onnx ? onnx_write(path, &file->spec, file->parameters, file->metadata,
                                            file->metadata_count, error)
                               : export_safetensors(file, path, error);
    if (result < 0)
        return -1;
    export_show(cli, file, path, export_formats[wanted->format]);
    return 0;
}

const struct command command_model_export = {
    .name = "model export",
    .summary = "Writes a trained model in another format.",
    .details = "ONNX is computed by onnxruntime, TensorRT, OpenVINO and browsers: its \"input\" is "
               "[batch, ...] of numbers, or of 64-bit tokens, its \"output\" what the model gives, "
               "and \"probabilities\" those of the classes. safetensors makes a model of a "
               "checkpoint.",
    .example = "souk model export model.safetensors --format onnx -o digits.onnx",
    COMMAND_OPTIONS(export_options, export_options),
    .run = run_export,
};
