/*
 * A dense layer over sparse rows: adds up the weights of the places a row has, times its numbers.
 *
 *     output [batch, outputs] = sum over entries of value * weight [place] + bias
 *
 * Weights are [places, outputs], as torch's EmbeddingBag has them, so that what one entry needs
 * lies together. An entry of value 0 fills up a short row.
 */
#include "train/layer.h"

#include <string.h>

static int sparse_infer(const struct layer_plan *plan, struct layer_shape input,
                        struct layer_shape *out_output, struct error *error)
{
    (void)input;
    if (plan->spec.outputs == 0)
        return error_set(error, ERROR_INVALID, "outputs is missing");
    *out_output = (struct layer_shape){(uint32_t)plan->spec.outputs, 1, 1, false, 0};
    return 0;
}

/* A row adds up as many weights as it has entries: that is its fan-in, not the places. */
static uint32_t sparse_describe(const struct layer_plan *plan,
                                struct parameter out_parameters[LAYER_PARAMETERS_MAX])
{
    const uint32_t outputs = (uint32_t)plan->spec.outputs;
    const uint32_t shape[] = {outputs, plan->input.vocabulary};
    const uint32_t count =
        layer_describe_weights(plan, plan->input.width, shape, 2, out_parameters);
    out_parameters[0].shape[0] = plan->input.vocabulary;
    out_parameters[0].shape[1] = outputs;
    return count;
}

/* Of one row: [entries] places, then [entries] values. */
static const float *row_of(const struct layer *layer, uint32_t row)
{
    return layer->input + (size_t)row * 2 * layer->plan.input.width;
}

/* A place that is none cannot come from a checked data set; it is clamped so that no memory outside
 * is ever touched. */
static size_t place_at(const struct layer *layer, float place)
{
    const uint32_t places = layer->plan.input.vocabulary;
    if (!(place >= 0))
        return 0;
    return place < (float)places ? (size_t)place : places - 1;
}

static void sparse_forward(struct layer *layer)
{
    const uint32_t entries = layer->plan.input.width;
    const uint32_t outputs = (uint32_t)layer->plan.spec.outputs;
    for (uint32_t n = 0; n < layer->batch; n++) {
        const float *places = row_of(layer, n), *values = places + entries;
        float *restrict out = layer->output + (size_t)n * outputs;
        memcpy(out, layer->tensors.bias, sizeof(float) * outputs);
        for (uint32_t e = 0; e < entries; e++) {
            const float *restrict weights =
                layer->tensors.weights + place_at(layer, places[e]) * outputs;
            for (uint32_t k = 0; values[e] != 0 && k < outputs; k++)
                out[k] += values[e] * weights[k];
        }
    }
}

static void sparse_backward(struct layer *layer)
{
    const uint32_t entries = layer->plan.input.width;
    const uint32_t outputs = (uint32_t)layer->plan.spec.outputs;
    const struct operation_tensors *t = &layer->tensors;
    memset(t->weights_gradient, 0, sizeof(float) * layer->plan.input.vocabulary * outputs);
    memset(t->bias_gradient, 0, sizeof(float) * outputs);
    for (uint32_t n = 0; n < layer->batch; n++) {
        const float *places = row_of(layer, n), *values = places + entries;
        const float *restrict out = layer->output_gradient + (size_t)n * outputs;
        for (uint32_t k = 0; k < outputs; k++)
            t->bias_gradient[k] += out[k];
        for (uint32_t e = 0; e < entries; e++) {
            float *restrict weights = t->weights_gradient + place_at(layer, places[e]) * outputs;
            for (uint32_t k = 0; values[e] != 0 && k < outputs; k++)
                weights[k] += values[e] * out[k];
        }
    }
}

const struct layer_kind layer_sparse = {
    .name = "sparse",
    .prefix = "sparse",
    .infer = sparse_infer,
    .describe = sparse_describe,
    .forward = sparse_forward,
    .backward = sparse_backward,
};
