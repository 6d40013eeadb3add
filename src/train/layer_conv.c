/*
 * Convolution: of images, alone or joined with the pooling and ReLU behind it where the kernel set
 * computes the three faster as one; and of sequences, over their steps.
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
        .channels_out = (uint32_t)plan->spec.outputs,
        .kernel = (uint32_t)plan->spec.kernel,
        .pad = (uint32_t)plan->spec.pad,
        .stride = (uint32_t)plan->spec.stride,
        .is_channels_last = plan->is_channels_last,
    };
}

static int conv_infer(const struct layer_plan *plan, struct layer_shape input,
                      struct layer_shape *out_output, struct error *error)
{
    const struct conv_shape shape = conv_shape_of(plan, input, 1);
    if (input.height + 2 * shape.pad < shape.kernel || input.width + 2 * shape.pad < shape.kernel)
        return error_set(error, ERROR_INVALID, "a kernel of %u does not fit", shape.kernel);
    *out_output = (struct layer_shape){shape.channels_out, conv_output_size(&shape, input.height),
                                       conv_output_size(&shape, input.width), false, 0};
    return 0;
}

/* weights [outputs, channels, kernel, kernel] */
static uint32_t conv_describe(const struct layer_plan *plan,
                              struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t kernel = (uint32_t)plan->spec.kernel;
    const uint32_t shape[] = {(uint32_t)plan->spec.outputs, plan->input.channels, kernel, kernel};
    return layer_describe_weights(plan, plan->input.channels * kernel * kernel, shape, 4,
                                  out_parameters);
}

static int conv_open(struct layer *layer, const struct operation_options *options,
                     struct error *error)
{
    const struct conv_shape shape = conv_shape_of(&layer->plan, layer->plan.input, layer->batch);
    return operation_open_conv(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_conv = {
    .name = "conv",
    .prefix = "conv",
    .infer = conv_infer,
    .describe = conv_describe,
    .open = conv_open,
};

static int block_open(struct layer *layer, const struct operation_options *options,
                      struct error *error)
{
    const struct conv_block_shape shape = {
        conv_shape_of(&layer->plan, layer->plan.input, layer->batch)};
    return operation_open_conv_block(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_conv_block = {
    .name = "conv+pool+relu",
    .prefix = "conv",
    .describe = conv_describe,
    .open = block_open,
};

static int sequence_infer(const struct layer_plan *plan, struct layer_shape input,
                          struct layer_shape *out_output, struct error *error)
{
    const struct layer_spec *spec = &plan->spec;
    if (spec->stride != 1)
        return error_set(error, ERROR_INVALID, "over a sequence it has no stride");
    if (input.height + 2 * spec->pad < spec->kernel)
        return error_set(error, ERROR_INVALID, "a kernel of %u does not fit",
                         (uint32_t)spec->kernel);
    *out_output =
        (struct layer_shape){1, (uint32_t)(input.height + 2 * spec->pad - spec->kernel + 1),
                             (uint32_t)spec->outputs, true, 0};
    return 0;
}

/* weights [outputs, kernel, features] */
static uint32_t sequence_describe(const struct layer_plan *plan,
                                  struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t shape[] = {(uint32_t)plan->spec.outputs, (uint32_t)plan->spec.kernel,
                              plan->input.width};
    return layer_describe_weights(plan, shape[1] * shape[2], shape, 3, out_parameters);
}

static int sequence_open(struct layer *layer, const struct operation_options *options,
                         struct error *error)
{
    const struct layer_spec *spec = &layer->plan.spec;
    const struct sequence_conv_shape shape = {
        .batch = layer->batch,
        .steps = layer->plan.input.height,
        .features = layer->plan.input.width,
        .outputs = (uint32_t)spec->outputs,
        .kernel = (uint32_t)spec->kernel,
        .pad = (uint32_t)spec->pad,
    };
    return operation_open_sequence_conv(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_sequence_conv = {
    .name = "conv over steps",
    .prefix = "conv",
    .infer = sequence_infer,
    .describe = sequence_describe,
    .open = sequence_open,
};
