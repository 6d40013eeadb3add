/* From the list of layers in a spec to plans with names and shapes; all that can be wrong with a
 * network is found here. */
#include "base/assert.h"
#include "train/layer.h"

#include <inttypes.h>
#include <stdio.h>

static const struct layer_kind *kind_of(const struct layer_spec *spec, struct layer_shape input)
{
    switch ((enum layer_type)spec->type) {
    case LAYER_DENSE:
        return layer_shape_is_sparse(input) ? &layer_sparse : &layer_dense;
    case LAYER_CONV:
        return input.is_sequence ? &layer_sequence_conv : &layer_conv;
    case LAYER_MAX_POOL:
    case LAYER_AVERAGE_POOL:
        return &layer_pool;
    case LAYER_BATCH_NORM:
        return &layer_batch_norm;
    case LAYER_LAYER_NORM:
        return &layer_layer_norm;
    case LAYER_LOCAL_NORM:
        return &layer_local_norm;
    case LAYER_DROPOUT:
        return &layer_dropout;
    case LAYER_EMBEDDING:
        return &layer_embedding;
    case LAYER_LSTM:
    case LAYER_GRU:
        return &layer_recurrent;
    case LAYER_RESIDUAL:
        return &layer_residual;
    case LAYER_RELU:
    case LAYER_TANH:
    case LAYER_SIGMOID:
        return &layer_activation;
    case LAYER_GELU:
        return &layer_gelu;
    case LAYER_FLATTEN:
        return &layer_flatten;
    case LAYER_TYPE_COUNT:
        break;
    }
    UNREACHABLE("a type of layer without a kind");
}

/* Whether the first activation behind it is a ReLU or a GELU. */
static bool is_before_relu(const struct model_spec *spec, int64_t index)
{
    for (int64_t i = index + 1; i < spec->layer_count; i++)
        switch ((enum layer_type)spec->layers[i].type) {
        case LAYER_RELU:
        case LAYER_GELU:
            return true;
        case LAYER_MAX_POOL:
        case LAYER_AVERAGE_POOL:
        case LAYER_BATCH_NORM:
        case LAYER_LAYER_NORM:
        case LAYER_LOCAL_NORM:
        case LAYER_DROPOUT:
        case LAYER_RESIDUAL:
        case LAYER_FLATTEN:
            break;
        case LAYER_DENSE:
        case LAYER_CONV:
        case LAYER_EMBEDDING:
        case LAYER_LSTM:
        case LAYER_GRU:
        case LAYER_TANH:
        case LAYER_SIGMOID:
        case LAYER_TYPE_COUNT:
            return false;
        }
    return false;
}

static uint32_t outputs_needed(const struct model_spec *spec)
{
    switch (spec->loss) {
    case LOSS_MSE:
        return (uint32_t)spec->values;
    case LOSS_LOGISTIC:
        return 1;
    case LOSS_CROSS_ENTROPY:
    case LOSS_HINGE:
    case LOSS_KIND_COUNT:
        break;
    }
    return (uint32_t)spec->classes;
}

/* Names are numbered within their kind, in order. */
static void plan_name(struct layer_plan *plans, uint32_t index)
{
    const char *prefix = plans[index].kind->prefix;
    if (plans[index].kind == &layer_recurrent)
        prefix = plans[index].spec.type == LAYER_LSTM ? "lstm" : "gru";
    uint32_t number = 1;
    for (uint32_t i = 0; i < index; i++)
        number += plans[i].kind->prefix == plans[index].kind->prefix ||
                  (plans[i].spec.type == LAYER_CONV && plans[index].spec.type == LAYER_CONV);
    snprintf(plans[index].name, sizeof(plans[index].name), "%s%u", prefix, number);
}

static int plan_one(const struct model_spec *spec, struct layer_plan *plans, uint32_t index,
                    struct layer_shape input, struct error *error)
{
    struct layer_plan *plan = &plans[index];
    *plan = (struct layer_plan){.spec = spec->layers[index], .input = input};
    if (layer_spec_complete(&plan->spec, error) < 0)
        return -1;
    plan->kind = kind_of(&plan->spec, input);
    plan->is_before_relu = is_before_relu(spec, index);
    plan_name(plans, index);
    if (index + 1 == spec->layer_count && plan->spec.type == LAYER_DENSE && plan->spec.outputs == 0)
        plan->spec.outputs = outputs_needed(spec);
    if (plan->kind == &layer_residual) {
        if (plan->spec.back > index)
            return error_set(error, ERROR_INVALID, "back %" PRIu64 " is before the first layer",
                             plan->spec.back);
        plan->from = index - (uint32_t)plan->spec.back;
        plan->skip = plans[plan->from].input;
    }
    if (input.vocabulary && plan->kind != &layer_embedding && plan->kind != &layer_sparse)
        return error_set(error, ERROR_INVALID, "takes numbers; %s first",
                         layer_shape_is_sparse(input) ? "sparse rows need a dense layer"
                                                      : "tokens need an embedding");
    if (plan->kind->infer(plan, input, &plan->output, error) < 0)
        return -1;
    const struct layer_shape s = plan->output;
    if ((uint64_t)s.channels * s.height > TENSOR_ELEMENTS_MAX ||
        (uint64_t)s.channels * s.height * s.width > TENSOR_ELEMENTS_MAX)
        return error_set(error, ERROR_INVALID, "gives more than %d numbers", TENSOR_ELEMENTS_MAX);
    return 0;
}

/* The last layer's output against what the loss reads. */
static int check_output(const struct model_spec *spec, struct layer_shape output,
                        struct error *error)
{
    const uint32_t needed = outputs_needed(spec);
    if (output.is_sequence && spec->loss != LOSS_CROSS_ENTROPY)
        return error_set(error, ERROR_INVALID, "loss %s is not told for every step",
                         loss_kind_name(spec->loss));
    const uint32_t given = output.is_sequence ? output.width : layer_shape_size(output);
    if (given != needed)
        return error_set(error, ERROR_INVALID, "gives %u outputs, but the loss %s needs %u", given,
                         loss_kind_name(spec->loss), needed);
    return 0;
}

int layer_plan_all(const struct model_spec *spec, struct layer_plan plans[LAYERS_MAX],
                   uint32_t *out_count, int *out_layer, struct error *error)
{
    struct layer_shape shape = {(uint32_t)spec->channels, (uint32_t)spec->height,
                                (uint32_t)spec->width, false, (uint32_t)spec->vocabulary};
    *out_layer = -1;
    if (spec->layer_count < 1 || spec->layer_count > MODEL_LAYERS_MAX)
        return error_set(error, ERROR_INVALID, "model: %" PRId64 " layers are not from 1 to %d",
                         spec->layer_count, MODEL_LAYERS_MAX);
    const uint32_t count = (uint32_t)spec->layer_count;
    for (uint32_t i = 0; i < count; i++) {
        if (plan_one(spec, plans, i, shape, error) < 0 ||
            (i + 1 == count && check_output(spec, plans[i].output, error) < 0)) {
            *out_layer = (int)i;
            const int type = spec->layers[i].type;
            return error_wrap(error, "layer %u (%s, of %u x %u x %u)", i + 1,
                              type >= 0 && type < LAYER_TYPE_COUNT ? layer_type_names[type] : "?",
                              shape.channels, shape.height, shape.width);
        }
        shape = plans[i].output;
    }
    *out_count = count;
    return 0;
}
