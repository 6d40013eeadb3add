/*
 * Kernel simd, dense layers: own products of small ones, oneDNN's of large ones, and for either own
 * products that pass over zeros, where ReLU or the data leave enough of them.
 */
#include "tensor/kernel_simd_internal.h"

#include <stdlib.h>

/* Whether passing over zeros pays. A few rows tell; whichever way is taken, the result is the same
 * up to rounding. */
static bool has_many_zeros(const struct simd_dense *dense, const float *rows, uint32_t width)
{
    if (!dense->sparse.value)
        return false;
    const size_t count = (size_t)(dense->shape.batch + 7) / 8 * width;
    /* Measured, without the listing: 1.55 x faster than oneDNN at half zeros, 1.3 x at two fifths,
     * 1.07 x at a quarter. */
    return dense->isa->count_zeros(rows, count) * 5 >= count * 2;
}

static void dense_forward(struct operation *operation, const struct operation_tensors *tensors)
{
    const struct simd_dense *dense = AS(simd_dense, operation);
    if (has_many_zeros(dense, tensors->input, dense->shape.inputs))
        dense->isa->sparse_forward(dense, tensors);
    else if (dense->library)
        dense->library->forward(dense->library, tensors);
    else
        dense->isa->dense_forward(dense, tensors);
}

static void dense_backward(struct operation *operation, const struct operation_tensors *tensors)
{
    const struct simd_dense *dense = AS(simd_dense, operation);
    if (has_many_zeros(dense, tensors->output_gradient, dense->shape.outputs))
        dense->isa->sparse_backward(dense, tensors);
    else if (dense->library)
        dense->library->backward(dense->library, tensors);
    else
        dense->isa->dense_backward(dense, tensors);
}

static void dense_free(struct operation *operation)
{
    struct simd_dense *dense = AS(simd_dense, operation);
    operation_free(dense->library);
    free(dense->sparse.value);
    free(dense->sparse.at);
    free(dense->sparse.counts);
    free(dense->sparse.panel);
    free(dense);
}

/* What fills no vector gains nothing. */
static void sparse_alloc(struct simd_dense *dense)
{
    const uint32_t width = dense->isa->width;
    const struct dense_shape *s = &dense->shape;
    if (s->batch < width || s->inputs < width || s->outputs < width)
        return;
    const size_t listed = (size_t)SPARSE_ROWS * SPARSE_DEPTH;
    dense->sparse = (struct simd_sparse){
        .value = kernel_alloc(sizeof(float) * listed),
        .at = kernel_alloc(sizeof(uint32_t) * listed),
        .counts = kernel_alloc(sizeof(uint32_t) * SPARSE_ROWS),
        .panel = kernel_alloc(sizeof(float) * SPARSE_DEPTH * SPARSE_VECTORS * width),
    };
}

int simd_open_dense(void *state, const struct dense_shape *shape,
                    const struct operation_options *options, struct operation **out_operation,
                    struct error *error)
{
    /* Measured: from here on oneDNN's products are 1.5 x faster and more, which no longer lets a
     * small model wait for the library. */
    const size_t large = 4000000;
    struct simd_state *set = state;
    struct simd_dense *dense = kernel_alloc(sizeof(*dense));
    AUTO(operation) struct operation *operation = &dense->operation;
    *operation = (struct operation){
        .forward = dense_forward,
        .backward = options->is_training ? dense_backward : NULL,
        .free = dense_free,
    };
    dense->isa = set->isa;
    dense->shape = *shape;
    dense->needs_input_gradient = options->needs_input_gradient;
    void *other;
    if ((size_t)shape->batch * shape->inputs * shape->outputs >= large &&
        simd_fallback(set, &other) == &kernel_onednn &&
        kernel_onednn.open_dense(other, shape, options, &dense->library, error) < 0)
        return -1;
    sparse_alloc(dense);
    snprintf(operation->description, sizeof(operation->description), "simd:%s%s", dense->isa->name,
             dense->library ? ", onednn:gemm" : "");
    *out_operation = TAKE(operation);
    return 0;
}
