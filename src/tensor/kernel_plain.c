/*
 * Kernel plain: every operation in the fewest words; the other sets are tested against it.
 *
 * B batch, C channels in, K channels out, H and W the input's sides, P and Q the output's,
 * R the kernel's side. Loops are ordered so that the innermost runs along a row.
 */
#include "base/assert.h"
#include "tensor/kernel_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void plain_free(struct operation *operation)
{
    free(operation);
}

struct operation *plain_new(size_t size, const char *description,
                            void (*forward)(struct operation *, const struct operation_tensors *),
                            void (*backward)(struct operation *, const struct operation_tensors *))
{
    struct operation *operation = kernel_alloc(size);
    operation->forward = forward;
    operation->backward = backward;
    operation->free = plain_free;
    snprintf(operation->description, sizeof(operation->description), "plain:%s", description);
    return operation;
}

struct plain_dense {
    struct operation operation;
    struct dense_shape shape;
    bool needs_input_gradient;
};

static void dense_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct dense_shape s = AS(plain_dense, operation)->shape;
    for (uint32_t n = 0; n < s.batch; n++)
        for (uint32_t o = 0; o < s.outputs; o++) {
            const float *input = t->input + (size_t)n * s.inputs;
            const float *weights = t->weights + (size_t)o * s.inputs;
            float sum = t->bias[o];
            for (uint32_t i = 0; i < s.inputs; i++)
                sum += input[i] * weights[i];
            t->output[(size_t)n * s.outputs + o] = sum;
        }
}

static void dense_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_dense *dense = AS(plain_dense, operation);
    const struct dense_shape s = dense->shape;
    memset(t->weights_gradient, 0, sizeof(float) * s.inputs * s.outputs);
    memset(t->bias_gradient, 0, sizeof(float) * s.outputs);
    if (dense->needs_input_gradient)
        memset(t->input_gradient, 0, sizeof(float) * s.batch * s.inputs);
    for (uint32_t n = 0; n < s.batch; n++)
        for (uint32_t o = 0; o < s.outputs; o++) {
            const float gradient = t->output_gradient[(size_t)n * s.outputs + o];
            const float *input = t->input + (size_t)n * s.inputs;
            float *weights_gradient = t->weights_gradient + (size_t)o * s.inputs;
            t->bias_gradient[o] += gradient;
            for (uint32_t i = 0; i < s.inputs; i++)
                weights_gradient[i] += gradient * input[i];
            if (!dense->needs_input_gradient)
                continue;
            const float *weights = t->weights + (size_t)o * s.inputs;
            float *input_gradient = t->input_gradient + (size_t)n * s.inputs;
            for (uint32_t i = 0; i < s.inputs; i++)
                input_gradient[i] += gradient * weights[i];
        }
}

static int plain_open_dense(void *state, const struct dense_shape *shape,
                            const struct operation_options *options,
                            struct operation **out_operation, struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_dense), "dense", dense_forward,
                               options->is_training ? dense_backward : NULL);
    AS(plain_dense, *out_operation)->shape = *shape;
    AS(plain_dense, *out_operation)->needs_input_gradient = options->needs_input_gradient;
    return 0;
}

struct plain_conv {
    struct operation operation;
    struct conv_shape shape;
    bool needs_input_gradient;
};

/* One kernel element joins one output row to one input row: output[q] meets input[q * stride], both
 * counted from these offsets, for `count` elements. */
struct row_pair {
    size_t weight, output, input;
    size_t stride;
    uint32_t count; /* 0: the element lies in the padding there */
};

static struct row_pair pair_rows(const struct conv_shape *s, uint32_t k, uint32_t c, uint32_t r,
                                 uint32_t p)
{
    const uint32_t R = s->kernel, column = r % R;
    const uint32_t P = conv_output_size(s, s->height), Q = conv_output_size(s, s->width);
    const uint32_t row = p * s->stride + r / R; /* of the padded input */
    if (row < s->pad || row >= s->pad + s->height)
        return (struct row_pair){.count = 0};
    /* The first and the last column whose place, q stride + column, lies in the image. */
    const uint32_t begin = column < s->pad ? (s->pad - column + s->stride - 1) / s->stride : 0;
    const uint32_t last = (s->width + s->pad - column + s->stride - 1) / s->stride;
    const uint32_t end = last < Q ? last : Q;
    return (struct row_pair){
        .weight = ((size_t)k * s->channels_in + c) * R * R + r,
        .output = ((size_t)k * P + p) * Q + begin,
        .input = ((size_t)c * s->height + row - s->pad) * s->width + (size_t)begin * s->stride +
                 column - s->pad,
        .stride = s->stride,
        .count = end > begin ? end - begin : 0,
    };
}

static void visit_forward(const struct operation_tensors *image, struct row_pair pair)
{
    const float weight = image->weights[pair.weight];
    for (uint32_t q = 0; q < pair.count; q++)
        image->output[pair.output + q] += weight * image->input[pair.input + q * pair.stride];
}

