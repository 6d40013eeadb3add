/*
 * Kernel simd: batch and local norm of rows of features, and ReLU. Other norms and activations, and
 * a local norm to another power than 3/4, are plain's.
 */
#include "tensor/kernel_simd_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void norm_free(struct operation *operation)
{
    struct simd_norm *norm = AS(simd_norm, operation);
    free(norm->mean);
    free(norm->scale);
    free(norm->first);
    free(norm->second);
    free(norm->part);
    free(norm->padded);
    free(norm->base);
    free(norm->power);
    free(norm);
}

static void batch_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct simd_norm *norm = AS(simd_norm, operation);
    const struct norm_shape *s = &norm->shape;
    if (t->is_inference || !operation->backward) {
        memcpy(norm->mean, t->running_mean, sizeof(float) * s->features);
        for (size_t f = 0; f < s->features; f++)
            norm->scale[f] = 1 / sqrtf(t->running_variance[f] + NORM_EPSILON);
    } else {
        norm->isa->batch_first(norm, t->input);
        for (size_t f = 0; f < s->features; f++)
            norm->mean[f] = (float)(norm->first[f] / s->outer);
        norm->isa->batch_second(norm, t->input);
        for (size_t f = 0; f < s->features; f++)
            norm->scale[f] = 1 / sqrtf((float)(norm->second[f] / s->outer) + NORM_EPSILON);
        norm_keep_running(t, norm->mean, norm->second, s->features, s->outer);
    }
    norm->isa->batch_apply(norm, t);
}

static void batch_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct simd_norm *norm = AS(simd_norm, operation);
    const size_t F = norm->shape.features;
    norm->isa->batch_sums(norm, t);
    for (size_t f = 0; f < F; f++) {
        t->bias_gradient[f] = (float)norm->first[f];
        t->weights_gradient[f] = (float)norm->second[f];
        norm->part[f] = (float)(norm->first[f] / norm->shape.outer);
        norm->part[F + f] = (float)(norm->second[f] / norm->shape.outer);
    }
    if (norm->needs_input_gradient)
        norm->isa->batch_spread(norm, t);
    memset(norm->part, 0, sizeof(float) * 2 * F);
}

static void local_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct simd_norm *norm = AS(simd_norm, operation);
    norm->isa->local_forward(norm, t);
}

static void local_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct simd_norm *norm = AS(simd_norm, operation);
    if (norm->needs_input_gradient)
        norm->isa->local_backward(norm, t);
}

static void norm_alloc(struct simd_norm *norm)
{
    const struct norm_shape *s = &norm->shape;
    const size_t floats = sizeof(float) * s->features;
    if (s->kind == NORM_LOCAL) {
        norm->padded = kernel_alloc(floats + sizeof(float) * s->window);
        norm->base = kernel_alloc(floats);
        norm->power = kernel_alloc(floats);
        return;
    }
    norm->mean = kernel_alloc(floats);
    norm->scale = kernel_alloc(floats);
    norm->first = kernel_alloc(2 * floats);
    norm->second = kernel_alloc(2 * floats);
    norm->part = kernel_alloc(2 * floats);
}

int simd_open_norm(void *state, const struct norm_shape *shape,
                   const struct operation_options *options, struct operation **out_operation,
                   struct error *error)
{
    const bool is_local = shape->kind == NORM_LOCAL;
    if (shape->inner != 1 || shape->kind == NORM_LAYER || (is_local && shape->beta != 0.75F))
        return plain_open_norm(NULL, shape, options, out_operation, error);
    struct simd_norm *norm = kernel_alloc(sizeof(*norm));
    norm->operation = (struct operation){
        .forward = is_local ? local_forward : batch_forward,
        .backward = !options->is_training ? NULL
                    : is_local            ? local_backward
                                          : batch_backward,
        .free = norm_free,
    };
    norm->isa = ((struct simd_state *)state)->isa;
    norm->shape = *shape;
    norm->needs_input_gradient = options->needs_input_gradient;
    norm_alloc(norm);
    snprintf(norm->operation.description, sizeof(norm->operation.description), "simd:%s",
             norm->isa->name);
    *out_operation = &norm->operation;
    return 0;
}

static void relu_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct simd_relu *relu = AS(simd_relu, operation);
    relu->isa->relu_forward(t->input, t->output, relu->count);
}

static void relu_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct simd_relu *relu = AS(simd_relu, operation);
    relu->isa->relu_backward(t->output, t->output_gradient, t->input_gradient, relu->count);
}

static void relu_free(struct operation *operation)
{
    free(operation);
}

int simd_open_activation(void *state, const struct activation_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error)
{
    if (shape->kind != ACTIVATION_RELU)
        return plain_open_activation(NULL, shape, options, out_operation, error);
    struct simd_relu *relu = kernel_alloc(sizeof(*relu));
    relu->operation = (struct operation){
        .forward = relu_forward,
        .backward = options->is_training ? relu_backward : NULL,
        .free = relu_free,
    };
    relu->isa = ((struct simd_state *)state)->isa;
    relu->count = shape->count;
    snprintf(relu->operation.description, sizeof(relu->operation.description), "simd:%s",
             relu->isa->name);
    *out_operation = &relu->operation;
    return 0;
}
