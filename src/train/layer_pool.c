#include "train/layer.h"

/* Of a sequence a window reaches over steps only; without a size it takes all there is. */
static struct pool_shape pool_shape_of(const struct layer_plan *plan, struct layer_shape input,
                                       uint32_t batch)
{
    const struct layer_spec *spec = &plan->spec;
    const bool is_whole = spec->kernel == 0;
    const uint32_t kernel = (uint32_t)spec->kernel, stride = (uint32_t)spec->stride;
    return (struct pool_shape){
        .kind = spec->type == LAYER_MAX_POOL ? POOL_MAX : POOL_AVERAGE,
        .batch = batch,
        .channels = input.channels,
        .height = input.height,
        .width = input.width,
        .window_height = is_whole ? input.height : kernel,
        .window_width = input.is_sequence ? 1
                        : is_whole        ? input.width
                                          : kernel,
        .stride_height = is_whole ? input.height : stride,
        .stride_width = input.is_sequence ? 1
                        : is_whole        ? input.width
                                          : stride,
        .is_partial = spec->partial,
        .is_channels_last = plan->is_channels_last,
    };
}

static int pool_infer(const struct layer_plan *plan, struct layer_shape input,
                      struct layer_shape *out_output, struct error *error)
{
    const struct pool_shape shape = pool_shape_of(plan, input, 1);
    if (shape.window_height > input.height || shape.window_width > input.width)
        return error_set(error, ERROR_INVALID, "a window of %u does not fit", shape.window_height);
    const uint32_t height = pool_output_height(&shape), width = pool_output_width(&shape);
    if (input.is_sequence && plan->spec.kernel == 0)
        *out_output = (struct layer_shape){width, 1, 1, false, 0};
    else
        *out_output = (struct layer_shape){input.channels, height, width, input.is_sequence, 0};
    return 0;
}

static int pool_open(struct layer *layer, const struct operation_options *options,
                     struct error *error)
{
    const struct pool_shape shape = pool_shape_of(&layer->plan, layer->plan.input, layer->batch);
    return operation_open_pool(layer->kernels, &shape, options, &layer->operation, error);
}

const struct layer_kind layer_pool = {
    .name = "pool",
    .prefix = "pool",
    .infer = pool_infer,
    .open = pool_open,
};
