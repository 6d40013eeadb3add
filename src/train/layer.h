/*
 * Layer: one stage of a model: its shape, its parameters, and forward beside backward.
 *
 * A model is a list of plans (what to compute, from the spec alone) which become layers (prepared
 * for a batch, with memory). Images are row-major, so a dense layer takes an image as one flat row
 * and no layer is needed to flatten it. The arithmetic is an operation of the kernel set; a kind
 * says which, and only where that is not all has it a forward and backward of its own.
 *
 * To add a kind: a file layer_KIND.c with a struct layer_kind, and an extern below.
 */
#pragma once

#include "base/error.h"
#include "tensor/kernel.h"
#include "train/model_spec.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAYERS_MAX = 2 * MODEL_LAYERS_MAX, LAYER_PARAMETERS_MAX = 4 };

/* Of one sample. A sequence has one channel: height steps of width features. */
struct layer_shape {
    uint32_t channels, height, width;
    bool is_sequence;
    uint32_t vocabulary; /* of tokens that no layer has looked up yet, and the places of sparse
                            rows; else 0 */
};

/* [2, entries]: places, then the number at each. */
static inline bool layer_shape_is_sparse(struct layer_shape shape)
{
    return shape.vocabulary > 0 && shape.height == 2;
}

static inline uint32_t layer_shape_size(struct layer_shape shape)
{
    return shape.channels * shape.height * shape.width;
}

struct layer_kind;

struct layer_plan {
    const struct layer_kind *kind;
    char name[16];          /* "conv1"; its parameters are conv1.weight and conv1.bias */
    struct layer_spec spec; /* complete */
    struct layer_shape input, output;
    struct layer_shape skip; /* of a residual: what it adds */
    uint32_t from;           /* of a residual: the plan whose input that is */
    bool is_before_relu;     /* the next activation is one: how weights start */
    bool is_channels_last;   /* takes and gives images so */
};

struct layer {
    struct layer_plan plan;
    struct operation *operation;
    struct kernel_set *kernels;
    uint32_t batch;
    bool needs_input_gradient;
    bool is_in_place; /* output is input, output_gradient is input_gradient */

    float *input, *input_gradient;    /* the layer's before, or the model's */
    float *output, *output_gradient;  /* own memory, unless it works in place */
    const float *skip;                /* of a residual */
    float *skip_gradient;             /* of a residual: own memory, or its output_gradient */
    struct operation_tensors tensors; /* all of the above and the parameters */
};

struct layer_kind {
    const char *name;
    const char *prefix; /* of the names of its layers: "fc" */
    bool is_in_place;
    /* The output's shape, or INVALID when the input does not suit. */
    int (*infer)(const struct layer_plan *plan, struct layer_shape input,
                 struct layer_shape *out_output, struct error *error);
    /* Its parameters: shape, role and start; returns how many. NULL: none. */
    uint32_t (*describe)(const struct layer_plan *plan,
                         struct parameter out_parameters[LAYER_PARAMETERS_MAX]);
    /* Opens layer->operation. NULL: it has none. */
    int (*open)(struct layer *layer, const struct operation_options *options, struct error *error);
    /* NULL: the operation's. */
    void (*forward)(struct layer *layer);
    void (*backward)(struct layer *layer);
};

extern const struct layer_kind layer_dense;
extern const struct layer_kind layer_sparse; /* dense, over sparse rows */
extern const struct layer_kind layer_conv;
extern const struct layer_kind layer_conv_block;    /* convolution, pooling, ReLU in one */
extern const struct layer_kind layer_sequence_conv; /* over the steps of a sequence */
extern const struct layer_kind layer_pool;
extern const struct layer_kind layer_batch_norm;
extern const struct layer_kind layer_layer_norm;
extern const struct layer_kind layer_local_norm;
extern const struct layer_kind layer_dropout;
extern const struct layer_kind layer_embedding;
extern const struct layer_kind layer_recurrent;
extern const struct layer_kind layer_residual;
extern const struct layer_kind layer_activation;
extern const struct layer_kind layer_gelu; /* as layer_activation, not in place */
extern const struct layer_kind layer_flatten;
extern const struct layer_kind layer_reorder; /* images to channels last or back; nobody's spec */

/* layer.c */
int layer_infer_same(const struct layer_plan *plan, struct layer_shape input,
                     struct layer_shape *out_output, struct error *error);
/* Weights of `rank` sizes, and a bias with one value per first size. Returns 2. */
uint32_t layer_describe_weights(const struct layer_plan *plan, uint32_t fan_in,
                                const uint32_t *shape, uint32_t rank,
                                struct parameter out_parameters[LAYER_PARAMETERS_MAX]);
void layer_forward(struct layer *layer);
void layer_backward(struct layer *layer);

/* layer_plan.c: the layers of a spec with their shapes, before any are joined. INVALID as
 * model_spec_check; *out_layer is the one it is about, -1: the whole. */
MUST_CHECK int layer_plan_all(const struct model_spec *spec, struct layer_plan plans[LAYERS_MAX],
                              uint32_t *out_count, int *out_layer, struct error *error);

/* layer_arrange.c: the same network as this kernel set computes it fastest: convolution, pooling
 * and ReLU joined, runs of image layers with channels last. Returns the new number. */
uint32_t layer_arrange(struct kernel_set *kernels, bool can_be_channels_last,
                       struct layer_plan plans[LAYERS_MAX], uint32_t count);
