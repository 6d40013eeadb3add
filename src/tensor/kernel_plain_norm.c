/* Kernel plain: batch, layer and local norm over a tensor [outer, features, inner]. */
#include "base/assert.h"
#include "tensor/kernel_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct plain_norm {
    struct operation operation;
    struct norm_shape shape;
    bool needs_input_gradient;
    size_t group_count;     /* batch: features; layer: outer; local: none */
    float *mean, *scale;    /* [group_count]; scale is 1 / deviation */
    double *first, *second; /* [group_count], sums on the way */
    double *slope, *shift;  /* [features], gradients of weights and bias on the way */
    float *sums;            /* of local: 1 + alpha / window * sum of squares, as the input */
};

static void norm_free(struct operation *operation)
{
    struct plain_norm *norm = AS(plain_norm, operation);
    free(norm->mean);
    free(norm->scale);
    free(norm->first);
    free(norm->second);
    free(norm->slope);
    free(norm->shift);
    free(norm->sums);
    free(norm);
}

/* The group whose mean and deviation hold for a run of `inner` elements. */
static size_t group_of(const struct norm_shape *s, size_t outer, size_t feature)
{
    return s->kind == NORM_BATCH ? feature : outer;
}

static void norm_measure(struct plain_norm *norm, const float *input)
{
    const struct norm_shape *s = &norm->shape;
    const size_t each = (size_t)s->outer * s->features * s->inner / norm->group_count;
    const double count = (double)each;
    memset(norm->first, 0, sizeof(double) * norm->group_count);
    memset(norm->second, 0, sizeof(double) * norm->group_count);
    const float *x = input;
    for (size_t o = 0; o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++)
            for (size_t i = 0; i < s->inner; i++)
                norm->first[group_of(s, o, f)] += (double)*x++;
    for (size_t g = 0; g < norm->group_count; g++)
        norm->mean[g] = (float)(norm->first[g] / count);
    x = input;
    for (size_t o = 0; o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++)
            for (size_t i = 0; i < s->inner; i++) {
                const float off = *x++ - norm->mean[group_of(s, o, f)];
                norm->second[group_of(s, o, f)] += (double)off * (double)off;
            }
    for (size_t g = 0; g < norm->group_count; g++)
        norm->scale[g] = 1 / sqrtf((float)(norm->second[g] / count) + NORM_EPSILON);
}

/* The variance kept is that of the population the batch was drawn from: divided by n - 1. */
void norm_keep_running(const struct operation_tensors *t, const float *mean, const double *second,
                       size_t features, double count)
{
    for (size_t f = 0; f < features; f++) {
        const float variance = (float)(second[f] / (count > 1 ? count - 1 : 1));
        t->running_mean[f] += NORM_MOMENTUM * (mean[f] - t->running_mean[f]);
        t->running_variance[f] += NORM_MOMENTUM * (variance - t->running_variance[f]);
    }
}

static void norm_forward(struct operation *operation, const struct operation_tensors *t)
{
    struct plain_norm *norm = AS(plain_norm, operation);
    const struct norm_shape *s = &norm->shape;
    if (s->kind == NORM_BATCH && (t->is_inference || !operation->backward)) {
        memcpy(norm->mean, t->running_mean, sizeof(float) * s->features);
        for (size_t f = 0; f < s->features; f++)
            norm->scale[f] = 1 / sqrtf(t->running_variance[f] + NORM_EPSILON);
    } else {
        norm_measure(norm, t->input);
        if (s->kind == NORM_BATCH)
            norm_keep_running(t, norm->mean, norm->second, s->features,
                              (double)s->outer * s->inner);
    }
    size_t at = 0;
    for (size_t o = 0; o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++) {
            const size_t g = group_of(s, o, f);
            for (size_t i = 0; i < s->inner; i++, at++)
                t->output[at] =
                    (t->input[at] - norm->mean[g]) * norm->scale[g] * t->weights[f] + t->bias[f];
        }
}

