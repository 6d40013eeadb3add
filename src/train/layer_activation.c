#include "base/assert.h"
#include "train/layer.h"

static enum activation_kind activation_of(int type)
{
    switch ((enum layer_type)type) {
    case LAYER_TANH:
        return ACTIVATION_TANH;
    case LAYER_SIGMOID:
        return ACTIVATION_SIGMOID;
    case LAYER_GELU:
        return ACTIVATION_GELU;
    case LAYER_RELU:
    default:
        ASSERT(type == LAYER_RELU);
        return ACTIVATION_RELU;
    }
}

static int activation_open(struct layer *layer, const struct operation_options *options,
                           struct error *error)
{
    const struct activation_shape shape = {activation_of(layer->plan.spec.type),
                                           (size_t)layer->batch *
                                               layer_shape_size(layer->plan.input)};
    return operation_open_activation(layer->kernels, &shape, options, &layer->operation, error);
}

/* In place: backward needs the output only, and no layer before reads its own output again. */
const struct layer_kind layer_activation = {
    .name = "activation",
    .prefix = "act",
    .is_in_place = true,
    .infer = layer_infer_same,
    .open = activation_open,
};

const struct layer_kind layer_gelu = {
    .name = "gelu",
    .prefix = "gelu",
    .infer = layer_infer_same,
    .open = activation_open,
};
