#include "train/layer_spec.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stddef.h>

const char *const layer_type_names[] = {
    "dense",      "conv",    "max_pool",  "average_pool", "batch_norm", "layer_norm",
    "local_norm", "dropout", "embedding", "lstm",         "gru",        "residual",
    "relu",       "tanh",    "sigmoid",   "gelu",         "flatten",    NULL};
_Static_assert(sizeof(layer_type_names) / sizeof(*layer_type_names) == LAYER_TYPE_COUNT + 1,
               "a name for each type");

const char *layer_type_name(enum layer_type type)
{
    ASSERT(type < LAYER_TYPE_COUNT);
    return layer_type_names[type];
}

#define AT(member) offsetof(struct layer_spec, member)
static const struct json_field layer_fields[] = {
    {"type", JSON_CHOICE, AT(type), .is_required = true, .choices = layer_type_names},
    {"outputs", JSON_U64, AT(outputs), .is_zero_omitted = true},
    {"kernel", JSON_U64, AT(kernel), .is_zero_omitted = true},
    {"stride", JSON_U64, AT(stride), .is_zero_omitted = true},
    {"pad", JSON_U64, AT(pad), .is_zero_omitted = true},
    {"back", JSON_U64, AT(back), .is_zero_omitted = true},
    {"partial", JSON_BOOL, AT(partial), .is_zero_omitted = true},
    {"steps", JSON_BOOL, AT(steps), .is_zero_omitted = true},
    {"rate", JSON_DOUBLE, AT(rate), .is_zero_omitted = true},
    {"alpha", JSON_DOUBLE, AT(alpha), .is_zero_omitted = true},
    {"beta", JSON_DOUBLE, AT(beta), .is_zero_omitted = true},
};
const struct json_schema layer_spec_schema = JSON_SCHEMA("layer", layer_fields, struct layer_spec);

/* Which fields a type has, a bit each. */
enum {
    HAS_OUTPUTS = 1,
    HAS_KERNEL = 2,
    HAS_STRIDE = 4,
    HAS_PAD = 8,
    HAS_BACK = 16,
    HAS_PARTIAL = 32,
    HAS_STEPS = 64,
    HAS_RATE = 128,
    HAS_ALPHA = 256,
};

static const int fields_of[LAYER_TYPE_COUNT] = {
    [LAYER_DENSE] = HAS_OUTPUTS,
    [LAYER_CONV] = HAS_OUTPUTS | HAS_KERNEL | HAS_STRIDE | HAS_PAD,
    [LAYER_MAX_POOL] = HAS_KERNEL | HAS_STRIDE | HAS_PARTIAL,
    [LAYER_AVERAGE_POOL] = HAS_KERNEL | HAS_STRIDE | HAS_PARTIAL,
    [LAYER_LOCAL_NORM] = HAS_KERNEL | HAS_ALPHA,
    [LAYER_DROPOUT] = HAS_RATE,
    [LAYER_EMBEDDING] = HAS_OUTPUTS,
    [LAYER_LSTM] = HAS_OUTPUTS | HAS_STEPS,
    [LAYER_GRU] = HAS_OUTPUTS | HAS_STEPS,
    [LAYER_RESIDUAL] = HAS_BACK,
};