static void visit_backward(const struct operation_tensors *image, struct row_pair pair)
{
    const float weight = image->weights[pair.weight];
    const float *gradient = image->output_gradient + pair.output;
    float sum = 0;
    for (uint32_t q = 0; q < pair.count; q++)
        sum += gradient[q] * image->input[pair.input + q * pair.stride];
    image->weights_gradient[pair.weight] += sum;
    for (uint32_t q = 0; image->input_gradient && q < pair.count; q++)
        image->input_gradient[pair.input + q * pair.stride] += weight * gradient[q];
}

/* Calls `visit` for every pair of rows of one image. */
static void conv_each_pair(const struct conv_shape *s, const struct operation_tensors *image,
                           void (*visit)(const struct operation_tensors *, struct row_pair))
{
    const uint32_t P = conv_output_size(s, s->height), area = s->kernel * s->kernel;
    for (uint32_t k = 0; k < s->channels_out; k++)
        for (uint32_t c = 0; c < s->channels_in; c++)
            for (uint32_t r = 0; r < area; r++)
                for (uint32_t p = 0; p < P; p++)
                    visit(image, pair_rows(s, k, c, r, p));
}

static void conv_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct conv_shape s = AS(plain_conv, operation)->shape;
    const size_t plane = (size_t)conv_output_size(&s, s.height) * conv_output_size(&s, s.width);
    const size_t input_size = (size_t)s.channels_in * s.height * s.width;
    const size_t output_size = s.channels_out * plane;
    for (uint32_t n = 0; n < s.batch; n++) {
        struct operation_tensors image = *t;
        image.input += n * input_size;
        image.output += n * output_size;
        for (size_t i = 0; i < output_size; i++)
            image.output[i] = t->bias[i / plane];
        conv_each_pair(&s, &image, visit_forward);
    }
}

static void conv_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_conv *conv = AS(plain_conv, operation);
    const struct conv_shape s = conv->shape;
    const size_t plane = (size_t)conv_output_size(&s, s.height) * conv_output_size(&s, s.width);
    const size_t input_size = (size_t)s.channels_in * s.height * s.width;
    memset(t->weights_gradient, 0,
           sizeof(float) * s.channels_out * s.channels_in * s.kernel * s.kernel);
    memset(t->bias_gradient, 0, sizeof(float) * s.channels_out);
    if (conv->needs_input_gradient)
        memset(t->input_gradient, 0, sizeof(float) * s.batch * input_size);
    for (uint32_t n = 0; n < s.batch; n++) {
        struct operation_tensors image = *t;
        image.input += n * input_size;
        image.output_gradient += n * (s.channels_out * plane);
        image.input_gradient =
            conv->needs_input_gradient ? t->input_gradient + n * input_size : NULL;
        for (uint32_t k = 0; k < s.channels_out; k++)
            for (size_t i = 0; i < plane; i++)
                t->bias_gradient[k] += image.output_gradient[k * plane + i];
        conv_each_pair(&s, &image, visit_backward);
    }
}

static int plain_open_conv(void *state, const struct conv_shape *shape,
                           const struct operation_options *options,
                           struct operation **out_operation, struct error *error)
{
    (void)state;
    if (shape->is_channels_last)
        return error_set(error, ERROR_UNAVAILABLE, "plain has no channels-last convolution");
    *out_operation = plain_new(sizeof(struct plain_conv), "conv", conv_forward,
                               options->is_training ? conv_backward : NULL);
    AS(plain_conv, *out_operation)->shape = *shape;
    AS(plain_conv, *out_operation)->needs_input_gradient = options->needs_input_gradient;
    return 0;
}

struct plain_pool {
    struct operation operation;
    struct pool_shape shape;
    uint32_t P, Q;
};

/* One window: where it begins in its plane, and how much of it lies in the image. */
struct window {
    uint32_t y, x, height, width;
};

static struct window window_at(const struct plain_pool *pool, uint32_t p, uint32_t q)
{
    const struct pool_shape *s = &pool->shape;
    const uint32_t y = p * s->stride_height, x = q * s->stride_width;
    const uint32_t height = s->height - y, width = s->width - x;
    return (struct window){y, x, height < s->window_height ? height : s->window_height,
                           width < s->window_width ? width : s->window_width};
}

/* Of a plane's element (y, x). */
static size_t pool_place(const struct pool_shape *s, size_t plane, uint32_t y, uint32_t x)
{
    if (!s->is_channels_last)
        return (plane * s->height + y) * s->width + x;
    const size_t image = plane / s->channels, channel = plane % s->channels;
    return ((image * s->height + y) * s->width + x) * s->channels + channel;
}

static size_t pool_output_place(const struct plain_pool *pool, size_t plane, uint32_t p, uint32_t q)
{
    const struct pool_shape output = {.channels = pool->shape.channels,
                                      .height = pool->P,
                                      .width = pool->Q,
                                      .is_channels_last = pool->shape.is_channels_last};
    return pool_place(&output, plane, p, q);
}

/* The window's element that holds its maximum, the first of equals. */
static size_t window_largest(const struct pool_shape *s, const float *input, size_t plane,
                             struct window window)
{
    size_t best = pool_place(s, plane, window.y, window.x);
    for (uint32_t y = 0; y < window.height; y++)
        for (uint32_t x = 0; x < window.width; x++) {
            const size_t place = pool_place(s, plane, window.y + y, window.x + x);
            if (input[place] > input[best])
                best = place;
        }
    return best;
}

