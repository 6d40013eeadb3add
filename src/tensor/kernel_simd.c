/*
 * Kernel simd: own vector kernels for what LeNet-5 and small dense models spend their time on,
 * where they are faster than the libraries by half and more; the rest is left to oneDNN, or to
 * plain where that is not installed. They also start at once: nothing is opened or generated.
 */
#include "tensor/kernel_math.h"
#include "tensor/kernel_simd_internal.h"

#include <stdlib.h>
#include <string.h>

static const struct simd_isa *pick_isa(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
        return &simd_isa_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &simd_isa_avx2;
#endif
    return &simd_isa_base;
}

static int simd_open(void **out_state, struct error *error)
{
    (void)error;
    struct simd_state *state = kernel_alloc(sizeof(*state));
    state->isa = pick_isa();
    *out_state = state;
    return 0;
}

static void simd_close(void *opened)
{
    struct simd_state *state = opened;
    if (state->onednn)
        kernel_onednn.close(state->onednn);
    free(state);
}

const struct kernel_ops *simd_fallback(struct simd_state *state, void **out_state)
{
    struct error reason;
    if (!state->has_tried_onednn && kernel_onednn.open(&state->onednn, &reason) < 0)
        state->onednn = NULL;
    state->has_tried_onednn = true;
    *out_state = state->onednn;
    return state->onednn ? &kernel_onednn : &kernel_plain;
}

static void block_forward(struct operation *operation, const struct operation_tensors *tensors)
{
    const struct simd_block *block = AS(simd_block, operation);
    block->isa->block_forward(block, tensors);
}

static void block_backward(struct operation *operation, const struct operation_tensors *tensors)
{
    const struct simd_block *block = AS(simd_block, operation);
    block->isa->block_backward(block, tensors);
}

static void block_free(struct operation *operation)
{
    struct simd_block *block = AS(simd_block, operation);
    free(block->input);
    free(block->pooled);
    free(block->winner);
    free(block->gradient);
    free(block->input_gradient);
    free(block->packed);
    free(block->weights_sums);
    free(block);
}

static void block_alloc(struct simd_block *block)
{
    const struct conv_shape *s = &block->shape;
    const size_t vector = sizeof(float) * block->isa->width;
    const size_t weights = (size_t)s->channels_out * s->channels_in * s->kernel * s->kernel;
    const size_t pooled = (size_t)s->channels_out * (block->P / 2) * (block->Q / 2);
    const size_t input =
        (size_t)s->channels_in * (s->height + 2 * s->pad) * (s->width + 2 * s->pad);
    block->input = kernel_alloc(vector * input * block->group_count);
    block->pooled = kernel_alloc(vector * pooled);
    block->packed = kernel_alloc(sizeof(float) * weights);
    if (!block->is_training)
        return;
    block->winner = kernel_alloc(vector * pooled * block->group_count);
    block->gradient = kernel_alloc(vector * s->channels_out * (block->P + 2 * block->border) *
                                   (block->Q + 2 * block->border));
    block->weights_sums = kernel_alloc(vector * weights);
    if (block->needs_input_gradient)
        block->input_gradient = kernel_alloc(vector * s->channels_in * s->height * s->width);
}

static int simd_open_conv_block(void *state, const struct conv_block_shape *shape,
                                const struct operation_options *options,
                                struct operation **out_operation, struct error *error)
{
    (void)error;
    struct simd_block *block = kernel_alloc(sizeof(*block));
    block->operation = (struct operation){
        .forward = block_forward,
        .backward = options->is_training ? block_backward : NULL,
        .free = block_free,
    };
    block->isa = ((struct simd_state *)state)->isa;
    block->shape = shape->conv;
    block->is_training = options->is_training;
    block->needs_input_gradient = options->is_training && options->needs_input_gradient;
    block->P = conv_output_size(&shape->conv, shape->conv.height);
    block->Q = conv_output_size(&shape->conv, shape->conv.width);
    block->group_count = (shape->conv.batch + block->isa->width - 1) / block->isa->width;
    block->border = block->needs_input_gradient ? shape->conv.kernel - 1 : 0;
    block_alloc(block);
    snprintf(block->operation.description, sizeof(block->operation.description), "simd:%s",
             block->isa->name);
    *out_operation = &block->operation;
    return 0;
}

