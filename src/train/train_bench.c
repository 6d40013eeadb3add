/*
 * Train bench: milliseconds per training step of each model and kernel set, and what it costs to
 * start.
 *
 *     train_bench [--json] [--steps N] [--batch N] [--data FOLDER] [--model NAME] [--kernels SET]
 *
 * Rounds of the sets are interleaved, so that a busy neighbour slows all of them alike: trust the
 * ratios more than the milliseconds, and CPU time more than time. The best round counts. Data is
 * Fashion-MNIST; with --model it is noise of the model's own shape, so that nothing is needed.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "train/dataset_catalogue.h"
#include "train/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS_MAX = 4, ROUNDS = 10 };

struct bench_options {
    bool is_json;
    uint64_t steps; /* of one round */
    uint64_t batch; /* 0: 32 and 128 */
    const char *folder;
    const char *model;   /* NULL: those for Fashion-MNIST */
    const char *kernels; /* NULL: every set */
};

struct contender {
    const char *set_name;
    struct kernel_set *kernels;
    struct trainer *trainer;
    double open_ms;       /* kernel set and trainer, the libraries' loading included */
    double first_step_ms; /* primitives may be made on first use */
    double step_ms;       /* mean of the best round */
    double cpu_ms;        /* the same of the processor's time */
};

static double now_ms(void)
{
    return (double)clock_monotonic_ns(&clock_system) / 1e6;
}

static double cpu_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int contender_open(struct contender *contender, const char *set_name,
                          const struct dataset *dataset, const struct trainer_options *options,
                          struct error *error)
{
    const double start = now_ms();
    *contender = (struct contender){.set_name = set_name, .step_ms = 1e30, .cpu_ms = 1e30};
    if (kernel_set_open(set_name, &contender->kernels, error) < 0 ||
        trainer_open(contender->kernels, dataset, options, &contender->trainer, error) < 0)
        return -1;
    contender->open_ms = now_ms() - start;
    double loss;
    if (trainer_step(contender->trainer, &loss, error) < 0)
        return -1;
    contender->first_step_ms = now_ms() - start - contender->open_ms;
    return 0;
}

static void contender_close(struct contender *contender)
{
    trainer_free(contender->trainer);
    kernel_set_free(contender->kernels);
}

static int contender_round(struct contender *contender, uint64_t steps, struct error *error)
{
    const double start = now_ms(), cpu_start = cpu_now_ms();
    for (uint64_t i = 0; i < steps; i++) {
        double loss;
        if (trainer_step(contender->trainer, &loss, error) < 0)
            return -1;
    }
    const double mean = (now_ms() - start) / (double)steps;
    const double cpu_mean = (cpu_now_ms() - cpu_start) / (double)steps;
    contender->step_ms = mean < contender->step_ms ? mean : contender->step_ms;
    contender->cpu_ms = cpu_mean < contender->cpu_ms ? cpu_mean : contender->cpu_ms;
    return 0;
}

static void print_row(const struct bench_options *options, struct json_writer *writer,
                      const struct trainer_options *run, const struct contender *contender)
{
    const char *model = model_kind_name(run->spec.kind);
    if (!options->is_json) {
        printf("%-9s %5u  %-7s %9.4f ms/step %9.0f steps/s   open %6.1f ms, first step %6.1f ms\n",
               model, run->batch, contender->set_name, contender->step_ms,
               1000 / contender->step_ms, contender->open_ms, contender->first_step_ms);
        return;
    }
    json_object_begin(writer);
    json_field_string(writer, "model", model);
    json_field_u64(writer, "batch", run->batch);
    json_field_string(writer, "kernels", contender->set_name);
    json_field_double(writer, "step_ms", contender->step_ms);
    json_field_double(writer, "cpu_ms", contender->cpu_ms);
    json_field_double(writer, "steps_per_second", 1000 / contender->step_ms);
    json_field_double(writer, "open_ms", contender->open_ms);
    json_field_double(writer, "first_step_ms", contender->first_step_ms);
    json_object_end(writer);
}

static int bench_model(const struct bench_options *options, struct json_writer *writer,
                       const struct dataset *dataset, const struct model_spec *spec, uint32_t batch,
                       struct error *error)
{
    struct trainer_options run = {.spec = *spec, .batch = batch, .seed = 1};
    run.optimizer = (struct optimizer_options){.lr = 0.01, .momentum = 0.9};
    struct contender contenders[SETS_MAX];
    uint32_t count = 0;
    const char *const asked[] = {options->kernels, NULL};
    for (const char *const *name = options->kernels ? asked : kernel_set_names;
         *name && count < SETS_MAX; name++) {
        if (contender_open(&contenders[count], *name, dataset, &run, error) == 0) {
            count++;
            continue;
        }
        fprintf(stderr, "%s left out: %s\n", *name, error->message);
        contender_close(&contenders[count]);
    }
    int result = 0;
    for (int round = 0; round < ROUNDS && result == 0; round++)
        for (uint32_t i = 0; i < count && result == 0; i++)
            result = contender_round(&contenders[i], options->steps, error);
    for (uint32_t i = 0; i < count; i++) {
        if (result == 0)
            print_row(options, writer, &run, &contenders[i]);
        contender_close(&contenders[i]);
    }
    return result;
}

