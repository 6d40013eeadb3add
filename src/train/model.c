#include "train/model.h"

#include "base/assert.h"
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
    size_t input_size;             /* of one image */
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

/* Joins convolution, pooling by 2 and ReLU where the kernel set has them as one. */
static uint32_t join_blocks(const struct kernel_set *kernels, struct layer_plan *plans,
                            uint32_t count, struct layer_shape input)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct layer_plan plan = plans[i];
        struct layer_shape output;
        struct error none;
        if (plan.kind->infer(&plan, input, &output, &none) < 0)
            ASSERT(false); /* the layout was made from the same plans */
        if (kernel_set_has_conv_block(kernels) && i + 2 < count && plan.kind == &layer_conv &&
            plans[i + 1].kind == &layer_pool && plans[i + 1].pool == POOL_MAX &&
            plans[i + 1].pool_size == 2 && plans[i + 2].kind == &layer_activation &&
            plans[i + 2].activation == ACTIVATION_RELU && plan.kernel % 2 == 1 &&
            output.height % 2 == 0 && output.width % 2 == 0) {
            plan.kind = &layer_conv_block;
            output.height /= 2;
            output.width /= 2;
            i += 2;
        }
        input = output;
        plans[kept++] = plan;
    }
    return kept;
}

static void layer_bind_memory(struct model *model, struct layer *layer, const struct layer *before)
{
    const bool is_training = model->options.is_training;
    const size_t count = (size_t)model->options.batch * layer_shape_size(layer->output_shape);
    layer->input = before ? before->output : model->input;
    layer->input_gradient = before ? before->output_gradient : NULL;
    layer->needs_input_gradient = before != NULL;
    layer->is_in_place = layer->plan.kind->is_in_place && before;
    layer->output = layer->is_in_place ? layer->input : floats_new(count);
    if (is_training)
        layer->output_gradient = layer->is_in_place ? layer->input_gradient : floats_new(count);
}

static void layer_bind_parameters(struct model *model, struct layer *layer, uint32_t *next)
{
    struct parameter weights = {0};
    layer->plan.kind->describe_weights(&layer->plan, layer->input_shape, &weights);
    if (weights.rank == 0)
        return;
    const struct parameter *weight = &model->table.items[(*next)++];
    const struct parameter *bias = &model->table.items[(*next)++];
    layer->weights = model->parameters + weight->offset;
    layer->bias = model->parameters + bias->offset;
    if (!model->options.is_training)
        return;
    layer->weights_gradient = model->gradients + weight->offset;
    layer->bias_gradient = model->gradients + bias->offset;
}

static int open_layers(struct model *model, struct error *error)
{
    const struct model_spec *spec = &model->options.spec;
    struct layer_plan plans[LAYERS_MAX];
    struct layer_shape shape = {(uint32_t)spec->channels, (uint32_t)spec->height,
                                (uint32_t)spec->width};
    const uint32_t count = join_blocks(model->kernels, plans, layer_plans_of(spec, plans), shape);
    uint32_t next_parameter = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct layer *layer = &model->layers[model->layer_count++];
        *layer = (struct layer){.plan = plans[i], .input_shape = shape};
        if (layer->plan.kind->infer(&layer->plan, shape, &layer->output_shape, error) < 0)
            return -1;
        layer_bind_memory(model, layer, i ? layer - 1 : NULL);
        layer_bind_parameters(model, layer, &next_parameter);
        const struct operation_options options = {
            .is_training = model->options.is_training,
            .needs_input_gradient = layer->needs_input_gradient,
        };
        if (layer->plan.kind->open(layer, model->kernels, model->options.batch, &options, error) <
            0)
            return error_wrap(error, "layer %s", layer->plan.name);
        shape = layer->output_shape;
    }
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

    AUTO(model) struct model *model = calloc(1, sizeof(*model));
    ASSERT(model != NULL);
    model->kernels = kernels;
    model->options = *options;
    model->table = table;
    model->input_size = input_size;
    model->parameters = floats_new(table.float_count);
    model->input = floats_new(input_size * options->batch);
    if (options->is_training)
        model->gradients = floats_new(table.float_count);
    if (open_layers(model, error) < 0)
        return error_wrap(error, "model %s", model_kind_name(spec->kind));
    *out_model = TAKE(model);
    return 0;
}

void model_free(struct model *model)
{
    if (!model)
        return;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        struct layer *layer = &model->layers[i];
        operation_free(layer->operation);
        if (!layer->is_in_place) {
            free(layer->output);
            free(layer->output_gradient);
        }
    }
    free(model->parameters);
    free(model->gradients);
    free(model->input);
    free(model);
}

/* He et al. 2015, eq. 10: keeps the variance through layers that a ReLU halves. */
static void init_he(struct random *random, float *weights, size_t count, uint32_t fan_in)
{
    const double deviation = sqrt(2.0 / fan_in);
    for (size_t i = 0; i < count; i++)
        weights[i] = (float)(deviation * random_normal(random));
}

/* Glorot and Bengio 2010, eq. 16. */
static void init_glorot(struct random *random, float *weights, size_t count, uint32_t fan_sum)
{
    const double limit = sqrt(6.0 / fan_sum);
    for (size_t i = 0; i < count; i++)
        weights[i] = (float)(limit * (2 * random_unit(random) - 1));
}

void model_init_parameters(struct model *model, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    uint32_t next = 0;
    memset(model->parameters, 0, sizeof(float) * model->table.float_count);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        if (!layer->weights)
            continue;
        const struct parameter *weight = &model->table.items[next];
        next += 2; /* weight and bias; biases stay 0 */
        const uint32_t fan_in = (uint32_t)(weight->count / weight->shape[0]);
        float *values = model->parameters + weight->offset;
        if (layer->plan.init == LAYER_INIT_HE)
            init_he(&random, values, weight->count, fan_in);
        else
            init_glorot(&random, values, weight->count, fan_in + weight->shape[0]);
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

const float *model_forward(struct model *model)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        struct layer *layer = &model->layers[i];
        layer->plan.kind->forward(layer);
    }
    return model_logits(model);
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
        layer->plan.kind->backward(layer);
    }
}

void model_describe(const struct model *model, struct buffer *buffer)
{
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        const struct layer_shape in = layer->input_shape, out = layer->output_shape;
        buffer_append_format(buffer, "%-8s %-14s %ux%ux%u -> %ux%ux%u  %s\n", layer->plan.name,
                             layer->plan.kind->name, in.channels, in.height, in.width, out.channels,
                             out.height, out.width, operation_describe(layer->operation));
    }
}