/* Ioffe and Szegedy 2015, section 3, with the two sums that all elements of a group share. */
static void norm_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_norm *norm = AS(plain_norm, operation);
    const struct norm_shape *s = &norm->shape;
    const size_t per_group = (size_t)s->outer * s->features * s->inner / norm->group_count;
    memset(norm->first, 0, sizeof(double) * norm->group_count);
    memset(norm->second, 0, sizeof(double) * norm->group_count);
    memset(norm->slope, 0, sizeof(double) * s->features);
    memset(norm->shift, 0, sizeof(double) * s->features);
    size_t at = 0;
    for (size_t o = 0; o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++) {
            const size_t g = group_of(s, o, f);
            double sum = 0, dot = 0;
            for (size_t i = 0; i < s->inner; i++, at++) {
                const float x = (t->input[at] - norm->mean[g]) * norm->scale[g];
                sum += (double)t->output_gradient[at];
                dot += (double)t->output_gradient[at] * (double)x;
            }
            norm->slope[f] += dot;
            norm->shift[f] += sum;
            norm->first[g] += sum * (double)t->weights[f];
            norm->second[g] += dot * (double)t->weights[f];
        }
    for (size_t f = 0; f < s->features; f++) {
        t->weights_gradient[f] = (float)norm->slope[f];
        t->bias_gradient[f] = (float)norm->shift[f];
    }
    at = 0;
    for (size_t o = 0; norm->needs_input_gradient && o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++) {
            const size_t g = group_of(s, o, f);
            const float sum = (float)(norm->first[g] / (double)per_group);
            const float dot = (float)(norm->second[g] / (double)per_group);
            for (size_t i = 0; i < s->inner; i++, at++) {
                const float x = (t->input[at] - norm->mean[g]) * norm->scale[g];
                t->input_gradient[at] =
                    norm->scale[g] * (t->output_gradient[at] * t->weights[f] - sum - x * dot);
            }
        }
}

/* Features from `first` to before `end` lie in the window around f. */
static void window_around(const struct norm_shape *s, size_t f, size_t *out_first, size_t *out_end)
{
    const size_t half = s->window / 2;
    *out_first = f > half ? f - half : 0;
    *out_end = f + half + 1 < s->features ? f + half + 1 : s->features;
}

/* Krizhevsky et al. 2012, section 3.3, with alpha divided by the window as torch does. */
static void local_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_norm *norm = AS(plain_norm, operation);
    const struct norm_shape *s = &norm->shape;
    const float share = s->alpha / (float)s->window;
    for (size_t o = 0; o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++) {
            size_t first, end;
            window_around(s, f, &first, &end);
            for (size_t i = 0; i < s->inner; i++) {
                const size_t row = o * s->features, at = (row + f) * s->inner + i;
                float sum = 0;
                for (size_t near = first; near < end; near++) {
                    const float x = t->input[(row + near) * s->inner + i];
                    sum += x * x;
                }
                norm->sums[at] = 1 + share * sum;
                t->output[at] = t->input[at] * powf(norm->sums[at], -s->beta);
            }
        }
}

static void local_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_norm *norm = AS(plain_norm, operation);
    const struct norm_shape *s = &norm->shape;
    const float factor = 2 * s->beta * s->alpha / (float)s->window;
    for (size_t o = 0; norm->needs_input_gradient && o < s->outer; o++)
        for (size_t f = 0; f < s->features; f++) {
            size_t first, end;
            window_around(s, f, &first, &end);
            for (size_t i = 0; i < s->inner; i++) {
                const size_t row = o * s->features, at = (row + f) * s->inner + i;
                float sum = 0;
                for (size_t near = first; near < end; near++) {
                    const size_t place = (row + near) * s->inner + i;
                    sum += t->output_gradient[place] * t->input[place] *
                           powf(norm->sums[place], -s->beta - 1);
                }
                t->input_gradient[at] = t->output_gradient[at] * powf(norm->sums[at], -s->beta) -
                                        factor * t->input[at] * sum;
            }
        }
}

int plain_open_norm(void *state, const struct norm_shape *shape,
                    const struct operation_options *options, struct operation **out_operation,
                    struct error *error)
{
    (void)state;
    (void)error;
    const bool is_local = shape->kind == NORM_LOCAL;
    *out_operation =
        plain_new(sizeof(struct plain_norm), "norm", is_local ? local_forward : norm_forward,
                  !options->is_training ? NULL
                  : is_local            ? local_backward
                                        : norm_backward);
    struct plain_norm *norm = AS(plain_norm, *out_operation);
    norm->operation.free = norm_free;
    norm->shape = *shape;
    norm->needs_input_gradient = options->needs_input_gradient;
    if (is_local) {
        norm->sums =
            kernel_alloc(sizeof(float) * shape->outer * shape->features * (size_t)shape->inner);
        return 0;
    }
    norm->group_count = shape->kind == NORM_BATCH ? shape->features : shape->outer;
    norm->mean = kernel_alloc(sizeof(float) * norm->group_count);
    norm->scale = kernel_alloc(sizeof(float) * norm->group_count);
    norm->first = kernel_alloc(sizeof(double) * norm->group_count);
    norm->second = kernel_alloc(sizeof(double) * norm->group_count);
    norm->slope = kernel_alloc(sizeof(double) * shape->features);
    norm->shift = kernel_alloc(sizeof(double) * shape->features);
    return 0;
}