/* Noise of the model's shape. An LSTM gets 50 steps of 128 numbers. */
static int bench_noise(const struct bench_options *options, struct json_writer *writer,
                       struct error *error)
{
    enum { RECORDS = 256 };
    enum model_kind kind;
    struct model_spec spec;
    if (model_kind_parse(text_of(options->model), &kind, error) < 0)
        return -1;
    model_spec_default(kind, &spec);
    if (kind == MODEL_LSTM || kind == MODEL_GRU) {
        spec.height = 50;
        spec.width = 128;
    }
    if (spec.vocabulary || spec.loss == LOSS_MSE)
        return error_set(error, ERROR_INVALID, "\"%s\" takes no images and tells no classes",
                         options->model);
    const struct dataset_shape shape = {.count = RECORDS,
                                        .channels = (uint32_t)spec.channels,
                                        .height = (uint32_t)spec.height,
                                        .width = (uint32_t)spec.width,
                                        .classes = (uint32_t)spec.classes};
    const size_t count = RECORDS * spec.channels * spec.height * spec.width;
    float *inputs = malloc(sizeof(*inputs) * count);
    ASSERT(inputs != NULL);
    int32_t labels[RECORDS];
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < count; i++)
        inputs[i] = (float)random_normal(&random);
    for (size_t i = 0; i < RECORDS; i++)
        labels[i] = (int32_t)random_below(&random, spec.classes);
    AUTO(dataset) struct dataset *dataset = NULL;
    const struct dataset_arrays arrays = {.inputs = inputs, .labels = labels};
    int result = dataset_open_arrays(&shape, &arrays, &dataset, error);
    if (result == 0)
        result = bench_model(options, writer, dataset, &spec,
                             options->batch ? (uint32_t)options->batch : 32, error);
    free(inputs);
    return result;
}

static int bench_all(const struct bench_options *options, struct json_writer *writer,
                     struct error *error)
{
    const struct dataset_entry *entry;
    AUTO(dataset) struct dataset *dataset = NULL;
    if (dataset_entry_find(TEXT("fashion-mnist"), &entry, error) < 0 ||
        dataset_entry_open(entry, options->folder, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS,
                           &dataset, error) < 0)
        return -1;
    const uint32_t batches[] = {32, 128};
    const enum model_kind kinds[] = {MODEL_LENET5, MODEL_MLP, MODEL_LOGISTIC};
    struct model_spec specs[sizeof(kinds) / sizeof(*kinds)];
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        model_spec_default(kinds[k], &specs[k]);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (size_t i = 0; i < (options->batch ? 1 : 2); i++)
            if (bench_model(options, writer, dataset, &specs[k],
                            options->batch ? (uint32_t)options->batch : batches[i], error) < 0)
                return -1;
    return 0;
}

static int parse_arguments(int argc, char **argv, struct bench_options *options,
                           struct error *error)
{
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            options->is_json = true;
        } else if (strcmp(argv[i], "--steps") == 0 && has_value) {
            if (text_parse_u64(text_of(argv[++i]), &options->steps, error) < 0)
                return -1;
        } else if (strcmp(argv[i], "--batch") == 0 && has_value) {
            if (text_parse_u64(text_of(argv[++i]), &options->batch, error) < 0)
                return -1;
        } else if (strcmp(argv[i], "--data") == 0 && has_value) {
            options->folder = argv[++i];
        } else if (strcmp(argv[i], "--model") == 0 && has_value) {
            options->model = argv[++i];
        } else if (strcmp(argv[i], "--kernels") == 0 && has_value) {
            options->kernels = argv[++i];
        } else {
            return error_set(error, ERROR_INVALID,
                             "\"%s\": train_bench [--json] [--steps N] [--batch N] [--data FOLDER] "
                             "[--model NAME] [--kernels SET]",
                             argv[i]);
        }
    }
    if (options->steps == 0 || options->batch > MODEL_BATCH_MAX)
        return error_set(error, ERROR_INVALID, "--steps and --batch must be at least 1");
    return 0;
}

int main(int argc, char **argv)
{
    struct bench_options options = {.steps = 20};
    struct error error;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1 << 20);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    json_array_begin(&writer);
    if (parse_arguments(argc, argv, &options, &error) < 0 ||
        (options.model ? bench_noise : bench_all)(&options, &writer, &error) < 0) {
        fprintf(stderr, "train_bench: %s\n", error.message);
        return error_exit_code(error.code);
    }
    json_array_end(&writer);
    if (options.is_json)
        printf("%s\n", buffer_string(&buffer));
    return 0;
}
