/*
 * Train reference: trains a few steps and writes down everything another program needs to repeat
 * them: FOLDER/before.safetensors, FOLDER/after.safetensors and, on standard output, a JSON object
 * with the options, the records of each batch and the losses.
 *
 *     train_reference MODEL KERNELS BATCH STEPS FOLDER
 */
#include "base/json.h"
#include "train/dataset_catalogue.h"
#include "train/safetensors.h"
#include "train/sampler.h"
#include "train/trainer.h"

#include <limits.h>
#include <stdlib.h>

struct run {
    struct trainer_options options;
    uint64_t steps;
    const char *kernels;
    const char *folder;
};

static int write_parameters(const struct run *run, struct model *model, const char *file,
                            struct error *error)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof(path), "%s/%s", run->folder, file);
    if (length < 0 || (size_t)length >= sizeof(path))
        return error_set(error, ERROR_INVALID, "the folder's path is too long");
    return safetensors_write(path, model_parameter_table(model), model_parameters(model), NULL, 0,
                             error);
}

/* The trainer's own sampler is private; one of the same seed and range draws the same. */
static int write_batches(struct json_writer *writer, const struct run *run,
                         const struct dataset *dataset, struct error *error)
{
    struct sampler sampler;
    if (sampler_init(&sampler, dataset, 0, dataset_shape(dataset)->count,
                     trainer_sampler_seed(&run->options), error) < 0)
        return -1;
    uint32_t *indices = calloc(run->options.batch, sizeof(*indices));
    json_key(writer, "batches");
    json_array_begin(writer);
    for (uint64_t step = 0; step < run->steps; step++) {
        sampler_next(&sampler, indices, run->options.batch);
        json_array_begin(writer);
        for (uint32_t i = 0; i < run->options.batch; i++)
            json_u64(writer, indices[i]);
        json_array_end(writer);
    }
    json_array_end(writer);
    free(indices);
    sampler_done(&sampler);
    return 0;
}

static int train(struct json_writer *writer, const struct run *run, const struct dataset *dataset,
                 struct error *error)
{
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    AUTO(trainer) struct trainer *trainer = NULL;
    if (kernel_set_open(run->kernels, &kernels, error) < 0 ||
        trainer_open(kernels, dataset, &run->options, &trainer, error) < 0 ||
        write_parameters(run, trainer_model(trainer), "before.safetensors", error) < 0)
        return -1;
    json_field_string(writer, "kernels", kernel_set_name(kernels));
    json_key(writer, "losses");
    json_array_begin(writer);
    for (uint64_t step = 0; step < run->steps; step++) {
        double loss;
        if (trainer_step(trainer, &loss, error) < 0)
            return -1;
        json_double(writer, loss);
    }
    json_array_end(writer);
    return write_parameters(run, trainer_model(trainer), "after.safetensors", error);
}

static int run_all(struct json_writer *writer, const struct run *run, struct error *error)
{
    const struct dataset_entry *entry;
    char images[PATH_MAX], labels[PATH_MAX];
    if (dataset_entry_find(TEXT("fashion-mnist"), &entry, error) < 0 ||
        dataset_entry_path(entry, NULL, DATASET_TEST_IMAGES, images, sizeof(images), error) < 0 ||
        dataset_entry_path(entry, NULL, DATASET_TEST_LABELS, labels, sizeof(labels), error) < 0)
        return -1;
    AUTO(dataset) struct dataset *dataset = NULL;
    const struct dataset_options data = {.images_path = images,
                                         .labels_path = labels,
                                         .classes = entry->classes,
                                         .mean = entry->mean,
                                         .deviation = entry->deviation};
    if (dataset_open(&data, &dataset, error) < 0)
        return -1;
    json_object_begin(writer);
    json_field_string(writer, "images", images);
    json_field_string(writer, "labels", labels);
    json_field_double(writer, "mean", entry->mean);
    json_field_double(writer, "deviation", entry->deviation);
    json_field_double(writer, "lr", run->options.optimizer.lr);
    json_field_double(writer, "momentum", run->options.optimizer.momentum);
    json_field_double(writer, "weight_decay", run->options.optimizer.weight_decay);
    if (write_batches(writer, run, dataset, error) < 0 || train(writer, run, dataset, error) < 0)
        return -1;
    json_object_end(writer);
    return 0;
}

static int parse_arguments(int argc, char **argv, struct run *run, struct error *error)
{
    if (argc != 6)
        return error_set(error, ERROR_INVALID, "MODEL KERNELS BATCH STEPS FOLDER expected");
    enum model_kind kind;
    uint64_t batch;
    if (model_kind_parse(text_of(argv[1]), &kind, error) < 0 ||
        text_parse_u64(text_of(argv[3]), &batch, error) < 0 ||
        text_parse_u64(text_of(argv[4]), &run->steps, error) < 0)
        return -1;
    model_spec_default(kind, &run->options.spec);
    run->options.batch = (uint32_t)batch;
    run->options.seed = 1;
    run->options.optimizer =
        (struct optimizer_options){.lr = 0.05, .momentum = 0.9, .weight_decay = 0.0001};
    run->kernels = argv[2];
    run->folder = argv[5];
    return 0;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct error error;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1 << 20);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    if (parse_arguments(argc, argv, &run, &error) < 0 || run_all(&writer, &run, &error) < 0) {
        fprintf(stderr, "train_reference: %s\n", error.message);
        return error_exit_code(error.code);
    }
    printf("%s\n", buffer_string(&buffer));
    return 0;
}
