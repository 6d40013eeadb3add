/*
 * Layer: one stage of a model: its shape, its parameters, and forward beside backward.
 *
 * A model is a list of plans (what to compute, from the spec alone) which become layers (prepared
 * for a batch, with memory). Images are row-major, so a dense layer takes an image as one flat row
 * and no layer is needed to flatten it.
 *
 * To add a kind: a file layer_KIND.c with a struct layer_kind, and an extern below.
 */
#pragma once

#include "base/error.h"
#include "tensor/kernel.h"
#include "train/model_spec.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAYERS_MAX = 2 * MODEL_HIDDEN_MAX + 16 };

/* Of one sample. */
struct layer_shape {
    uint32_t channels, height, width;
};

static inline uint32_t layer_shape_size(struct layer_shape shape)
{
    return shape.channels * shape.height * shape.width;
}

/* How a layer's weights start. */
enum layer_init {
    LAYER_INIT_HE,     /* before a ReLU */
    LAYER_INIT_GLOROT, /* before the loss */
};

struct layer_kind;

struct layer_plan {
    const struct layer_kind *kind;
    char name[16];    /* "conv1"; its parameters are conv1.weight and conv1.bias */
    uint32_t outputs; /* channels of a convolution, width of a dense layer */
    uint32_t kernel, pad;
    uint32_t pool_size;
    enum pool_kind pool;
    enum activation_kind activation;
    enum layer_init init;
};

struct layer {
    struct layer_plan plan;
    struct layer_shape input_shape, output_shape;
    struct operation *operation;
    bool needs_input_gradient;

    float *input, *input_gradient;   /* the layer's before, or the model's */
    float *output, *output_gradient; /* own memory, unless it works in place */
    bool is_in_place;                /* output is input, output_gradient is input_gradient */
    const float *weights, *bias;     /* into the model's parameters; NULL without any */
    float *weights_gradient, *bias_gradient;
};

struct layer_kind {
    const char *name;
    bool is_in_place;
    /* The output's shape, or INVALID when the input does not suit. */
    int (*infer)(const struct layer_plan *plan, struct layer_shape input,
                 struct layer_shape *out_output, struct error *error);
    /* The shape of the weights, rank 0 without any. The bias has one value per output. */
    void (*describe_weights)(const struct layer_plan *plan, struct layer_shape input,
                             struct parameter *out_weights);
    int (*open)(struct layer *layer, struct kernel_set *kernels, uint32_t batch,
                const struct operation_options *options, struct error *error);
    void (*forward)(struct layer *layer);
    void (*backward)(struct layer *layer);
};

extern const struct layer_kind layer_conv;
extern const struct layer_kind layer_conv_block; /* convolution, pooling, ReLU in one */
extern const struct layer_kind layer_pool;
extern const struct layer_kind layer_activation;
extern const struct layer_kind layer_dense;

/* The layers of a checked spec, before any are joined into blocks. Returns their number. */
uint32_t layer_plans_of(const struct model_spec *spec, struct layer_plan plans[LAYERS_MAX]);
