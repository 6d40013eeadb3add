#include "train/layer.h"

static int pool_infer(const struct layer_plan *plan, struct layer_shape input,
                      struct layer_shape *out_output, struct error *error)
{
    if (input.height < plan->pool_size || input.width < plan->pool_size)
        return error_set(error, ERROR_INVALID, "%s: a window of %u does not fit into %u x %u",
                         plan->name, plan->pool_size, input.height, input.width);
    *out_output = (struct layer_shape){input.channels, input.height / plan->pool_size,
                                       input.width / plan->pool_size};
    return 0;
}

static void pool_describe_weights(const struct layer_plan *plan, struct layer_shape input,
                                  struct parameter *out_weights)
{
    (void)plan;
    (void)input;
    out_weights->rank = 0;
}

static int pool_open(struct layer *layer, struct kernel_set *kernels, uint32_t batch,
                     const struct operation_options *options, struct error *error)
{
    const struct pool_shape shape = {
        .kind = layer->plan.pool,
        .batch = batch,
        .channels = layer->input_shape.channels,
        .height = layer->input_shape.height,
        .width = layer->input_shape.width,
        .size = layer->plan.pool_size,
    };
    return operation_open_pool(kernels, &shape, options, &layer->operation, error);
}

static void pool_forward(struct layer *layer)
{
    const struct operation_tensors tensors = {.input = layer->input, .output = layer->output};
    operation_forward(layer->operation, &tensors);
}

static void pool_backward(struct layer *layer)
{
    const struct operation_tensors tensors = {
        .input = layer->input,
        .output = layer->output,
        .output_gradient = layer->output_gradient,
        .input_gradient = layer->input_gradient,
    };
    operation_backward(layer->operation, &tensors);
}

const struct layer_kind layer_pool = {
    .name = "pool",
    .infer = pool_infer,
    .describe_weights = pool_describe_weights,
    .open = pool_open,
    .forward = pool_forward,
    .backward = pool_backward,
};
