/*
 * Kernel oneDNN: pooling by oneDNN's primitives, dense layers by matrix products; convolution is in
 * kernel_onednn_conv.c.
 *
 * Layouts are oneDNN's choice (tag any); onednn_step.c reorders where they differ from ours. A
 * shape for which oneDNN has only its slow reference is left to kernel_plain.c.
 */
#include "base/assert.h"
#include "tensor/kernel_internal.h"
#include "tensor/onednn_library.h"
#include "tensor/onednn_step.h"

#include <stdlib.h>
#include <string.h>

struct onednn_dense {
    struct operation operation;
    const struct onednn_library *library;
    struct dense_shape shape;
    bool needs_input_gradient;
};

static void dense_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct onednn_dense *dense = AS(onednn_dense, operation);
    const struct dense_shape s = dense->shape;
    const struct gemm gemm = {.m = s.batch,
                              .n = s.outputs,
                              .k = s.inputs,
                              .is_b_transposed = true,
                              .a = t->input,
                              .b = t->weights,
                              .c = t->output};
    onednn_library_gemm(dense->library, &gemm);
    for (uint32_t n = 0; n < s.batch; n++)
        for (uint32_t o = 0; o < s.outputs; o++)
            t->output[(size_t)n * s.outputs + o] += t->bias[o];
}

static void dense_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct onednn_dense *dense = AS(onednn_dense, operation);
    const struct dense_shape s = dense->shape;
    const struct gemm weights = {.m = s.outputs,
                                 .n = s.inputs,
                                 .k = s.batch,
                                 .is_a_transposed = true,
                                 .a = t->output_gradient,
                                 .b = t->input,
                                 .c = t->weights_gradient};
    onednn_library_gemm(dense->library, &weights);
    memset(t->bias_gradient, 0, sizeof(float) * s.outputs);
    for (uint32_t n = 0; n < s.batch; n++)
        for (uint32_t o = 0; o < s.outputs; o++)
            t->bias_gradient[o] += t->output_gradient[(size_t)n * s.outputs + o];
    if (!dense->needs_input_gradient)
        return;
    const struct gemm input = {.m = s.batch,
                               .n = s.inputs,
                               .k = s.outputs,
                               .a = t->output_gradient,
                               .b = t->weights,
                               .c = t->input_gradient};
    onednn_library_gemm(dense->library, &input);
}

static void dense_free(struct operation *operation)
{
    free(operation);
}

static int onednn_open_dense(void *state, const struct dense_shape *shape,
                             const struct operation_options *options,
                             struct operation **out_operation, struct error *error)
{
    (void)error;
    struct onednn_dense *dense = kernel_alloc(sizeof(*dense));
    dense->operation = (struct operation){
        .forward = dense_forward,
        .backward = options->is_training ? dense_backward : NULL,
        .free = dense_free,
        .description = "onednn:gemm",
    };
    dense->library = state;
    dense->shape = *shape;
    dense->needs_input_gradient = options->needs_input_gradient;
    *out_operation = &dense->operation;
    return 0;
}

struct onednn_pool {
    struct operation operation;
    struct step forward, backward;
    dnnl_memory_t workspace; /* where each maximum was found */
    void *workspace_data;
};

static void pool_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct onednn_pool *pool = AS(onednn_pool, operation);
    const void *const data[] = {t->input, t->output};
    step_run(&pool->forward, data, pool->workspace);
}

static void pool_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct onednn_pool *pool = AS(onednn_pool, operation);
    const void *const data[] = {t->output_gradient, t->input_gradient};
    step_run(&pool->backward, data, pool->workspace);
}

static void pool_free(struct operation *operation)
{
    struct onednn_pool *pool = AS(onednn_pool, operation);
    if (pool->workspace)
        pool->forward.library->dnnl_memory_destroy(pool->workspace);
    free(pool->workspace_data);
    step_done(&pool->forward);
    step_done(&pool->backward);
    free(pool);
}

static int pool_open_workspace(struct onednn_pool *pool, struct error *error)
{
    const struct onednn_library *library = pool->forward.library;
    const dnnl_memory_desc_t *descriptor =
        library->dnnl_primitive_desc_query_md(pool->forward.descriptor, dnnl_query_workspace_md, 0);
    if (!descriptor || descriptor->ndims == 0)
        return 0; /* averages need none */
    pool->workspace_data = kernel_alloc(library->dnnl_memory_desc_get_size(descriptor));
    if (library->dnnl_memory_create(&pool->workspace, descriptor, library->engine,
                                    pool->workspace_data) != dnnl_success)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN refuses a workspace");
    return 0;
}

