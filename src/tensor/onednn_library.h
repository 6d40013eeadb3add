/*
 * oneDNN library: oneDNN and OpenBLAS, opened when first asked for and never linked, because an
 * idle lender must stay small. Both are held to one thread: beside a busy neighbour GNU OpenMP's
 * spinning costs a small model more than a second core gives it.
 *
 * One library belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "tensor/kernel_math.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>

/* The functions used; each becomes a member of struct onednn_library of the same name. */
#define ONEDNN_FUNCTIONS(X)                                                                        \
    X(dnnl_engine_create)                                                                          \
    X(dnnl_engine_destroy)                                                                         \
    X(dnnl_stream_create)                                                                          \
    X(dnnl_stream_destroy)                                                                         \
    X(dnnl_stream_wait)                                                                            \
    X(dnnl_memory_desc_init_by_tag)                                                                \
    X(dnnl_memory_desc_get_size)                                                                   \
    X(dnnl_memory_desc_equal)                                                                      \
    X(dnnl_memory_create)                                                                          \
    X(dnnl_memory_destroy)                                                                         \
    X(dnnl_memory_set_data_handle)                                                                 \
    X(dnnl_convolution_forward_desc_init)                                                          \
    X(dnnl_convolution_backward_data_desc_init)                                                    \
    X(dnnl_convolution_backward_weights_desc_init)                                                 \
    X(dnnl_pooling_forward_desc_init)                                                              \
    X(dnnl_pooling_backward_desc_init)                                                             \
    X(dnnl_reorder_primitive_desc_create)                                                          \
    X(dnnl_primitive_desc_create)                                                                  \
    X(dnnl_primitive_desc_destroy)                                                                 \
    X(dnnl_primitive_desc_query)                                                                   \
    X(dnnl_primitive_desc_query_md)                                                                \
    X(dnnl_primitive_create)                                                                       \
    X(dnnl_primitive_destroy)                                                                      \
    X(dnnl_primitive_execute)                                                                      \
    X(dnnl_sgemm)

struct onednn_library {
#define X(name) __typeof__(&(name)) name; /* NOLINT(bugprone-macro-parentheses) */
    ONEDNN_FUNCTIONS(X)
#undef X
    void *onednn, *openmp, *blas; /* from dlopen; blas may be NULL */
    void (*blas_sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                       float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                       float *c, int ldc);
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

/* UNAVAILABLE, naming the package, when oneDNN cannot be opened. */
MUST_CHECK int onednn_library_open(struct onednn_library **out_library, struct error *error);
void onednn_library_free(struct onednn_library *library); /* NULL is fine */
DEFINE_AUTO(onednn_library);

/* OpenBLAS where its path for small matrices wins and it is installed, oneDNN's gemm elsewhere. */
void onednn_library_gemm(const struct onednn_library *library, const struct gemm *gemm);
