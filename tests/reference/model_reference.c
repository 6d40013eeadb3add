/*
 * Model reference: trains any built-in model on seeded noise and writes down all that another
 * program needs to do the same: inputs, targets, batches, parameters before and after.
 *
 *     model_reference MODEL OPTIMIZER KERNELS STEPS FOLDER
 *
 * FOLDER gets inputs.f32, targets.i32 or targets.f32, before.safetensors and after.safetensors; the
 * rest is JSON on stdout. Dropout is taken out: what it drops is nobody else's.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "train/safetensors.h"
#include "train/sampler.h"
#include "train/trainer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 24, BATCH = 8, TARGETS_MAX = RECORDS * 128 };

struct run {
    struct trainer_options options;
    const char *kernels, *folder;
    uint64_t steps;
};

static int write_file(const struct run *run, const char *name, const void *bytes, size_t size,
                      struct error *error)
{
    char path[PATH_MAX];
    const struct text part = {bytes, size};
    if (snprintf(path, sizeof(path), "%s/%s", run->folder, name) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    return file_replace(path, &part, 1, 0644, error);
}

static int write_parameters(const struct run *run, struct model *model, const char *name,
                            struct error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", run->folder, name) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    return safetensors_write(path, model_parameter_table(model), model_parameters(model), NULL, 0,
                             error);
}

/* Smaller than life, so that plain kernels and Python are quick too. */
static void shrink(struct model_spec *spec)
{
    if (spec->vocabulary) {
        spec->width = 12;
        spec->vocabulary = 30;
        spec->classes = spec->kind == MODEL_CHAR_LSTM ? 30 : spec->classes;
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < spec->layer_count; i++)
        if (spec->layers[i].type != LAYER_DROPOUT)
            spec->layers[kept++] = spec->layers[i];
    spec->layer_count = kept;
}

static struct dataset_shape shape_of(const struct model_spec *spec)
{
    return (struct dataset_shape){
        .count = RECORDS,
        .channels = (uint32_t)spec->channels,
        .height = (uint32_t)spec->height,
        .width = (uint32_t)spec->width,
        .classes = (uint32_t)spec->classes,
        .vocabulary = (uint32_t)spec->vocabulary,
        .values = (uint32_t)spec->values,
        .target = spec->loss == LOSS_MSE          ? DATASET_VALUES
                  : spec->kind == MODEL_CHAR_LSTM ? DATASET_STEPS
                                                  : DATASET_CLASS,
        .steps = spec->kind == MODEL_CHAR_LSTM ? (uint32_t)spec->width : 0,
    };
}

static int train(struct json_writer *writer, const struct run *run, const struct dataset *dataset,
                 struct error *error)
{
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    AUTO(trainer) struct trainer *trainer = NULL;
    struct sampler sampler;
    if (kernel_set_open(run->kernels, &kernels, error) < 0 ||
        trainer_open(kernels, dataset, &run->options, &trainer, error) < 0 ||
        write_parameters(run, trainer_model(trainer), "before.safetensors", error) < 0 ||
        sampler_init(&sampler, dataset, 0, RECORDS, trainer_sampler_seed(&run->options), error) < 0)
        return -1;
    json_key(writer, "steps");
    json_array_begin(writer);
    int result = 0;
    for (uint64_t step = 0; step < run->steps && result == 0; step++) {
        uint32_t indices[BATCH];
        double loss = 0;
        sampler_next(&sampler, indices, BATCH);
        result = trainer_step(trainer, &loss, error);
        json_object_begin(writer);
        json_field_double(writer, "loss", loss);
        json_key(writer, "records");
        json_array_begin(writer);
        for (uint32_t i = 0; i < BATCH; i++)
            json_u64(writer, indices[i]);
        json_array_end(writer);
        json_object_end(writer);
    }
    json_array_end(writer);
    sampler_done(&sampler);
    return result < 0 ? -1
                      : write_parameters(run, trainer_model(trainer), "after.safetensors", error);
}