static float window_mean(const struct pool_shape *s, const float *input, size_t plane,
                         struct window window)
{
    float sum = 0;
    for (uint32_t y = 0; y < window.height; y++)
        for (uint32_t x = 0; x < window.width; x++)
            sum += input[pool_place(s, plane, window.y + y, window.x + x)];
    return sum / (float)(window.height * window.width);
}

static void pool_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_pool *pool = AS(plain_pool, operation);
    const struct pool_shape *s = &pool->shape;
    for (size_t plane = 0; plane < (size_t)s->batch * s->channels; plane++)
        for (uint32_t p = 0; p < pool->P; p++)
            for (uint32_t q = 0; q < pool->Q; q++) {
                const struct window window = window_at(pool, p, q);
                t->output[pool_output_place(pool, plane, p, q)] =
                    s->kind == POOL_MAX ? t->input[window_largest(s, t->input, plane, window)]
                                        : window_mean(s, t->input, plane, window);
            }
}

static void pool_backward_window(const struct plain_pool *pool, const struct operation_tensors *t,
                                 size_t plane, struct window window, float gradient)
{
    const struct pool_shape *s = &pool->shape;
    if (s->kind == POOL_MAX) {
        t->input_gradient[window_largest(s, t->input, plane, window)] += gradient;
        return;
    }
    const float share = gradient / (float)(window.height * window.width);
    for (uint32_t y = 0; y < window.height; y++)
        for (uint32_t x = 0; x < window.width; x++)
            t->input_gradient[pool_place(s, plane, window.y + y, window.x + x)] += share;
}

static void pool_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_pool *pool = AS(plain_pool, operation);
    const struct pool_shape *s = &pool->shape;
    memset(t->input_gradient, 0, sizeof(float) * s->batch * s->channels * s->height * s->width);
    for (size_t plane = 0; plane < (size_t)s->batch * s->channels; plane++)
        for (uint32_t p = 0; p < pool->P; p++)
            for (uint32_t q = 0; q < pool->Q; q++)
                pool_backward_window(pool, t, plane, window_at(pool, p, q),
                                     t->output_gradient[pool_output_place(pool, plane, p, q)]);
}

static int plain_open_pool(void *state, const struct pool_shape *shape,
                           const struct operation_options *options,
                           struct operation **out_operation, struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_pool), "pool", pool_forward,
                               options->is_training ? pool_backward : NULL);
    struct plain_pool *pool = AS(plain_pool, *out_operation);
    pool->shape = *shape;
    pool->P = pool_output_height(shape);
    pool->Q = pool_output_width(shape);
    return 0;
}

static void plain_sgd(void *state, const struct sgd_rule *rule, float *restrict weights,
                      float *restrict velocity, const float *restrict gradient, size_t count)
{
    (void)state;
    const struct sgd_rule r = *rule;
    for (size_t i = 0; i < count; i++) {
        const float step = gradient[i] + r.weight_decay * weights[i];
        velocity[i] = r.momentum * velocity[i] + step;
        weights[i] -= r.lr * (r.is_nesterov ? step + r.momentum * velocity[i] : velocity[i]);
    }
}

static void plain_adam(void *state, const struct adam_rule *rule, float *restrict weights,
                       float *restrict first, float *restrict second,
                       const float *restrict gradient, size_t count)
{
    (void)state;
    const struct adam_rule r = *rule;
    for (size_t i = 0; i < count; i++) {
        const float g = gradient[i] + r.weight_decay * weights[i];
        first[i] = r.beta1 * first[i] + (1 - r.beta1) * g;
        second[i] = r.beta2 * second[i] + (1 - r.beta2) * g * g;
        weights[i] = r.shrink * weights[i] -
                     r.lr * first[i] / (r.second_scale * sqrtf(second[i]) + r.epsilon);
    }
}

static void plain_axpy(void *state, float a, const float *restrict x, float *restrict y,
                       size_t count)
{
    (void)state;
    for (size_t i = 0; i < count; i++)
        y[i] += a * x[i];
}

static void plain_scale(void *state, float a, float *x, size_t count)
{
    (void)state;
    for (size_t i = 0; i < count; i++)
        x[i] *= a;
}

static void plain_exp(void *state, float *x, size_t count)
{
    (void)state;
    for (size_t i = 0; i < count; i++)
        x[i] = expf(x[i]);
}

const struct kernel_ops kernel_plain = {
    .name = "plain",
    .open_dense = plain_open_dense,
    .open_conv = plain_open_conv,
    .open_pool = plain_open_pool,
    .open_activation = plain_open_activation,
    .open_norm = plain_open_norm,
    .open_dropout = plain_open_dropout,
    .open_embedding = plain_open_embedding,
    .open_sequence_conv = plain_open_sequence_conv,
    .open_recurrent = plain_open_recurrent,
    .sgd = plain_sgd,
    .adam = plain_adam,
    .axpy = plain_axpy,
    .scale = plain_scale,
    .exp = plain_exp,
};
