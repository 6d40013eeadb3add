#include "train/layer.h"

static int dense_infer(const struct layer_plan *plan, struct layer_shape input,
                       struct layer_shape *out_output, struct error *error)
{
    (void)input; /* any image is a flat row */
    (void)error;
    *out_output = (struct layer_shape){plan->outputs, 1, 1};
    return 0;
}

static void dense_describe_weights(const struct layer_plan *plan, struct layer_shape input,
                                   struct parameter *out_weights)
{
    out_weights->rank = 2;
    out_weights->shape[0] = plan->outputs;
    out_weights->shape[1] = layer_shape_size(input);
}

static int dense_open(struct layer *layer, struct kernel_set *kernels, uint32_t batch,
                      const struct operation_options *options, struct error *error)
{
    const struct dense_shape shape = {batch, layer_shape_size(layer->input_shape),
                                      layer->plan.outputs};
    return operation_open_dense(kernels, &shape, options, &layer->operation, error);
}

/* output [batch, outputs] = input [batch, inputs] * weights [outputs, inputs]^T + bias [outputs] */
static void dense_forward(struct layer *layer)
{
    const struct operation_tensors tensors = {
        .input = layer->input,
        .weights = layer->weights,
        .bias = layer->bias,
        .output = layer->output,
    };
    operation_forward(layer->operation, &tensors);
}

static void dense_backward(struct layer *layer)
{
    const struct operation_tensors tensors = {
        .input = layer->input,
        .weights = layer->weights,
        .bias = layer->bias,
        .output = layer->output,
        .output_gradient = layer->output_gradient,
        .input_gradient = layer->input_gradient,
        .weights_gradient = layer->weights_gradient,
        .bias_gradient = layer->bias_gradient,
    };
    operation_backward(layer->operation, &tensors);
}

const struct layer_kind layer_dense = {
    .name = "dense",
    .infer = dense_infer,
    .describe_weights = dense_describe_weights,
    .open = dense_open,
    .forward = dense_forward,
    .backward = dense_backward,
};
