/*
 * Kernel: the arithmetic of training, prepared once per shape and then run without failing.
 *
 * A kernel set is one way to compute: "plain" (the reference), "onednn" (oneDNN and OpenBLAS,
 * opened at first use) or "simd" (own vector kernels where they beat the libraries). An operation
 * is one layer's arithmetic prepared for one shape. All tensors are float, dense, row-major:
 * images [batch, channel, height, width], dense weights [output, input], convolution weights
 * [channel_out, channel_in, kernel, kernel]. Every set gives the same results up to rounding.
 *
 * Shapes are checked when an operation is opened; running one has no error path. A kernel set and
 * its operations belong to one thread and use that thread only.
 *
 * Sequences are [batch, step, feature]. Where a shape says is_channels_last, images are
 * [batch, height, width, channel] instead; weights keep their order.
 *
 * To add an operation: a shape here, an opener in struct kernel_ops, a kernel_plain_*.c, then the
 * others; kernel_test.c and its neighbours compare every set with plain.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TENSOR_ELEMENTS_MAX = 1 << 28 }; /* of one tensor; guards every size computed from a shape */

struct dense_shape {
    uint32_t batch, inputs, outputs;
};

/* The output is [batch, channels_out, (height + 2 pad - kernel) / stride + 1, ...]. */
struct conv_shape {
    uint32_t batch;
    uint32_t channels_in, height, width;
    uint32_t channels_out, kernel, pad;
    uint32_t stride; /* 0 is 1 */
    bool is_channels_last;
};

enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_KIND_COUNT };

/* Rows and columns that fill no window are left out, or with is_partial have a window of their own
 * that hangs over the edge and counts what it has. */
struct pool_shape {
    enum pool_kind kind;
    uint32_t batch, channels, height, width;
    uint32_t window_height, window_width;
    uint32_t stride_height, stride_width; /* 0: as the window, side by side */
    bool is_partial;
    bool is_channels_last;
};

enum activation_kind {
    ACTIVATION_RELU,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_GELU, /* x Phi(x), exact; not in place */
    ACTIVATION_KIND_COUNT,
};

struct activation_shape {
    enum activation_kind kind;
    size_t count; /* of elements, batch included */
};

enum norm_kind {
    NORM_BATCH, /* each feature over outer and inner: mean 0, variance 1, then weights and bias */
    NORM_LAYER, /* the features of each outer; inner is 1 */
    NORM_LOCAL, /* x / (1 + alpha / window * sum of squares of `window` features around)^beta */
    NORM_KIND_COUNT,
};

/* The tensor is [outer, features, inner]. */
struct norm_shape {
    enum norm_kind kind;
    uint32_t outer, features, inner;
    uint32_t window;   /* of local, odd */
    float alpha, beta; /* of local */
};

/* Running statistics keep this share of the new batch's. The variance is guarded by epsilon. */
#define NORM_MOMENTUM 0.1F
#define NORM_EPSILON  1e-5F

struct dropout_shape {
    size_t count; /* of elements, batch included */
    float rate;   /* the share that is dropped; the rest is scaled up. In [0, 1) */
};

/* input [count] holds whole numbers below `vocabulary`; output [count, width]. */
struct embedding_shape {
    uint32_t count, vocabulary, width;
};

/* Convolution over time: output [batch, steps + 2 pad - kernel + 1, outputs], weights
 * [outputs, kernel, features]. */
struct sequence_conv_shape {
    uint32_t batch, steps, features;
    uint32_t outputs, kernel, pad;
};

enum recurrent_kind { RECURRENT_LSTM, RECURRENT_GRU, RECURRENT_KIND_COUNT };

/*
 * input [batch, steps, inputs]; output [batch, steps, units] of every step, or [batch, units] of
 * the last. Gates lie one after the other as in torch: i f g o of an LSTM, r z n of a GRU; weights
 * [gates units, inputs], recurrent_weights [gates units, units], each with a bias of its own.
 */
struct recurrent_shape {
    enum recurrent_kind kind;
    uint32_t batch, steps, inputs, units;
    bool gives_every_step;
};

/* Convolution, then max pooling of 2 x 2, then ReLU, in one pass; a set may offer it. */
struct conv_block_shape {
    struct conv_shape conv;
};

/* What a layer needs beyond its shape. */
struct operation_options {
    bool is_training;          /* backward will be called */
    bool needs_input_gradient; /* false for the first layer: nothing lies before it */
};

/*
 * The tensors of one run. Forward reads input, weights and bias and writes output. Backward reads
 * those, output and output_gradient and overwrites (not adds to) the gradients; input_gradient is
 * ignored unless the operation was opened with needs_input_gradient. No two may overlap, except
 * that an activation may work in place: output == input, input_gradient == output_gradient.
 */
struct operation_tensors {
    const float *input;
    const float *weights;
    const float *bias;
    float *output;
    const float *output_gradient;
    float *input_gradient;
    float *weights_gradient;
    float *bias_gradient;
    const float *recurrent_weights; /* of a recurrent operation */
    const float *recurrent_bias;
    float *recurrent_weights_gradient;
    float *recurrent_bias_gradient;
    float *running_mean; /* of a batch norm; forward updates both unless is_inference */
    float *running_variance;
    uint64_t seed;     /* of a dropout: which elements go */
    bool is_inference; /* forward as in use, not in training: norms by running statistics, nothing
                          dropped; no backward after it */
};

struct operation;

