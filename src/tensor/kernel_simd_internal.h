/*
 * Kernel simd internals: what kernel_simd.c prepares and each instruction set computes.
 *
 * The same code (kernel_simd_isa.h and what it includes) is compiled once per instruction set with
 * vectors of its width; kernel_simd.c picks one at run time.
 */
#pragma once

#include "tensor/kernel_math.h"

struct simd_isa;

/* An open set. */
struct simd_state {
    const struct simd_isa *isa;
    void *onednn; /* opened when first needed */
    bool has_tried_onednn;
};

enum { SPARSE_ROWS = 256, SPARSE_DEPTH = 64, SPARSE_VECTORS = 8 };

/* Room to multiply two matrices of which the left is mostly zeros, SPARSE_ROWS rows and
 * SPARSE_DEPTH columns of it at a time. */
struct simd_sparse {
    float *value;     /* [SPARSE_ROWS, SPARSE_DEPTH]: of each row what is not zero; NULL: no room */
    uint32_t *at;     /* the same: where in the panel the row lies that it is multiplied with */
    uint32_t *counts; /* [SPARSE_ROWS] */
    float *panel;     /* [SPARSE_DEPTH, SPARSE_VECTORS, lane] of the right matrix */
};

struct simd_dense {
    struct operation operation;
    const struct simd_isa *isa;
    struct dense_shape shape;
    bool needs_input_gradient;
    struct operation *library; /* of a large one, for what has few zeros; else NULL */
    struct simd_sparse sparse;
};

/*
 * Convolution, pooling and ReLU with the batch innermost: samples are taken `width` at a time, one
 * per vector lane, so that every product is one weight times one vector, whatever the number of
 * channels. C channels in, K out, H x W the input, P x Q the convolution's output, R the kernel.
 */
struct simd_block {
    struct operation operation;
    const struct simd_isa *isa;
    struct conv_shape shape;
    bool is_training, needs_input_gradient;
    uint32_t P, Q;
    uint32_t group_count;  /* of `width` samples; the last may be part empty */
    uint32_t border;       /* zeros around `gradient`: R - 1, or 0 without input gradient */
    float *input;          /* [group, C, H + 2 pad, W + 2 pad, lane]; the padding stays 0 */
    float *pooled;         /* [K, P/2, Q/2, lane] of one group: output, then its gradient */
    int32_t *winner;       /* [group, K, P/2, Q/2, lane]: which of the four, -1: cut by ReLU */
    float *gradient;       /* [K, P + 2 border, Q + 2 border, lane] of one group */
    float *input_gradient; /* [C, H, W, lane] of one group */
    float *packed;         /* weights in the order they are read */
    float *weights_sums;   /* [K, C, R, R, lane], lanes not yet added up */
};

/* The tensor is rows of features; what a kind does not need is NULL. */
struct simd_norm {
    struct operation operation;
    const struct simd_isa *isa;
    struct norm_shape shape;
    bool needs_input_gradient;
    float *mean, *scale;          /* of batch, [features]; scale is 1 / deviation */
    double *first, *second;       /* of batch, [features]: sums over rows */
    float *part;                  /* of batch, [2, features]: sums of a few rows; else zeros */
    float *padded, *base, *power; /* of local: one row; padded by half a window of zeros */
};

struct simd_relu {
    struct operation operation;
    const struct simd_isa *isa;
    size_t count;
};

struct simd_isa {
    const char *name;
    uint32_t width; /* floats in a vector */
    void (*dense_forward)(const struct simd_dense *dense, const struct operation_tensors *tensors);
    void (*dense_backward)(const struct simd_dense *dense, const struct operation_tensors *tensors);
    size_t (*count_zeros)(const float *x, size_t count);
    void (*sparse_forward)(const struct simd_dense *dense, const struct operation_tensors *tensors);
    void (*sparse_backward)(const struct simd_dense *dense,
                            const struct operation_tensors *tensors);
    void (*block_forward)(const struct simd_block *block, const struct operation_tensors *tensors);
    void (*block_backward)(const struct simd_block *block, const struct operation_tensors *tensors);
    void (*lstm_forward)(const struct gate_step *step);
    void (*lstm_backward)(const struct gate_step *step);
    void (*gru_forward)(const struct gate_step *step);
    void (*gru_backward)(const struct gate_step *step);
    void (*relu_forward)(const float *input, float *output, size_t count);
    void (*relu_backward)(const float *output, const float *output_gradient, float *input_gradient,
                          size_t count);
    void (*batch_first)(const struct simd_norm *norm, const float *input);
    void (*batch_second)(const struct simd_norm *norm, const float *input);
    void (*batch_apply)(const struct simd_norm *norm, const struct operation_tensors *tensors);
    void (*batch_sums)(const struct simd_norm *norm, const struct operation_tensors *tensors);
    void (*batch_spread)(const struct simd_norm *norm, const struct operation_tensors *tensors);
    void (*local_forward)(const struct simd_norm *norm, const struct operation_tensors *tensors);
    void (*local_backward)(const struct simd_norm *norm, const struct operation_tensors *tensors);
    void (*sgd)(const struct sgd_rule *rule, float *weights, float *velocity, const float *gradient,
                size_t count);
    void (*adam)(const struct adam_rule *rule, float *weights, float *first, float *second,
                 const float *gradient, size_t count);
    void (*axpy)(float a, const float *x, float *y, size_t count);
    void (*scale)(float a, float *x, size_t count);
    void (*exp)(float *x, size_t count);
};

/* kernel_simd.c: the set for what has no kernel here, and the state to call it with. */
const struct kernel_ops *simd_fallback(struct simd_state *state, void **out_state);

/* kernel_simd_dense.c */
int simd_open_dense(void *state, const struct dense_shape *shape,
                    const struct operation_options *options, struct operation **out_operation,
                    struct error *error);

/* kernel_simd_norm.c */
int simd_open_norm(void *state, const struct norm_shape *shape,
                   const struct operation_options *options, struct operation **out_operation,
                   struct error *error);
int simd_open_activation(void *state, const struct activation_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error);

/* Those compiled for this architecture, best first; whether the processor has them is another
 * question. */
extern const struct simd_isa simd_isa_avx512;
extern const struct simd_isa simd_isa_avx2;
extern const struct simd_isa simd_isa_base;
