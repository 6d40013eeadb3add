#include "train/layer.h"

static int activation_infer(const struct layer_plan *plan, struct layer_shape input,
                            struct layer_shape *out_output, struct error *error)
{
    (void)plan;
    (void)error;
    *out_output = input;
    return 0;
}

static void activation_describe_weights(const struct layer_plan *plan, struct layer_shape input,
                                        struct parameter *out_weights)
{
    (void)plan;
    (void)input;
    out_weights->rank = 0;
}

static int activation_open(struct layer *layer, struct kernel_set *kernels, uint32_t batch,
                           const struct operation_options *options, struct error *error)
{
    const struct activation_shape shape = {layer->plan.activation,
                                           (size_t)batch * layer_shape_size(layer->input_shape)};
    return operation_open_activation(kernels, &shape, options, &layer->operation, error);
}

static void activation_forward(struct layer *layer)
{
    const struct operation_tensors tensors = {.input = layer->input, .output = layer->output};
    operation_forward(layer->operation, &tensors);
}

static void activation_backward(struct layer *layer)
{
    const struct operation_tensors tensors = {
        .input = layer->input,
        .output = layer->output,
        .output_gradient = layer->output_gradient,
        .input_gradient = layer->input_gradient,
    };
    operation_backward(layer->operation, &tensors);
}

/* In place: backward needs the output only, and no layer before reads its own output again. */
const struct layer_kind layer_activation = {
    .name = "activation",
    .is_in_place = true,
    .infer = activation_infer,
    .describe_weights = activation_describe_weights,
    .open = activation_open,
    .forward = activation_forward,
    .backward = activation_backward,
};