static int run_all(struct json_writer *writer, const struct run *run, struct error *error)
{
    const struct model_spec *spec = &run->options.spec;
    const struct dataset_shape shape = shape_of(spec);
    const size_t input_count = RECORDS * spec->channels * spec->height * spec->width;
    float *inputs = calloc(input_count, sizeof(*inputs));
    static int32_t labels[TARGETS_MAX];
    static float values[TARGETS_MAX];
    struct random random;
    random_init(&random, 11);
    for (size_t i = 0; i < input_count; i++)
        inputs[i] = spec->vocabulary ? (float)random_below(&random, spec->vocabulary)
                                     : (float)random_normal(&random);
    for (size_t i = 0; i < TARGETS_MAX; i++) {
        labels[i] = (int32_t)random_below(&random, spec->classes ? spec->classes : 1);
        values[i] = (float)random_normal(&random);
    }
    const bool has_values = shape.target == DATASET_VALUES;
    const struct dataset_arrays arrays = {.inputs = inputs,
                                          .labels = has_values ? NULL : labels,
                                          .values = has_values ? values : NULL};
    AUTO(dataset) struct dataset *dataset = NULL;
    json_object_begin(writer);
    json_key(writer, "spec");
    model_spec_write(writer, spec);
    const size_t each = has_values ? shape.values : dataset_labels_each(&shape);
    int result = -1;
    if (dataset_open_arrays(&shape, &arrays, &dataset, error) == 0 &&
        write_file(run, "inputs.f32", inputs, sizeof(*inputs) * input_count, error) == 0 &&
        write_file(run, has_values ? "targets.f32" : "targets.i32",
                   has_values ? (const void *)values : (const void *)labels,
                   sizeof(float) * RECORDS * each, error) == 0)
        result = train(writer, run, dataset, error);
    json_object_end(writer);
    free(inputs);
    return result;
}

/* The same table as in test_models.py. */
static int parse_optimizer(struct text name, struct optimizer_options *out, struct error *error)
{
    const struct {
        const char *name;
        struct optimizer_options options;
    } known[] = {
        {"sgd", {.lr = 0.005}},
        {"momentum", {.lr = 0.005, .momentum = 0.9, .weight_decay = 0.001}},
        {"nesterov", {.lr = 0.005, .momentum = 0.9, .is_nesterov = true}},
        {"adam", {.lr = 0.001, .kind = OPTIMIZER_ADAM, .weight_decay = 0.01}},
        {"adamw", {.lr = 0.001, .kind = OPTIMIZER_ADAMW, .weight_decay = 0.1}},
        {"clipped", {.lr = 0.05, .clip_norm = 0.1}},
        {"cosine", {.lr = 0.005, .schedule = {SCHEDULE_COSINE, .period = 5, .factor = 0.1}}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (text_equal(name, text_of(known[i].name))) {
            *out = known[i].options;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "optimizer \"%.*s\" is unknown", TEXT_ARGS(name));
}

int main(int argc, char **argv)
{
    struct run run = {.options = {.batch = BATCH, .seed = 1}};
    struct error error = {0};
    enum model_kind kind;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1 << 20);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    if (argc != 6) {
        fprintf(stderr, "model_reference MODEL OPTIMIZER KERNELS STEPS FOLDER\n");
        return 2;
    }
    run.kernels = argv[3];
    run.folder = argv[5];
    int result = model_kind_parse(text_of(argv[1]), &kind, &error) < 0 ||
                 parse_optimizer(text_of(argv[2]), &run.options.optimizer, &error) < 0 ||
                 text_parse_u64(text_of(argv[4]), &run.steps, &error) < 0;
    if (result == 0) {
        model_spec_default(kind, &run.options.spec);
        shrink(&run.options.spec);
        result = run_all(&writer, &run, &error) < 0;
    }
    if (result) {
        fprintf(stderr, "model_reference: %s\n", error.message);
        return error_exit_code(error.code);
    }
    printf("%s\n", buffer_string(&buffer));
    return 0;
}
