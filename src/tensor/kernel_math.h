/*
 * Kernel math: the few inner loops that sequence operations (kernel_sequence.c,
 * kernel_recurrent.c) are made of, so that each set brings its own.
 */
#pragma once

#include "tensor/kernel_internal.h"

/* C [m, n] = A B + beta C, row-major; a "transposed" operand is stored the other way round. */
struct gemm {
    uint32_t m, n, k;
    bool is_a_transposed, is_b_transposed;
    const float *a, *b;
    float *c;
    float beta;             /* 0 or 1 */
    uint32_t lda, ldb, ldc; /* floats from row to row as stored; 0: the rows lie side by side */
};

static inline uint32_t gemm_lda(const struct gemm *g)
{
    return g->lda ? g->lda : g->is_a_transposed ? g->m : g->k;
}

static inline uint32_t gemm_ldb(const struct gemm *g)
{
    return g->ldb ? g->ldb : g->is_b_transposed ? g->k : g->n;
}

static inline uint32_t gemm_ldc(const struct gemm *g)
{
    return g->ldc ? g->ldc : g->n;
}

/* One step of a recurrent layer, all of a batch. Forward: `gates` holds the products of input (and,
 * of an LSTM, of state) and is left with the gates themselves. Backward: it is left with the
 * gradient before each gate. */
struct gate_step {
    uint32_t batch, units;
    float *gates;                       /* [batch, gates, units] */
    float *side;                        /* of a GRU: products of the state, the same shape; backward
                                           leaves the gradient before them */
    const float *bias, *recurrent_bias; /* [gates, units] */
    size_t state_stride;                /* of the next two, floats from row to row */
    const float *state_before;          /* [batch, units] */
    float *state;                       /* written by forward */
    const float *cell_before;           /* of an LSTM, [batch, units] */
    float *cell;                        /* written by forward */
    float *state_gradient; /* of this step; of a GRU left with the part that passes it by, of an
                              LSTM with zeros */
    float *cell_gradient;  /* of this step's cell; left with that of the cell before */
};

struct kernel_math {
    const char *name;
    void (*gemm)(void *state, const struct gemm *gemm);
    void *gemm_state;
    void (*lstm_forward)(const struct gate_step *step);
    void (*lstm_backward)(const struct gate_step *step);
    void (*gru_forward)(const struct gate_step *step);
    void (*gru_backward)(const struct gate_step *step);
};

/* kernel_plain_sequence.c: every loop as it is written in a book. */
extern const struct kernel_math kernel_math_plain;

/* kernel_onednn.c: products by the libraries, the rest plain. `state` is that of an open set. */
struct kernel_math onednn_math(void *state);

int sequence_conv_open(const struct kernel_math *math, const struct sequence_conv_shape *shape,
                       const struct operation_options *options, struct operation **out_operation,
                       struct error *error);
int recurrent_open(const struct kernel_math *math, const struct recurrent_shape *shape,
                   const struct operation_options *options, struct operation **out_operation,
                   struct error *error);
