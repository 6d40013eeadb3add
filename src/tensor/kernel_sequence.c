/*
 * Convolution over time, as one matrix product for each place of the kernel.
 *
 * Samples lie one after the other, padded, [batch, L, features] with L = steps + 2 pad, as one long
 * sequence. Windows that reach from one sample into the next are computed and not used; their
 * gradients are zero. So a product covers the whole batch.
 */
#include "tensor/kernel_math.h"

#include <stdlib.h>
#include <string.h>

struct sequence_conv {
    struct operation operation;
    struct kernel_math math;
    struct sequence_conv_shape shape;
    bool needs_input_gradient;
    size_t length, row_count; /* L, and windows of the whole: batch L - kernel + 1 */
    float *input;             /* [batch L, features] */
    float *output;            /* [batch L, outputs]; of backward its gradient */
    float *input_gradient;
};

static void sequence_conv_free(struct operation *operation)
{
    struct sequence_conv *conv = AS(sequence_conv, operation);
    free(conv->input);
    free(conv->output);
    free(conv->input_gradient);
    free(conv);
}

static size_t output_steps(const struct sequence_conv *conv)
{
    return conv->length - conv->shape.kernel + 1;
}

static void sequence_conv_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct sequence_conv *conv = AS(sequence_conv, operation);
    const struct sequence_conv_shape s = conv->shape;
    const size_t sample = (size_t)s.steps * s.features, steps = output_steps(conv);
    for (size_t n = 0; n < s.batch; n++)
        memcpy(conv->input + (n * conv->length + s.pad) * s.features, t->input + n * sample,
               sizeof(float) * sample);
    for (size_t r = 0; r < s.kernel; r++) {
        const struct gemm gemm = {.m = (uint32_t)conv->row_count,
                                  .n = s.outputs,
                                  .k = s.features,
                                  .is_b_transposed = true,
                                  .a = conv->input + r * s.features,
                                  .b = t->weights + r * s.features,
                                  .ldb = s.kernel * s.features,
                                  .c = conv->output,
                                  .beta = r > 0 ? 1 : 0};
        conv->math.gemm(conv->math.gemm_state, &gemm);
    }
    for (size_t n = 0; n < s.batch; n++)
        for (size_t row = 0; row < steps; row++)
            for (size_t o = 0; o < s.outputs; o++)
                t->output[(n * steps + row) * s.outputs + o] =
                    conv->output[(n * conv->length + row) * s.outputs + o] + t->bias[o];
}

static void spread_gradient(const struct sequence_conv *conv, const struct operation_tensors *t)
{
    const struct sequence_conv_shape s = conv->shape;
    const size_t steps = output_steps(conv);
    memset(conv->output, 0, sizeof(float) * s.batch * conv->length * s.outputs);
    memset(t->bias_gradient, 0, sizeof(float) * s.outputs);
    for (size_t n = 0; n < s.batch; n++)
        for (size_t row = 0; row < steps; row++) {
            const float *gradient = t->output_gradient + (n * steps + row) * s.outputs;
            memcpy(conv->output + (n * conv->length + row) * s.outputs, gradient,
                   sizeof(float) * s.outputs);
            for (size_t o = 0; o < s.outputs; o++)
                t->bias_gradient[o] += gradient[o];
        }
}

static void sequence_conv_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct sequence_conv *conv = AS(sequence_conv, operation);
    const struct sequence_conv_shape s = conv->shape;
    const size_t sample = (size_t)s.steps * s.features;
    spread_gradient(conv, t);
    if (conv->needs_input_gradient)
        memset(conv->input_gradient, 0, sizeof(float) * s.batch * conv->length * s.features);
    for (size_t r = 0; r < s.kernel; r++) {
        const struct gemm weights = {.m = s.outputs,
                                     .n = s.features,
                                     .k = (uint32_t)conv->row_count,
                                     .is_a_transposed = true,
                                     .a = conv->output,
                                     .b = conv->input + r * s.features,
                                     .c = t->weights_gradient + r * s.features,
                                     .ldc = s.kernel * s.features};
        conv->math.gemm(conv->math.gemm_state, &weights);
        const struct gemm input = {.m = (uint32_t)conv->row_count,
                                   .n = s.features,
                                   .k = s.outputs,
                                   .a = conv->output,
                                   .b = t->weights + r * s.features,
                                   .ldb = s.kernel * s.features,
                                   .c = conv->input_gradient + r * s.features,
                                   .beta = 1};
        if (conv->needs_input_gradient)
            conv->math.gemm(conv->math.gemm_state, &input);
    }
    for (size_t n = 0; conv->needs_input_gradient && n < s.batch; n++)
        memcpy(t->input_gradient + n * sample,
               conv->input_gradient + (n * conv->length + s.pad) * s.features,
               sizeof(float) * sample);
}

int sequence_conv_open(const struct kernel_math *math, const struct sequence_conv_shape *shape,
                       const struct operation_options *options, struct operation **out_operation,
                       struct error *error)
{
    (void)error;
    struct sequence_conv *conv = kernel_alloc(sizeof(*conv));
    conv->operation = (struct operation){
        .forward = sequence_conv_forward,
        .backward = options->is_training ? sequence_conv_backward : NULL,
        .free = sequence_conv_free,
    };
    snprintf(conv->operation.description, sizeof(conv->operation.description),
             "%s:convolution over time", math->name);
    conv->math = *math;
    conv->shape = *shape;
    conv->needs_input_gradient = options->is_training && options->needs_input_gradient;
    conv->length = shape->steps + 2 * (size_t)shape->pad;
    const size_t all = shape->batch * conv->length;
    conv->row_count = all - shape->kernel + 1;
    conv->input = kernel_alloc(sizeof(float) * all * shape->features);
    conv->output = kernel_alloc(sizeof(float) * all * shape->outputs);
    if (conv->needs_input_gradient)
        conv->input_gradient = kernel_alloc(sizeof(float) * all * shape->features);
    *out_operation = &conv->operation;
    return 0;
}