static int simd_open_conv(void *state, const struct conv_shape *shape,
                          const struct operation_options *options, struct operation **out_operation,
                          struct error *error)
{
    void *other;
    const struct kernel_ops *ops = simd_fallback(state, &other);
    return ops->open_conv(other, shape, options, out_operation, error);
}

static int simd_open_pool(void *state, const struct pool_shape *shape,
                          const struct operation_options *options, struct operation **out_operation,
                          struct error *error)
{
    void *other;
    const struct kernel_ops *ops = simd_fallback(state, &other);
    return ops->open_pool(other, shape, options, out_operation, error);
}

/* Products by the libraries where there are any, gates by this set's vectors. */
static struct kernel_math simd_math(struct simd_state *state)
{
    void *other;
    const struct kernel_ops *ops = simd_fallback(state, &other);
    struct kernel_math math = ops == &kernel_onednn ? onednn_math(other) : kernel_math_plain;
    math.name = state->isa->name;
    math.lstm_forward = state->isa->lstm_forward;
    math.lstm_backward = state->isa->lstm_backward;
    math.gru_forward = state->isa->gru_forward;
    math.gru_backward = state->isa->gru_backward;
    return math;
}

static int simd_open_sequence_conv(void *state, const struct sequence_conv_shape *shape,
                                   const struct operation_options *options,
                                   struct operation **out_operation, struct error *error)
{
    const struct kernel_math math = simd_math(state);
    return sequence_conv_open(&math, shape, options, out_operation, error);
}

static int simd_open_recurrent(void *state, const struct recurrent_shape *shape,
                               const struct operation_options *options,
                               struct operation **out_operation, struct error *error)
{
    const struct kernel_math math = simd_math(state);
    return recurrent_open(&math, shape, options, out_operation, error);
}

static bool simd_prefers_channels_last(void *state)
{
    void *other;
    return simd_fallback(state, &other) == &kernel_onednn;
}

static void simd_sgd(void *state, const struct sgd_rule *rule, float *weights, float *velocity,
                     const float *gradient, size_t count)
{
    ((struct simd_state *)state)->isa->sgd(rule, weights, velocity, gradient, count);
}

static void simd_adam(void *state, const struct adam_rule *rule, float *weights, float *first,
                      float *second, const float *gradient, size_t count)
{
    ((struct simd_state *)state)->isa->adam(rule, weights, first, second, gradient, count);
}

static void simd_axpy(void *state, float a, const float *x, float *y, size_t count)
{
    ((struct simd_state *)state)->isa->axpy(a, x, y, count);
}

static void simd_scale(void *state, float a, float *x, size_t count)
{
    ((struct simd_state *)state)->isa->scale(a, x, count);
}

static void simd_exp(void *state, float *x, size_t count)
{
    ((struct simd_state *)state)->isa->exp(x, count);
}

const struct kernel_ops kernel_simd = {
    .name = "simd",
    .open = simd_open,
    .close = simd_close,
    .open_dense = simd_open_dense,
    .open_conv = simd_open_conv,
    .open_pool = simd_open_pool,
    .open_activation = simd_open_activation,
    .open_norm = simd_open_norm,
    .open_dropout = plain_open_dropout,
    .open_embedding = plain_open_embedding,
    .open_sequence_conv = simd_open_sequence_conv,
    .open_recurrent = simd_open_recurrent,
    .prefers_channels_last = simd_prefers_channels_last,
    .open_conv_block = simd_open_conv_block,
    .sgd = simd_sgd,
    .adam = simd_adam,
    .axpy = simd_axpy,
    .scale = simd_scale,
    .exp = simd_exp,
};
