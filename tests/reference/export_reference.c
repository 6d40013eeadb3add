/*
 * Export reference: makes a model with seeded parameters, exports it, and writes down what it gives
 * for seeded inputs, so that another program can do the same from the files.
 *
 *     export_reference MODEL FOLDER        a built-in model
 *     export_reference SPEC.json FOLDER    any list of layers
 *
 * FOLDER gets model.safetensors, card.json, model.onnx, inputs.f32 and outputs.f32.
 */
#include "base/file.h"
#include "base/random.h"
#include "train/model.h"
#include "train/model_card.h"
#include "train/onnx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3 };

static int path_in(const char *folder, const char *name, char out[PATH_MAX], struct error *error)
{
    if (snprintf(out, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    return 0;
}

static int write_floats(const char *folder, const char *name, const float *values, size_t count,
                        struct error *error)
{
    char path[PATH_MAX];
    const struct text part = {(const char *)values, count * sizeof(*values)};
    if (path_in(folder, name, path, error) < 0)
        return -1;
    return file_replace(path, &part, 1, 0644, error);
}

static int read_spec(struct arena *arena, const char *name, struct model_spec *out_spec,
                     struct error *error)
{
    if (strchr(name, '.') == NULL) {
        enum model_kind kind;
        if (model_kind_parse(text_of(name), &kind, error) < 0)
            return -1;
        model_spec_default(kind, out_spec);
        return 0;
    }
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, MODEL_SPEC_JSON_MAX);
    if (file_read(name, &json, error) < 0)
        return -1;
    return model_spec_read(arena, buffer_text(&json), out_spec, error);
}

/* As after training: biases, scales and statistics are not what they start from. */
static void fill(struct model *model, struct random *random)
{
    const struct parameter_table *table = model_parameter_table(model);
    model_init_parameters(model, 5);
    for (uint32_t i = 0; i < table->count; i++) {
        float *values = model_parameters(model) + table->items[i].offset;
        const bool is_variance = table->items[i].role == PARAMETER_RUNNING_VARIANCE;
        for (size_t k = 0; k < table->items[i].count; k++)
            values[k] +=
                is_variance ? (float)random_unit(random) : 0.05F * (float)random_normal(random);
    }
}

static int export_all(const struct model_spec *spec, const char *folder, struct error *error)
{
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    AUTO(model) struct model *model = NULL;
    const struct model_options options = {.spec = *spec, .batch = BATCH};
    char path[PATH_MAX];
    struct random random;
    random_init(&random, 7);
    if (kernel_set_open(NULL, &kernels, error) < 0 ||
        model_open(kernels, &options, &model, error) < 0)
        return -1;
    fill(model, &random);
    const size_t input_count = BATCH * model_input_size(model);
    for (size_t i = 0; i < input_count; i++)
        model_input(model)[i] = spec->vocabulary ? (float)random_below(&random, spec->vocabulary)
                                                 : (float)random_normal(&random);
    const size_t outputs = spec->loss == LOSS_MSE        ? spec->values
                           : spec->loss == LOSS_LOGISTIC ? 1
                                                         : spec->classes;
    const struct model_card card = {.spec = *spec, .data = "noise", .policy = "none"};
    if (write_floats(folder, "inputs.f32", model_input(model), input_count, error) < 0 ||
        write_floats(folder, "outputs.f32", model_predict(model),
                     (size_t)BATCH * model_output_rows(model) * outputs, error) < 0 ||
        model_card_export(folder, &card, model_parameters(model), error) < 0 ||
        path_in(folder, "model.onnx", path, error) < 0)
        return -1;
    return onnx_write(path, spec, model_parameters(model), NULL, 0, error);
}

int main(int argc, char **argv)
{
    struct error error;
    struct model_spec spec;
    AUTO(arena) struct arena *arena = arena_new(0);
    if (argc != 3) {
        fprintf(stderr, "export_reference MODEL|SPEC.json FOLDER\n");
        return 2;
    }
    if (read_spec(arena, argv[1], &spec, &error) < 0 || export_all(&spec, argv[2], &error) < 0) {
        fprintf(stderr, "export_reference: %s\n", error.message);
        return error_exit_code(error.code);
    }
    return 0;
}