/* Forward before backward, with the same tensors: backward may use what forward kept. */
void operation_forward(struct operation *operation, const struct operation_tensors *tensors);
void operation_backward(struct operation *operation, const struct operation_tensors *tensors);
/* How it is computed, e.g. "brgconv:avx512_core"; for benchmarks and logs. */
const char *operation_describe(const struct operation *operation);
void operation_free(struct operation *operation); /* NULL is fine */
DEFINE_AUTO(operation);

/* Plain data of one update: v = momentum v + (g + weight_decay w); w -= lr (v or, with Nesterov,
 * g + weight_decay w + momentum v). */
struct sgd_rule {
    float lr, momentum, weight_decay;
    bool is_nesterov;
};
/* Without momentum and as far in the end: at lr / (1 - momentum). */
struct sgd_rule sgd_rule_plain(const struct sgd_rule *rule);

/* g += weight_decay w; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g g;
 * w = shrink w - lr m / (second_scale sqrt(v) + epsilon). */
struct adam_rule {
    float lr, beta1, beta2, epsilon;
    float second_scale; /* makes up for v's start at 0 */
    float weight_decay, shrink;
};

struct kernel_set;

/*
 * Opens a set by name; NULL or "auto" takes the fastest that works here. UNAVAILABLE when its
 * libraries cannot be opened (never with "auto", which ends at "plain").
 */
MUST_CHECK int kernel_set_open(const char *name, struct kernel_set **out_set, struct error *error);
void kernel_set_free(struct kernel_set *set); /* NULL is fine; after its operations */
DEFINE_AUTO(kernel_set);

const char *kernel_set_name(const struct kernel_set *set);
/* One sentence for the log when "auto" had to pass over a faster set; "" otherwise. */
const char *kernel_set_note(const struct kernel_set *set);
/* The names a set can be opened by, fastest first; NULL ends them. */
extern const char *const kernel_set_names[];

/* INVALID when a size is 0 or a tensor would pass TENSOR_ELEMENTS_MAX. */
MUST_CHECK int operation_open_dense(struct kernel_set *set, const struct dense_shape *shape,
                                    const struct operation_options *options,
                                    struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_conv(struct kernel_set *set, const struct conv_shape *shape,
                                   const struct operation_options *options,
                                   struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_pool(struct kernel_set *set, const struct pool_shape *shape,
                                   const struct operation_options *options,
                                   struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_activation(struct kernel_set *set,
                                         const struct activation_shape *shape,
                                         const struct operation_options *options,
                                         struct operation **out_operation, struct error *error);

MUST_CHECK int operation_open_norm(struct kernel_set *set, const struct norm_shape *shape,
                                   const struct operation_options *options,
                                   struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_dropout(struct kernel_set *set, const struct dropout_shape *shape,
                                      const struct operation_options *options,
                                      struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_embedding(struct kernel_set *set, const struct embedding_shape *shape,
                                        const struct operation_options *options,
                                        struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_sequence_conv(struct kernel_set *set,
                                            const struct sequence_conv_shape *shape,
                                            const struct operation_options *options,
                                            struct operation **out_operation, struct error *error);
MUST_CHECK int operation_open_recurrent(struct kernel_set *set, const struct recurrent_shape *shape,
                                        const struct operation_options *options,
                                        struct operation **out_operation, struct error *error);

/* Whether the set computes images faster with channels last; then its convolutions, pools, norms
 * and activations take them so. */
bool kernel_set_prefers_channels_last(struct kernel_set *set);
/* out [batch, plane, channels] from in [batch, channels, plane], or back with the sizes swapped. */
void kernel_transpose(const float *in, float *out, uint32_t batch, uint32_t rows, uint32_t columns);

/* Whether the set computes convolution, pooling and ReLU faster as one operation. */
bool kernel_set_has_conv_block(const struct kernel_set *set);
/* Asserts that it does. Weights and bias are the convolution's, the output is the pooled one.
 * INVALID also when the kernel is even or the convolution's output has an odd side. */
MUST_CHECK int operation_open_conv_block(struct kernel_set *set,
                                         const struct conv_block_shape *shape,
                                         const struct operation_options *options,
                                         struct operation **out_operation, struct error *error);

/* The side of a convolution's square-kernel output, from height or width. */
uint32_t conv_output_size(const struct conv_shape *shape, uint32_t input_size);
uint32_t pool_output_height(const struct pool_shape *shape);
uint32_t pool_output_width(const struct pool_shape *shape);

/*
 * logits [batch, classes], labels [batch] each < classes. Returns the mean loss. Unless it is
 * NULL, logits_gradient gets the gradient of that mean; out_correct, unless NULL, the rows whose
 * largest logit is their label.
 */
struct cross_entropy {
    uint32_t batch, classes;
    const float *logits;
    const int32_t *labels;
    float *logits_gradient;
    uint32_t *out_correct;
};
double kernel_cross_entropy(struct kernel_set *set, const struct cross_entropy *arguments);

/* Vectors. None overlap. */
void kernel_sgd(struct kernel_set *set, const struct sgd_rule *rule, float *weights,
                float *velocity, const float *gradient, size_t count);
void kernel_adam(struct kernel_set *set, const struct adam_rule *rule, float *weights, float *first,
                 float *second, const float *gradient, size_t count);
/* y += a x */
void kernel_axpy(struct kernel_set *set, float a, const float *x, float *y, size_t count);
/* x *= a */
void kernel_scale(struct kernel_set *set, float a, float *x, size_t count);