static int pool_open(void *state, const struct pool_shape *s,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error)
{
    const struct onednn_library *library = state;
    struct onednn_pool *pool = kernel_alloc(sizeof(*pool));
    AUTO(operation) struct operation *operation = &pool->operation;
    operation->forward = pool_forward;
    operation->backward = options->is_training ? pool_backward : NULL;
    operation->free = pool_free;

    const dnnl_dim_t input_sizes[] = {s->batch, s->channels, s->height, s->width};
    const uint32_t P = pool_output_height(s), Q = pool_output_width(s);
    const dnnl_dim_t output_sizes[] = {s->batch, s->channels, P, Q};
    const dnnl_format_tag_t layout = s->is_channels_last ? dnnl_nhwc : dnnl_nchw;
    const dnnl_memory_desc_t input = onednn_descriptor(library, 4, input_sizes, layout);
    const dnnl_memory_desc_t output = onednn_descriptor(library, 4, output_sizes, layout);
    const dnnl_dims_t window = {s->window_height, s->window_width};
    const dnnl_dims_t stride = {s->stride_height, s->stride_width}, none = {0, 0};
    /* A window that hangs over the edge is one that reaches into padding; what fills no window is
     * cut off by a negative one. */
    const dnnl_dims_t end = {
        (dnnl_dim_t)(P - 1) * s->stride_height + s->window_height - s->height,
        (dnnl_dim_t)(Q - 1) * s->stride_width + s->window_width - s->width,
    };
    const dnnl_alg_kind_t algorithm =
        s->kind == POOL_MAX ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    dnnl_pooling_desc_t forward, backward;
    dnnl_status_t status = library->dnnl_pooling_forward_desc_init(
        &forward, options->is_training ? dnnl_forward_training : dnnl_forward_inference, algorithm,
        &input, &output, stride, window, none, end);
    if (status != dnnl_success)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN has no such pooling");
    if (step_init(&pool->forward, library, &forward, NULL, error) < 0 ||
        step_add_port(&pool->forward, DNNL_ARG_SRC, dnnl_query_src_md, &input, error) < 0 ||
        step_add_port(&pool->forward, DNNL_ARG_DST, dnnl_query_dst_md, &output, error) < 0 ||
        pool_open_workspace(pool, error) < 0)
        return -1;
    status = library->dnnl_pooling_backward_desc_init(&backward, algorithm, &input, &output, stride,
                                                      window, none, end);
    ASSERT(status == dnnl_success);
    if (options->is_training &&
        (step_init(&pool->backward, library, &backward, &pool->forward, error) < 0 ||
         step_add_port(&pool->backward, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, &output, error) <
             0 ||
         step_add_port(&pool->backward, DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, &input, error) <
             0))
        return -1;
    snprintf(operation->description, sizeof(operation->description), "onednn:%s",
             step_implementation(&pool->forward));
    *out_operation = TAKE(operation);
    return 0;
}

static int onednn_open_pool(void *state, const struct pool_shape *shape,
                            const struct operation_options *options,
                            struct operation **out_operation, struct error *error)
{
    struct error reason = {0};
    if (pool_open(state, shape, options, out_operation, &reason) == 0)
        return 0;
    return kernel_plain.open_pool(NULL, shape, options, out_operation, error);
}

static void library_gemm(void *state, const struct gemm *gemm)
{
    onednn_library_gemm(state, gemm);
}

struct kernel_math onednn_math(void *state)
{
    struct kernel_math math = kernel_math_plain;
    math.name = "onednn";
    math.gemm = library_gemm;
    math.gemm_state = state;
    return math;
}

static int onednn_open_sequence_conv(void *state, const struct sequence_conv_shape *shape,
                                     const struct operation_options *options,
                                     struct operation **out_operation, struct error *error)
{
    const struct kernel_math math = onednn_math(state);
    return sequence_conv_open(&math, shape, options, out_operation, error);
}

static int onednn_open_recurrent(void *state, const struct recurrent_shape *shape,
                                 const struct operation_options *options,
                                 struct operation **out_operation, struct error *error)
{
    const struct kernel_math math = onednn_math(state);
    return recurrent_open(&math, shape, options, out_operation, error);
}

static bool onednn_prefers_channels_last(void *state)
{
    (void)state;
    return true;
}

static void onednn_sgd(void *state, const struct sgd_rule *rule, float *weights, float *velocity,
                       const float *gradient, size_t count)
{
    (void)state;
    kernel_plain.sgd(NULL, rule, weights, velocity, gradient, count);
}

static void onednn_adam(void *state, const struct adam_rule *rule, float *weights, float *first,
                        float *second, const float *gradient, size_t count)
{
    (void)state;
    kernel_plain.adam(NULL, rule, weights, first, second, gradient, count);
}

static void onednn_axpy(void *state, float a, const float *x, float *y, size_t count)
{
    (void)state;
    kernel_plain.axpy(NULL, a, x, y, count);
}

static void onednn_scale(void *state, float a, float *x, size_t count)
{
    (void)state;
    kernel_plain.scale(NULL, a, x, count);
}

static int onednn_open(void **out_state, struct error *error)
{
    struct onednn_library *library = NULL;
    if (onednn_library_open(&library, error) < 0)
        return -1;
    *out_state = library;
    return 0;
}

static void onednn_close(void *state)
{
    onednn_library_free(state);
}

static void onednn_exp(void *state, float *x, size_t count)
{
    (void)state;
    kernel_plain.exp(NULL, x, count);
}

const struct kernel_ops kernel_onednn = {
    .name = "onednn",
    .open = onednn_open,
    .close = onednn_close,
    .open_dense = onednn_open_dense,
    .open_conv = onednn_open_conv,
    .open_pool = onednn_open_pool,
    /* Elementwise work is bound by memory, not arithmetic: the plain loops do as well. */
    .open_activation = plain_open_activation,
    .open_norm = plain_open_norm,
    .open_dropout = plain_open_dropout,
    .open_embedding = plain_open_embedding,
    .open_sequence_conv = onednn_open_sequence_conv,
    .open_recurrent = onednn_open_recurrent,
    .prefers_channels_last = onednn_prefers_channels_last,
    .sgd = onednn_sgd,
    .adam = onednn_adam,
    .axpy = onednn_axpy,
    .scale = onednn_scale,
    .exp = onednn_exp,
};
