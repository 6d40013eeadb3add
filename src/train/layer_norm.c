/*
 * Norms. A batch norm keeps running statistics beside its parameters: they lie at the end of the
 * parameter vector, have no gradient, and are exchanged and averaged with the rest.
 */
#include "train/layer.h"

static bool is_row(struct layer_shape shape)
{
    return shape.height == 1 && shape.width == 1;
}

/* What has a scale of its own: a channel of an image, a feature of a step, a value of a row. */
static struct norm_shape batch_shape_of(const struct layer_plan *plan, uint32_t batch)
{
    const struct layer_shape s = plan->input;
    const uint32_t plane = s.height * s.width;
    if (s.is_sequence)
        return (struct norm_shape){NORM_BATCH, batch * s.height, s.width, 1, 0, 0, 0};
    if (s.channels == 1 && s.height == 1) /* a row of a table */
        return (struct norm_shape){NORM_BATCH, batch, s.width, 1, 0, 0, 0};
    if (plan->is_channels_last || is_row(s))
        return (struct norm_shape){NORM_BATCH, batch * plane, s.channels, 1, 0, 0, 0};
    return (struct norm_shape){NORM_BATCH, batch, s.channels, plane, 0, 0, 0};
}

static uint32_t describe_scale(uint32_t features,
                               struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    out_parameters[0] = (struct parameter){.name = "weight",
                                           .rank = 1,
                                           .shape = {features},
                                           .role = PARAMETER_WEIGHTS,
                                           .start = PARAMETER_START_ONE};
    out_parameters[1] =
        (struct parameter){.name = "bias", .rank = 1, .shape = {features}, .role = PARAMETER_BIAS};
    return 2;
}

static uint32_t batch_describe(const struct layer_plan *plan,
                               struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t features = batch_shape_of(plan, 1).features;
    const uint32_t count = describe_scale(features, out_parameters);
    out_parameters[count] = (struct parameter){
        .name = "running_mean", .rank = 1, .shape = {features}, .role = PARAMETER_RUNNING_MEAN};
    out_parameters[count + 1] = (struct parameter){.name = "running_var",
                                                   .rank = 1,
                                                   .shape = {features},
                                                   .role = PARAMETER_RUNNING_VARIANCE,
                                                   .start = PARAMETER_START_ONE};
    return count + 2;
}

static int batch_open(struct layer *layer, const struct operation_options *options,
                      struct error *error)
{
    const struct norm_shape shape = batch_shape_of(&layer->plan, layer->batch);
    return operation_open_norm(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_batch_norm = {
    .name = "batch norm",
    .prefix = "bn",
    .infer = layer_infer_same,
    .describe = batch_describe,
    .open = batch_open,
};

static struct norm_shape layer_shape_of(const struct layer_plan *plan, uint32_t batch)
{
    const struct layer_shape s = plan->input;
    if (s.is_sequence)
        return (struct norm_shape){NORM_LAYER, batch * s.height, s.width, 1, 0, 0, 0};
    return (struct norm_shape){NORM_LAYER, batch, layer_shape_size(s), 1, 0, 0, 0};
}

static uint32_t layer_norm_describe(const struct layer_plan *plan,
                                    struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    return describe_scale(layer_shape_of(plan, 1).features, out_parameters);
}

static int layer_norm_open(struct layer *layer, const struct operation_options *options,
                           struct error *error)
{
    const struct norm_shape shape = layer_shape_of(&layer->plan, layer->batch);
    return operation_open_norm(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_layer_norm = {
    .name = "layer norm",
    .prefix = "ln",
    .infer = layer_infer_same,
    .describe = layer_norm_describe,
    .open = layer_norm_open,
};

static int local_infer(const struct layer_plan *plan, struct layer_shape input,
                       struct layer_shape *out_output, struct error *error)
{
    (void)plan;
    if (input.is_sequence)
        return error_set(error, ERROR_INVALID, "takes images, not sequences");
    *out_output = input;
    return 0;
}

static int local_open(struct layer *layer, const struct operation_options *options,
                      struct error *error)
{
    const struct layer_shape s = layer->plan.input;
    const uint32_t plane = s.height * s.width;
    const bool is_last = layer->plan.is_channels_last;
    const struct norm_shape shape = {
        .kind = NORM_LOCAL,
        .outer = is_last ? layer->batch * plane : layer->batch,
        .features = s.channels,
        .inner = is_last ? 1 : plane,
        .window = (uint32_t)layer->plan.spec.kernel,
        .alpha = (float)layer->plan.spec.alpha,
        .beta = (float)layer->plan.spec.beta,
    };
    return operation_open_norm(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_local_norm = {
    .name = "local norm",
    .prefix = "lrn",
    .infer = local_infer,
    .open = local_open,
};
