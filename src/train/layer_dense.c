#include "train/layer.h"

/* A sequence keeps its steps; any image is a flat row. */
static uint32_t inputs_of(struct layer_shape input)
{
    return input.is_sequence ? input.width : layer_shape_size(input);
}

static int dense_infer(const struct layer_plan *plan, struct layer_shape input,
                       struct layer_shape *out_output, struct error *error)
{
    if (plan->spec.outputs == 0)
        return error_set(error, ERROR_INVALID, "outputs is missing");
    const uint32_t outputs = (uint32_t)plan->spec.outputs;
    *out_output = input.is_sequence ? (struct layer_shape){1, input.height, outputs, true, 0}
                                    : (struct layer_shape){outputs, 1, 1, false, 0};
    return 0;
}

static uint32_t dense_describe(const struct layer_plan *plan,
                               struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t inputs = inputs_of(plan->input);
    const uint32_t shape[] = {(uint32_t)plan->spec.outputs, inputs};
    return layer_describe_weights(plan, inputs, shape, 2, out_parameters);
}

/* output [rows, outputs] = input [rows, inputs] * weights [outputs, inputs]^T + bias [outputs] */
static int dense_open(struct layer *layer, const struct operation_options *options,
                      struct error *error)
{
    const struct layer_shape input = layer->plan.input;
    const struct dense_shape shape = {layer->batch * (input.is_sequence ? input.height : 1),
                                      inputs_of(input), (uint32_t)layer->plan.spec.outputs};
    return operation_open_dense(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_dense = {
    .name = "dense",
    .prefix = "fc",
    .infer = dense_infer,
    .describe = dense_describe,
    .open = dense_open,
};

static int flatten_infer(const struct layer_plan *plan, struct layer_shape input,
                         struct layer_shape *out_output, struct error *error)
{
    (void)plan;
    (void)error;
    *out_output = (struct layer_shape){layer_shape_size(input), 1, 1, false, 0};
    return 0;
}

static void flatten_nothing(struct layer *layer)
{
    if (layer->output != layer->input) /* the first layer: the model's input stays as it is */
        kernel_transpose(layer->input, layer->output, layer->batch, 1,
                         layer_shape_size(layer->plan.input));
}

static void flatten_back(struct layer *layer)
{
    (void)layer;
}

const struct layer_kind layer_flatten = {
    .name = "flatten",
    .prefix = "flatten",
    .is_in_place = true,
    .infer = flatten_infer,
    .forward = flatten_nothing,
    .backward = flatten_back,
};
