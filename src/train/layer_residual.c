/*
 * Residual: adds what some layers before took in; through a convolution of 1 x 1 with a bias where
 * the two differ in channels or sides. And the change of layout between layers.
 */
#include "base/assert.h"
#include "train/layer.h"

#include <string.h>

static bool is_same(struct layer_shape left, struct layer_shape right)
{
    return left.channels == right.channels && left.height == right.height &&
           left.width == right.width && left.is_sequence == right.is_sequence;
}

static uint32_t stride_of(const struct layer_plan *plan)
{
    return plan->skip.height > plan->input.height
               ? (plan->skip.height + plan->input.height - 1) / plan->input.height
               : 1;
}

static struct conv_shape projection_of(const struct layer_plan *plan, uint32_t batch)
{
    return (struct conv_shape){
        .batch = batch,
        .channels_in = plan->skip.channels,
        .height = plan->skip.height,
        .width = plan->skip.width,
        .channels_out = plan->input.channels,
        .kernel = 1,
        .stride = stride_of(plan),
        .is_channels_last = plan->is_channels_last,
    };
}

static int residual_infer(const struct layer_plan *plan, struct layer_shape input,
                          struct layer_shape *out_output, struct error *error)
{
    const struct layer_shape skip = plan->skip;
    *out_output = input;
    if (is_same(skip, input))
        return 0;
    const struct conv_shape projection = projection_of(plan, 1);
    const bool is_row = input.height * input.width == 1;
    if (skip.is_sequence || input.is_sequence || skip.vocabulary ||
        is_row != (skip.height * skip.width == 1) ||
        conv_output_size(&projection, skip.height) != input.height ||
        conv_output_size(&projection, skip.width) != input.width)
        return error_set(error, ERROR_INVALID, "what came in there, %u x %u x %u, cannot be added",
                         skip.channels, skip.height, skip.width);
    return 0;
}

static uint32_t residual_describe(const struct layer_plan *plan,
                                  struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    if (is_same(plan->skip, plan->input))
        return 0;
    const uint32_t shape[] = {plan->input.channels, plan->skip.channels, 1, 1};
    return layer_describe_weights(plan, plan->skip.channels, shape, 4, out_parameters);
}

static int residual_open(struct layer *layer, const struct operation_options *options,
                         struct error *error)
{
    if (is_same(layer->plan.skip, layer->plan.input))
        return 0;
    const struct conv_shape shape = projection_of(&layer->plan, layer->batch);
    return operation_open_conv(layer->kernels, &shape, options, &layer->operation, error);
}

static struct operation_tensors projection_tensors(const struct layer *layer)
{
    struct operation_tensors tensors = layer->tensors;
    tensors.input = layer->skip;
    tensors.input_gradient = layer->skip_gradient;
    return tensors;
}

static void residual_forward(struct layer *layer)
{
    const size_t count = (size_t)layer->batch * layer_shape_size(layer->plan.output);
    if (layer->operation) {
        const struct operation_tensors tensors = projection_tensors(layer);
        operation_forward(layer->operation, &tensors);
    } else {
        memcpy(layer->output, layer->skip, sizeof(float) * count);
    }
    kernel_axpy(layer->kernels, 1, layer->input, layer->output, count);
}

/* The model adds skip_gradient to the gradient of what was skipped once that has been computed. */
static void residual_backward(struct layer *layer)
{
    const size_t count = (size_t)layer->batch * layer_shape_size(layer->plan.output);
    if (layer->operation) {
        const struct operation_tensors tensors = projection_tensors(layer);
        operation_backward(layer->operation, &tensors);
    }
    memcpy(layer->input_gradient, layer->output_gradient, sizeof(float) * count);
}

const struct layer_kind layer_residual = {
    .name = "residual",
    .prefix = "residual",
    .infer = residual_infer,
    .describe = residual_describe,
    .open = residual_open,
    .forward = residual_forward,
    .backward = residual_backward,
};

static void reorder(const struct layer *layer, bool to_last, const float *from, float *to)
{
    const struct layer_shape s = layer->plan.input;
    const uint32_t plane = s.height * s.width;
    kernel_transpose(from, to, layer->batch, to_last ? s.channels : plane,
                     to_last ? plane : s.channels);
}

static void reorder_forward(struct layer *layer)
{
    reorder(layer, layer->plan.is_channels_last, layer->input, layer->output);
}

static void reorder_backward(struct layer *layer)
{
    if (layer->needs_input_gradient)
        reorder(layer, !layer->plan.is_channels_last, layer->output_gradient,
                layer->input_gradient);
}

/* is_channels_last says what it gives; it takes the other. */
const struct layer_kind layer_reorder = {
    .name = "reorder",
    .prefix = "reorder",
    .forward = reorder_forward,
    .backward = reorder_backward,
};
