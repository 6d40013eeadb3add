/*
 * Convolution, alone or joined with the pooling and ReLU behind it where the kernel set computes
 * the three faster as one.
 */
#include "train/layer.h"

static struct conv_shape conv_shape_of(const struct layer_plan *plan, struct layer_shape input,
                                       uint32_t batch)
{
    return (struct conv_shape){
        .batch = batch,
        .channels_in = input.channels,
        .height = input.height,
        .width = input.width,
        .channels_out = plan->outputs,
        .kernel = plan->kernel,
        .pad = plan->pad,
    };
}

static int conv_infer(const struct layer_plan *plan, struct layer_shape input,
                      struct layer_shape *out_output, struct error *error)
{
    if (input.height + 2 * plan->pad < plan->kernel || input.width + 2 * plan->pad < plan->kernel)
        return error_set(error, ERROR_INVALID, "%s: a kernel of %u does not fit into %u x %u",
                         plan->name, plan->kernel, input.height, input.width);
    const struct conv_shape shape = conv_shape_of(plan, input, 1);
    *out_output = (struct layer_shape){plan->outputs, conv_output_size(&shape, input.height),
                                       conv_output_size(&shape, input.width)};
    return 0;
}

static void conv_describe_weights(const struct layer_plan *plan, struct layer_shape input,
                                  struct parameter *out_weights)
{
    out_weights->rank = 4;
    out_weights->shape[0] = plan->outputs;
    out_weights->shape[1] = input.channels;
    out_weights->shape[2] = out_weights->shape[3] = plan->kernel;
}

static int conv_open(struct layer *layer, struct kernel_set *kernels, uint32_t batch,
                     const struct operation_options *options, struct error *error)
{
    const struct conv_shape shape = conv_shape_of(&layer->plan, layer->input_shape, batch);
    return operation_open_conv(kernels, &shape, options, &layer->operation, error);
}

/* weights [outputs, channels, kernel, kernel] */
static void conv_forward(struct layer *layer)
{
    const struct operation_tensors tensors = {
        .input = layer->input,
        .weights = layer->weights,
        .bias = layer->bias,
        .output = layer->output,
    };
    operation_forward(layer->operation, &tensors);
}

static void conv_backward(struct layer *layer)
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

const struct layer_kind layer_conv = {
    .name = "conv",
    .infer = conv_infer,
    .describe_weights = conv_describe_weights,
    .open = conv_open,
    .forward = conv_forward,
    .backward = conv_backward,
};

static int block_infer(const struct layer_plan *plan, struct layer_shape input,
                       struct layer_shape *out_output, struct error *error)
{
    if (conv_infer(plan, input, out_output, error) < 0)
        return -1;
    out_output->height /= 2;
    out_output->width /= 2;
    return 0;
}

static int block_open(struct layer *layer, struct kernel_set *kernels, uint32_t batch,
                      const struct operation_options *options, struct error *error)
{
    const struct conv_block_shape shape = {conv_shape_of(&layer->plan, layer->input_shape, batch)};
    return operation_open_conv_block(kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_conv_block = {
    .name = "conv+pool+relu",
    .infer = block_infer,
    .describe_weights = conv_describe_weights,
    .open = block_open,
    .forward = conv_forward,
    .backward = conv_backward,
};
