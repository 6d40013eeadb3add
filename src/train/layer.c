#include "train/layer.h"

#include <math.h>
#include <string.h>

int layer_infer_same(const struct layer_plan *plan, struct layer_shape input,
                     struct layer_shape *out_output, struct error *error)
{
    (void)plan;
    (void)error;
    *out_output = input;
    return 0;
}

/* He et al. 2015, eq. 10, keeps the variance through layers that a ReLU halves; elsewhere Glorot
 * and Bengio 2010, eq. 16. */
uint32_t layer_describe_weights(const struct layer_plan *plan, uint32_t fan_in,
                                const uint32_t *shape, uint32_t rank,
                                struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t outputs = shape[0];
    out_parameters[0] = (struct parameter){
        .name = "weight",
        .rank = rank,
        .role = PARAMETER_WEIGHTS,
        .start = plan->is_before_relu ? PARAMETER_START_NORMAL : PARAMETER_START_UNIFORM,
        .start_scale =
            plan->is_before_relu ? sqrt(2.0 / fan_in) : sqrt(6.0 / ((double)fan_in + outputs)),
    };
    memcpy(out_parameters[0].shape, shape, sizeof(*shape) * rank);
    out_parameters[1] =
        (struct parameter){.name = "bias", .rank = 1, .shape = {outputs}, .role = PARAMETER_BIAS};
    return 2;
}

void layer_forward(struct layer *layer)
{
    if (layer->plan.kind->forward)
        layer->plan.kind->forward(layer);
    else
        operation_forward(layer->operation, &layer->tensors);
}

void layer_backward(struct layer *layer)
{
    if (layer->plan.kind->backward)
        layer->plan.kind->backward(layer);
    else
        operation_backward(layer->operation, &layer->tensors);
}
