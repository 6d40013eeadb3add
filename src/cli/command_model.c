/* souk model inspect: what a trained model's file holds. */
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"
#include "train/safetensors.h"

#include <string.h>

struct inspect_options {
    const char *path;
};

static const struct option inspect_options[] = {
    {"path", OPTION_PATH, offsetof(struct inspect_options, path), "FILE",
     .help = "A safetensors file.", .is_positional = true, .is_required = true},
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
    if (safetensors_read(wanted->path, &file, error) < 0) {
        if (error->code != ERROR_CORRUPT && error->code != ERROR_EXHAUSTED)
            return -1;
        /* A header of impossible size says only that this is something else. */
        const struct error reason = *error;
        const char *detail = strstr(reason.message, "safetensors: ");
        return error_set(error, ERROR_CORRUPT,
                         "\"%.100s\" is not a model's file (safetensors), or damaged%s%.100s",
                         wanted->path, reason.code == ERROR_CORRUPT && detail ? ": " : "",
                         reason.code == ERROR_CORRUPT && detail ? detail + 13 : "");
    }
    if (cli->common.json) {
        print_json(file);
        return 0;
    }
    for (uint32_t i = 0; i < file->metadata_count; i++)
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