static int refuse_foreign(const struct layer_spec *layer, struct error *error)
{
    const int has = fields_of[layer->type];
    const struct {
        const char *name;
        bool is_given, is_of_type;
    } fields[] = {
        {"outputs", layer->outputs, has & HAS_OUTPUTS},
        {"kernel", layer->kernel, has & HAS_KERNEL},
        {"stride", layer->stride, has & HAS_STRIDE},
        {"pad", layer->pad, has & HAS_PAD},
        {"back", layer->back, has & HAS_BACK},
        {"partial", layer->partial, has & HAS_PARTIAL},
        {"steps", layer->steps, has & HAS_STEPS},
        {"rate", layer->rate != 0, has & HAS_RATE},
        {"alpha", layer->alpha != 0, has & HAS_ALPHA},
        {"beta", layer->beta != 0, has & HAS_ALPHA},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (fields[i].is_given && !fields[i].is_of_type)
            return error_set(error, ERROR_INVALID, "has no field %s", fields[i].name);
    return 0;
}

static int check_size(const char *name, uint64_t size, uint64_t least, uint64_t most,
                      struct error *error)
{
    if (size >= least && size <= most)
        return 0;
    if (size == 0)
        return error_set(error, ERROR_INVALID, "%s is missing", name);
    return error_set(error, ERROR_INVALID, "%s %" PRIu64 " is not from %" PRIu64 " to %" PRIu64,
                     name, size, least, most);
}

static int complete_conv(struct layer_spec *layer, struct error *error)
{
    enum { CHANNELS_MAX = 4096, KERNEL_MAX = 64 };
    if (layer->stride == 0)
        layer->stride = 1;
    if (check_size("outputs", layer->outputs, 1, CHANNELS_MAX, error) < 0 ||
        check_size("kernel", layer->kernel, 1, KERNEL_MAX, error) < 0 ||
        check_size("stride", layer->stride, 1, KERNEL_MAX, error) < 0)
        return -1;
    if (layer->pad >= layer->kernel)
        return error_set(error, ERROR_INVALID, "pad %" PRIu64 " is not below the kernel %" PRIu64,
                         layer->pad, layer->kernel);
    return 0;
}

static int complete_pool(struct layer_spec *layer, struct error *error)
{
    enum { WINDOW_MAX = 1 << 16 };
    if (layer->kernel == 0) {
        if (layer->stride || layer->partial)
            return error_set(error, ERROR_INVALID, "without kernel it takes all there is: no %s",
                             layer->stride ? "stride" : "partial");
        return 0;
    }
    if (layer->stride == 0)
        layer->stride = layer->kernel;
    if (check_size("kernel", layer->kernel, 1, WINDOW_MAX, error) < 0)
        return -1;
    if (layer->stride > layer->kernel)
        return error_set(error, ERROR_INVALID, "stride %" PRIu64 " is above the kernel %" PRIu64,
                         layer->stride, layer->kernel);
    return 0;
}

static int complete_local_norm(struct layer_spec *layer, struct error *error)
{
    enum { WINDOW_MAX = 255 };
    if (layer->kernel == 0)
        layer->kernel = 9;
    if (layer->alpha == 0) /* as Krizhevsky's, and the paper's CNN for CIFAR-10 */
        layer->alpha = 0.001;
    if (layer->beta == 0)
        layer->beta = 0.75;
    if (check_size("kernel", layer->kernel, 1, WINDOW_MAX, error) < 0)
        return -1;
    if (layer->kernel % 2 == 0)
        return error_set(error, ERROR_INVALID, "kernel %" PRIu64 " is not odd", layer->kernel);
    if (!(layer->alpha > 0 && layer->alpha <= 100) || !(layer->beta > 0 && layer->beta <= 10))
        return error_set(error, ERROR_INVALID, "alpha %g or beta %g is out of range", layer->alpha,
                         layer->beta);
    return 0;
}

int layer_spec_complete(struct layer_spec *layer, struct error *error)
{
    enum { WIDTH_MAX = 1 << 16, BACK_MAX = 128 };
    if (layer->type < 0 || layer->type >= LAYER_TYPE_COUNT)
        return error_set(error, ERROR_INVALID, "type %d does not exist", layer->type);
    if (refuse_foreign(layer, error) < 0)
        return -1;
    switch ((enum layer_type)layer->type) {
    case LAYER_DENSE:
        return check_size("outputs", layer->outputs, 0, WIDTH_MAX, error);
    case LAYER_EMBEDDING:
    case LAYER_LSTM:
    case LAYER_GRU:
        return check_size("outputs", layer->outputs, 1, WIDTH_MAX, error);
    case LAYER_CONV:
        return complete_conv(layer, error);
    case LAYER_MAX_POOL:
    case LAYER_AVERAGE_POOL:
        return complete_pool(layer, error);
    case LAYER_LOCAL_NORM:
        return complete_local_norm(layer, error);
    case LAYER_DROPOUT:
        if (layer->rate == 0)
            layer->rate = 0.5;
        if (!(layer->rate > 0 && layer->rate < 1))
            return error_set(error, ERROR_INVALID, "rate %g is not between 0 and 1", layer->rate);
        return 0;
    case LAYER_RESIDUAL:
        return check_size("back", layer->back, 1, BACK_MAX, error);
    case LAYER_BATCH_NORM:
    case LAYER_LAYER_NORM:
    case LAYER_RELU:
    case LAYER_TANH:
    case LAYER_SIGMOID:
    case LAYER_GELU:
    case LAYER_FLATTEN:
    case LAYER_TYPE_COUNT:
        break;
    }
    return 0;
}

bool layer_spec_equal(const struct layer_spec *left, const struct layer_spec *right)
{
    return left->type == right->type && left->outputs == right->outputs &&
           left->kernel == right->kernel && left->stride == right->stride &&
           left->pad == right->pad && left->back == right->back &&
           left->partial == right->partial && left->steps == right->steps &&
           left->rate == right->rate && left->alpha == right->alpha && left->beta == right->beta;
}
