/* Embedding, LSTM and GRU, and dropout. */
#include "train/layer.h"

#include <math.h>

static int embedding_infer(const struct layer_plan *plan, struct layer_shape input,
                           struct layer_shape *out_output, struct error *error)
{
    if (input.vocabulary == 0)
        return error_set(error, ERROR_INVALID, "takes tokens, so it can only be the first layer");
    if (layer_shape_is_sparse(input))
        return error_set(error, ERROR_INVALID, "takes tokens; sparse rows need a dense layer");
    *out_output =
        (struct layer_shape){1, layer_shape_size(input), (uint32_t)plan->spec.outputs, true, 0};
    return 0;
}

static uint32_t embedding_describe(const struct layer_plan *plan,
                                   struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    out_parameters[0] =
        (struct parameter){.name = "weight",
                           .rank = 2,
                           .shape = {plan->input.vocabulary, (uint32_t)plan->spec.outputs},
                           .role = PARAMETER_WEIGHTS,
                           .start = PARAMETER_START_NORMAL,
                           .start_scale = 1};
    return 1;
}

static int embedding_open(struct layer *layer, const struct operation_options *options,
                          struct error *error)
{
    const struct embedding_shape shape = {layer->batch * layer_shape_size(layer->plan.input),
                                          layer->plan.input.vocabulary,
                                          (uint32_t)layer->plan.spec.outputs};
    return operation_open_embedding(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_embedding = {
    .name = "embedding",
    .prefix = "embedding",
    .infer = embedding_infer,
    .describe = embedding_describe,
    .open = embedding_open,
};

/* An image of one channel is a sequence of its rows. */
static int recurrent_infer(const struct layer_plan *plan, struct layer_shape input,
                           struct layer_shape *out_output, struct error *error)
{
    if (input.channels != 1)
        return error_set(error, ERROR_INVALID, "takes a sequence: steps x features");
    const uint32_t units = (uint32_t)plan->spec.outputs;
    *out_output = plan->spec.steps ? (struct layer_shape){1, input.height, units, true, 0}
                                   : (struct layer_shape){units, 1, 1, false, 0};
    return 0;
}

/* Names, shapes and start as torch's, for one layer in one direction. */
static uint32_t recurrent_describe(const struct layer_plan *plan,
                                   struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t units = (uint32_t)plan->spec.outputs;
    const uint32_t wide = units * (plan->spec.type == LAYER_LSTM ? 4 : 3);
    const struct parameter all[] = {
        {.name = "weight_ih_l0", .rank = 2, .shape = {wide, plan->input.width}},
        {.name = "weight_hh_l0", .rank = 2, .shape = {wide, units}},
        {.name = "bias_ih_l0", .rank = 1, .shape = {wide}},
        {.name = "bias_hh_l0", .rank = 1, .shape = {wide}},
    };
    const enum parameter_role roles[] = {PARAMETER_WEIGHTS, PARAMETER_RECURRENT_WEIGHTS,
                                         PARAMETER_BIAS, PARAMETER_RECURRENT_BIAS};
    for (uint32_t i = 0; i < LAYER_PARAMETERS_MAX; i++) {
        out_parameters[i] = all[i];
        out_parameters[i].role = roles[i];
        out_parameters[i].start = PARAMETER_START_UNIFORM;
        out_parameters[i].start_scale = 1 / sqrt(units);
    }
    return LAYER_PARAMETERS_MAX;
}

static int recurrent_open(struct layer *layer, const struct operation_options *options,
                          struct error *error)
{
    const struct layer_spec *spec = &layer->plan.spec;
    const struct recurrent_shape shape = {
        .kind = spec->type == LAYER_LSTM ? RECURRENT_LSTM : RECURRENT_GRU,
        .batch = layer->batch,
        .steps = layer->plan.input.height,
        .inputs = layer->plan.input.width,
        .units = (uint32_t)spec->outputs,
        .gives_every_step = spec->steps,
    };
    return operation_open_recurrent(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_recurrent = {
    .name = "recurrent",
    .prefix = "rnn",
    .infer = recurrent_infer,
    .describe = recurrent_describe,
    .open = recurrent_open,
};

static int dropout_open(struct layer *layer, const struct operation_options *options,
                        struct error *error)
{
    const struct dropout_shape shape = {(size_t)layer->batch * layer_shape_size(layer->plan.input),
                                        (float)layer->plan.spec.rate};
    return operation_open_dropout(layer->kernels, &shape, options, &layer->operation, error);
}

/* Not in place: the layer before may read its own output again. */
const struct layer_kind layer_dropout = {
    .name = "dropout",
    .prefix = "dropout",
    .infer = layer_infer_same,
    .open = dropout_open,
};
