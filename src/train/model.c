#include "train/model.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"
#include "train/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct model {
    struct kernel_set *kernels;
    struct model_options options;
    struct parameter_table table;
    struct layer layers[LAYERS_MAX];
    uint32_t layer_count;
    float *parameters, *gradients; /* [table.float_count] */
    float *input;                  /* [batch, channels, height, width] */
    size_t input_size;             /* of one */
    uint64_t seed;                 /* of what a dropout drops */
};

/* Sizes are those of a checked spec. Aligned to a cache line for the kernels. */
static float *floats_new(size_t count)
{
    enum { LINE = 64 };
    const size_t size = (count * sizeof(float) + LINE - 1) / LINE * LINE;
    float *floats = aligned_alloc(LINE, size);
    ASSERT(floats != NULL);
    memset(floats, 0, size);
    return floats;
}

static bool is_skipped(const struct layer_plan *plans, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++)
        if (plans[i].kind == &layer_residual && plans[i].from == index)
            return true;
    return false;
}

static void layer_bind_memory(struct model *model, struct layer *layer, const struct layer *before,
                              bool is_kept)
{
    const bool is_training = model->options.is_training;
    const size_t count = (size_t)model->options.batch * layer_shape_size(layer->plan.output);
    layer->input = before ? before->output : model->input;
    layer->input_gradient = before ? before->output_gradient : NULL;
    layer->needs_input_gradient =
        before && (before->needs_input_gradient || before->plan.kind->describe);
    /* What is added again later must not be overwritten. */
    layer->is_in_place = layer->plan.kind->is_in_place && before && !is_kept;
    layer->output = layer->is_in_place ? layer->input : floats_new(count);
    if (is_training)
        layer->output_gradient = layer->is_in_place ? layer->input_gradient : floats_new(count);
    if (layer->plan.kind != &layer_residual)
        return;
    const struct layer *from = &model->layers[layer->plan.from];
    layer->skip = from->input;
    if (is_training)
        layer->skip_gradient = layer->output_gradient;
}

/* A projection's skip has a shape of its own. */
static void layer_bind_skip(struct layer *layer)
{
    if (layer->plan.kind == &layer_residual && layer->operation && layer->skip_gradient)
        layer->skip_gradient =
            floats_new((size_t)layer->batch * layer_shape_size(layer->plan.skip));
}

static void layer_bind_parameters(struct model *model, struct layer *layer, uint32_t *next)
{
    struct parameter described[LAYER_PARAMETERS_MAX];
    struct operation_tensors *t = &layer->tensors;
    *t = (struct operation_tensors){
        .input = layer->input,
        .output = layer->output,
        .output_gradient = layer->output_gradient,
        .input_gradient = layer->input_gradient,
    };
    const uint32_t count =
        layer->plan.kind->describe ? layer->plan.kind->describe(&layer->plan, described) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct parameter *parameter = &model->table.items[(*next)++];
        float *values = model->parameters + parameter->offset;
        float *gradients = model->gradients ? model->gradients + parameter->offset : NULL;
        switch (parameter->role) {
        case PARAMETER_WEIGHTS:
            t->weights = values;
            t->weights_gradient = gradients;
            break;
        case PARAMETER_BIAS:
            t->bias = values;
            t->bias_gradient = gradients;
            break;
        case PARAMETER_RECURRENT_WEIGHTS:
            t->recurrent_weights = values;
            t->recurrent_weights_gradient = gradients;
            break;
        case PARAMETER_RECURRENT_BIAS:
            t->recurrent_bias = values;
            t->recurrent_bias_gradient = gradients;
            break;
        case PARAMETER_RUNNING_MEAN:
            t->running_mean = values;
            break;
        case PARAMETER_RUNNING_VARIANCE:
            t->running_variance = values;
            break;
        }
    }
}

static int open_layer(struct model *model, const struct layer_plan *plans, uint32_t count,
                      uint32_t index, uint32_t *next_parameter, struct error *error)
{
    struct layer *layer = &model->layers[model->layer_count++];
    *layer = (struct layer){
        .plan = plans[index], .kernels = model->kernels, .batch = model->options.batch};
    layer_bind_memory(model, layer, index ? layer - 1 : NULL, is_skipped(plans, count, index));
    layer_bind_parameters(model, layer, next_parameter);
    const struct operation_options options = {
        .is_training = model->options.is_training,
        .needs_input_gradient = layer->needs_input_gradient,
    };
    if (layer->plan.kind->open && layer->plan.kind->open(layer, &options, error) < 0)
        return error_wrap(error, "layer %s", layer->plan.name);
    layer_bind_skip(layer);
    return 0;
}

static void close_layers(struct model *model)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        struct layer *layer = &model->layers[i];
        if (layer->plan.kind == &layer_residual && layer->skip_gradient != layer->output_gradient)
            free(layer->skip_gradient);
        operation_free(layer->operation);
        if (!layer->is_in_place) {
            free(layer->output);
            free(layer->output_gradient);
        }
    }
    model->layer_count = 0;
}

static int open_layers(struct model *model, bool can_be_channels_last, struct error *error)
{
    struct layer_plan plans[LAYERS_MAX];
    uint32_t count = 0, next_parameter = 0;
    int bad_layer;
    if (layer_plan_all(&model->options.spec, plans, &count, &bad_layer, error) < 0)
        return -1;
    count = layer_arrange(model->kernels, can_be_channels_last, plans, count);
    for (uint32_t i = 0; i < count; i++)
        if (open_layer(model, plans, count, i, &next_parameter, error) < 0)
            return -1;
    ASSERT(next_parameter == model->table.count);
    return 0;
}

