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
 * To add an operation: a shape here, an opener in struct kernel_ops, kernel_plain.c, then the
 * others; kernel_test.c compares every set with plain.
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

/* Stride 1; the output is [batch, channels_out, height + 2 pad - kernel + 1, ...]. */
struct conv_shape {
    uint32_t batch;
    uint32_t channels_in, height, width;
    uint32_t channels_out, kernel, pad;
};

enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_KIND_COUNT };

/* Windows of size x size, side by side; rows and columns that fill no window are left out. */
struct pool_shape {
    enum pool_kind kind;
    uint32_t batch, channels, height, width;
    uint32_t size;
};

enum activation_kind {
    ACTIVATION_RELU,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_KIND_COUNT,
};

struct activation_shape {
    enum activation_kind kind;
    size_t count; /* of elements, batch included */
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
/* y += a x */
void kernel_axpy(struct kernel_set *set, float a, const float *x, float *y, size_t count);
/* x *= a */
void kernel_scale(struct kernel_set *set, float a, float *x, size_t count);
