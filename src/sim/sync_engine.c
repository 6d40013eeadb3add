#include "sim/sync_engine.h"

#include "base/assert.h"
#include "base/memory.h"
#include "tensor/kernel.h"
#include "train/evaluation.h"
#include "train/model.h"

#include <stdlib.h>
#include <string.h>

enum { MEASURE_BATCH = 250 };

struct sync_engine {
    struct sync_engine_options options;
    struct kernel_set *kernels;
    struct model *model, *measured;
    struct sync_vectors vectors;
    uint64_t loaded; /* the stamp of what the model holds; 0: none */
    int32_t *labels; /* [batch] */
    float *sum;      /* of the gradients of pieces; NULL until it is needed */
};

int sync_engine_open(const struct sync_engine_options *options, struct sync_engine **out_engine,
                     struct error *error)
{
    AUTO(sync_engine) struct sync_engine *engine = memory_zeroed(1, sizeof(*engine));
    engine->options = *options;
    const struct model_options training = {options->spec, options->batch, .is_training = true};
    const struct model_options measured = {options->spec, MEASURE_BATCH, .is_training = false};
    if (kernel_set_open(NULL, &engine->kernels, error) < 0 ||
        model_open(engine->kernels, &training, &engine->model, error) < 0 ||
        model_open(engine->kernels, &measured, &engine->measured, error) < 0)
        return -1;
    sync_vectors_init(&engine->vectors, model_parameter_count(engine->model));
    engine->labels = calloc(options->batch, sizeof(*engine->labels));
    ASSERT(engine->labels);
    *out_engine = TAKE(engine);
    return 0;
}

void sync_engine_free(struct sync_engine *engine)
{
    if (!engine)
        return;
    sync_vectors_done(&engine->vectors);
    model_free(engine->model);
    model_free(engine->measured);
    kernel_set_free(engine->kernels);
    free(engine->labels);
    free(engine->sum);
    free(engine);
}

struct sync_vectors *sync_engine_vectors(struct sync_engine *engine)
{
    return &engine->vectors;
}

size_t sync_engine_parameter_count(const struct sync_engine *engine)
{
    return engine->vectors.count;
}

struct sync_vector *sync_engine_begin(struct sync_engine *engine, uint64_t seed)
{
    model_init_parameters(engine->model, seed);
    engine->loaded = 0;
    return sync_vector_copy(&engine->vectors, model_parameters(engine->model));
}

/* A piece of at most a batch: the rows after it get no gradient. */
static double piece_gradient(struct sync_engine *engine, const struct dataset *dataset,
                             const uint32_t *records, uint32_t count)
{
    struct model *model = engine->model;
    const uint32_t classes = (uint32_t)engine->options.spec.classes;
    dataset_gather(dataset, records, count, model_input(model), engine->labels);
    model_forward(model);
    const struct cross_entropy arguments = {
        .batch = count,
        .classes = classes,
        .logits = model_logits(model),
        .labels = engine->labels,
        .logits_gradient = model_logits_gradient(model),
    };
    const double loss = kernel_cross_entropy(engine->kernels, &arguments);
    const size_t rest = (size_t)(engine->options.batch - count) * classes;
    memset(model_logits_gradient(model) + (size_t)count * classes, 0, rest * sizeof(float));
    model_backward(model);
    return loss;
}

const float *sync_engine_gradient(struct sync_engine *engine, const struct sync_vector *parameters,
                                  const struct dataset *dataset, const uint32_t *records,
                                  uint32_t count, double *out_loss)
{
    ASSERT(count > 0);
    struct model *model = engine->model;
    const uint32_t batch = engine->options.batch;
    if (engine->loaded != parameters->stamp)
        memcpy(model_parameters(model), parameters->values, engine->vectors.count * sizeof(float));
    engine->loaded = parameters->stamp;
    if (count <= batch) {
        *out_loss = piece_gradient(engine, dataset, records, count);
        return model_gradients(model);
    }
    if (!engine->sum)
        engine->sum = malloc(engine->vectors.count * sizeof(float));
    ASSERT(engine->sum);
    memset(engine->sum, 0, engine->vectors.count * sizeof(float));
    *out_loss = 0;
    for (uint32_t first = 0; first < count; first += batch) {
        const uint32_t rows = count - first < batch ? count - first : batch;
        const double share = (double)rows / count;
        *out_loss += share * piece_gradient(engine, dataset, records + first, rows);
        kernel_axpy(engine->kernels, (float)share, model_gradients(model), engine->sum,
                    engine->vectors.count);
    }
    return engine->sum;
}

int sync_engine_measure(struct sync_engine *engine, const float *parameters,
                        const struct dataset *dataset, const struct sync_range *range,
                        struct sync_measure *out_measure, struct error *error)
{
    struct evaluation evaluation;
    memcpy(model_parameters(engine->measured), parameters, engine->vectors.count * sizeof(float));
    if (evaluation_init(&evaluation, engine->measured, dataset, range->first, range->count, error) <
        0)
        return -1;
    while (!evaluation_advance(&evaluation))
        continue;
    const struct evaluation_result result = evaluation_result(&evaluation);
    *out_measure = (struct sync_measure){result.loss, result.accuracy};
    return 0;
}