int model_open(struct kernel_set *kernels, const struct model_options *options,
               struct model **out_model, struct error *error)
{
    struct parameter_table table;
    if (model_spec_layout(&options->spec, &table, error) < 0)
        return -1;
    if (options->batch == 0 || options->batch > MODEL_BATCH_MAX)
        return error_set(error, ERROR_INVALID, "model: batch %u is not from 1 to %d",
                         options->batch, MODEL_BATCH_MAX);
    const struct model_spec *spec = &options->spec;
    const size_t input_size = (size_t)(spec->channels * spec->height * spec->width);
    if (input_size * options->batch > TENSOR_ELEMENTS_MAX)
        return error_set(error, ERROR_INVALID, "model: a batch of %u images is too large",
                         options->batch);

    AUTO(model) struct model *model = memory_zeroed(1, sizeof(*model));
    model->kernels = kernels;
    model->options = *options;
    model->table = table;
    model->input_size = input_size;
    model->parameters = floats_new(table.float_count);
    model->input = floats_new(input_size * options->batch);
    if (options->is_training)
        model->gradients = floats_new(table.float_count);
    /* A layout that the libraries here cannot compute is given up for the whole model. */
    int result = open_layers(model, /* can_be_channels_last= */ true, error);
    if (result < 0 && error->code == ERROR_UNAVAILABLE) {
        close_layers(model);
        result = open_layers(model, /* can_be_channels_last= */ false, error);
    }
    if (result < 0)
        return error_wrap(error, "model %s", model_kind_name(spec->kind));
    *out_model = TAKE(model);
    return 0;
}

void model_free(struct model *model)
{
    if (!model)
        return;
    close_layers(model);
    free(model->parameters);
    free(model->gradients);
    free(model->input);
    free(model);
}

static void parameter_start(struct random *random, const struct parameter *parameter, float *values)
{
    for (size_t i = 0; i < parameter->count; i++)
        switch (parameter->start) {
        case PARAMETER_START_ZERO:
            values[i] = 0;
            break;
        case PARAMETER_START_ONE:
            values[i] = 1;
            break;
        case PARAMETER_START_NORMAL:
            values[i] = (float)(parameter->start_scale * random_normal(random));
            break;
        case PARAMETER_START_UNIFORM:
            values[i] = (float)(parameter->start_scale * (2 * random_unit(random) - 1));
            break;
        }
}

void model_init_parameters(struct model *model, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    for (uint32_t i = 0; i < model->table.count; i++) {
        const struct parameter *parameter = &model->table.items[i];
        parameter_start(&random, parameter, model->parameters + parameter->offset);
    }
}

const struct model_spec *model_spec(const struct model *model)
{
    return &model->options.spec;
}

uint32_t model_batch(const struct model *model)
{
    return model->options.batch;
}

struct kernel_set *model_kernels(const struct model *model)
{
    return model->kernels;
}

const struct parameter_table *model_parameter_table(const struct model *model)
{
    return &model->table;
}

size_t model_parameter_count(const struct model *model)
{
    return model->table.float_count;
}

float *model_parameters(struct model *model)
{
    return model->parameters;
}

float *model_gradients(struct model *model)
{
    return model->gradients;
}

size_t model_learned_count(const struct model *model)
{
    return model->table.learned_count;
}

uint32_t model_output_rows(const struct model *model)
{
    const struct layer_shape shape = model->layers[model->layer_count - 1].plan.output;
    return shape.is_sequence ? shape.height : 1;
}

float *model_input(struct model *model)
{
    return model->input;
}

size_t model_input_size(const struct model *model)
{
    return model->input_size;
}

const float *model_logits(const struct model *model)
{
    return model->layers[model->layer_count - 1].output;
}

static const float *run_forward(struct model *model, bool is_inference)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        struct layer *layer = &model->layers[i];
        layer->tensors.is_inference = is_inference;
        layer->tensors.seed = model->seed + i;
        layer_forward(layer);
    }
    return model_logits(model);
}

const float *model_forward(struct model *model)
{
    return run_forward(model, /* is_inference= */ !model->options.is_training);
}

const float *model_predict(struct model *model)
{
    return run_forward(model, /* is_inference= */ true);
}

void model_set_seed(struct model *model, uint64_t seed)
{
    model->seed = seed;
}

float *model_logits_gradient(struct model *model)
{
    return model->layers[model->layer_count - 1].output_gradient;
}

void model_backward(struct model *model)
{
    ASSERT(model->options.is_training);
    for (uint32_t i = model->layer_count; i-- > 0;) {
        struct layer *layer = &model->layers[i];
        layer_backward(layer);
        /* Residuals behind that add what this layer took in. */
        for (uint32_t k = i + 1; layer->needs_input_gradient && k < model->layer_count; k++) {
            const struct layer *residual = &model->layers[k];
            if (residual->plan.kind == &layer_residual && residual->plan.from == i)
                kernel_axpy(model->kernels, 1, residual->skip_gradient, layer->input_gradient,
                            (size_t)layer->batch * layer_shape_size(layer->plan.input));
        }
    }
}

void model_describe(const struct model *model, struct buffer *buffer)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        const struct layer_shape in = layer->plan.input, out = layer->plan.output;
        buffer_append_format(buffer, "%-8s %-14s %ux%ux%u -> %ux%ux%u  %s\n", layer->plan.name,
                             layer->plan.kind->name, in.channels, in.height, in.width, out.channels,
                             out.height, out.width,
                             layer->operation ? operation_describe(layer->operation) : "");
    }
}
