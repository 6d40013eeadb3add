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

/* Casting the first member back to the struct around it. */
#define AS(type, operation) ((struct type *)(void *)(operation))

static void plain_free(struct operation *operation)
{
    free(operation);
}

static struct operation *
plain_new(size_t size, const char *description,
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

/* One kernel element joins one output row to one input row: output[q] meets input[q], both counted
 * from these offsets, for `count` elements. */
struct row_pair {
    size_t weight, output, input;
    uint32_t count; /* 0: the element lies in the padding there */
};

static struct row_pair pair_rows(const struct conv_shape *s, uint32_t k, uint32_t c, uint32_t r,
                                 uint32_t p)
{
    const uint32_t R = s->kernel, column = r % R;
    const uint32_t P = conv_output_size(s, s->height), Q = conv_output_size(s, s->width);
    const uint32_t row = p + r / R; /* of the padded input */
    if (row < s->pad || row >= s->pad + s->height)
        return (struct row_pair){.count = 0};
    const uint32_t begin = column < s->pad ? s->pad - column : 0;
    const uint32_t last = s->width + s->pad - column, end = last < Q ? last : Q;
    return (struct row_pair){
        .weight = ((size_t)k * s->channels_in + c) * R * R + r,
        .output = ((size_t)k * P + p) * Q + begin,
        .input = ((size_t)c * s->height + row - s->pad) * s->width + begin + column - s->pad,
        .count = end > begin ? end - begin : 0,
    };
}

static void visit_forward(const struct operation_tensors *image, struct row_pair pair)
{
    const float weight = image->weights[pair.weight];
    for (uint32_t q = 0; q < pair.count; q++)
        image->output[pair.output + q] += weight * image->input[pair.input + q];
}

static void visit_backward(const struct operation_tensors *image, struct row_pair pair)
{
    const float weight = image->weights[pair.weight];
    const float *gradient = image->output_gradient + pair.output;
    float sum = 0;
    for (uint32_t q = 0; q < pair.count; q++)
        sum += gradient[q] * image->input[pair.input + q];
    image->weights_gradient[pair.weight] += sum;
    for (uint32_t q = 0; image->input_gradient && q < pair.count; q++)
        image->input_gradient[pair.input + q] += weight * gradient[q];
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
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_conv), "conv", conv_forward,
                               options->is_training ? conv_backward : NULL);
    AS(plain_conv, *out_operation)->shape = *shape;
    AS(plain_conv, *out_operation)->needs_input_gradient = options->needs_input_gradient;
    return 0;
}

struct plain_pool {
    struct operation operation;
    struct pool_shape shape;
};

/* The window's element that holds its maximum, the first of equals. */
static size_t window_largest(const float *input, uint32_t width, uint32_t size)
{
    size_t best = 0;
    for (uint32_t y = 0; y < size; y++)
        for (uint32_t x = 0; x < size; x++)
            if (input[(size_t)y * width + x] > input[best])
                best = (size_t)y * width + x;
    return best;
}

static float window_mean(const float *input, uint32_t width, uint32_t size)
{
    float sum = 0;
    for (uint32_t y = 0; y < size; y++)
        for (uint32_t x = 0; x < size; x++)
            sum += input[(size_t)y * width + x];
    return sum / (float)(size * size);
}

static void pool_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct pool_shape s = AS(plain_pool, operation)->shape;
    const uint32_t P = s.height / s.size, Q = s.width / s.size;
    for (size_t plane = 0; plane < (size_t)s.batch * s.channels; plane++)
        for (uint32_t p = 0; p < P; p++)
            for (uint32_t q = 0; q < Q; q++) {
                const float *window = t->input + plane * s.height * s.width +
                                      (size_t)p * s.size * s.width + (size_t)q * s.size;
                t->output[(plane * P + p) * Q + q] =
                    s.kind == POOL_MAX ? window[window_largest(window, s.width, s.size)]
                                       : window_mean(window, s.width, s.size);
            }
}

static void pool_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct pool_shape s = AS(plain_pool, operation)->shape;
    const uint32_t P = s.height / s.size, Q = s.width / s.size;
    const float share = 1.0F / (float)(s.size * s.size);
    memset(t->input_gradient, 0, sizeof(float) * s.batch * s.channels * s.height * s.width);
    for (size_t plane = 0; plane < (size_t)s.batch * s.channels; plane++)
        for (uint32_t p = 0; p < P; p++)
            for (uint32_t q = 0; q < Q; q++) {
                const size_t window =
                    plane * s.height * s.width + (size_t)p * s.size * s.width + (size_t)q * s.size;
                const float gradient = t->output_gradient[(plane * P + p) * Q + q];
                if (s.kind == POOL_MAX) {
                    const size_t best = window_largest(t->input + window, s.width, s.size);
                    t->input_gradient[window + best] = gradient;
                    continue;
                }
                for (uint32_t y = 0; y < s.size; y++)
                    for (uint32_t x = 0; x < s.size; x++)
                        t->input_gradient[window + (size_t)y * s.width + x] = gradient * share;
            }
}

static int plain_open_pool(void *state, const struct pool_shape *shape,
                           const struct operation_options *options,
                           struct operation **out_operation, struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_pool), "pool", pool_forward,
                               options->is_training ? pool_backward : NULL);
    AS(plain_pool, *out_operation)->shape = *shape;
    return 0;
}

struct plain_activation {
    struct operation operation;
    struct activation_shape shape;
};

static void activation_forward(struct operation *operation, const struct operation_tensors *t)
{
    const struct activation_shape s = AS(plain_activation, operation)->shape;
    switch (s.kind) {
    case ACTIVATION_RELU:
        for (size_t i = 0; i < s.count; i++)
            t->output[i] = t->input[i] > 0 ? t->input[i] : 0;
        return;
    case ACTIVATION_TANH:
        for (size_t i = 0; i < s.count; i++)
            t->output[i] = tanhf(t->input[i]);
        return;
    case ACTIVATION_SIGMOID:
        for (size_t i = 0; i < s.count; i++)
            t->output[i] = 1 / (1 + expf(-t->input[i]));
        return;
    case ACTIVATION_KIND_COUNT:
        break;
    }
    ASSERT(false);
}

/* From the output alone, so that an activation may overwrite its input. */
static void activation_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct activation_shape s = AS(plain_activation, operation)->shape;
    const float *y = t->output, *dy = t->output_gradient;
    switch (s.kind) {
    case ACTIVATION_RELU:
        for (size_t i = 0; i < s.count; i++)
            t->input_gradient[i] = y[i] > 0 ? dy[i] : 0;
        return;
    case ACTIVATION_TANH:
        for (size_t i = 0; i < s.count; i++)
            t->input_gradient[i] = dy[i] * (1 - y[i] * y[i]);
        return;
    case ACTIVATION_SIGMOID:
        for (size_t i = 0; i < s.count; i++)
            t->input_gradient[i] = dy[i] * y[i] * (1 - y[i]);
        return;
    case ACTIVATION_KIND_COUNT:
        break;
    }
    ASSERT(false);
}

static int plain_open_activation(void *state, const struct activation_shape *shape,
                                 const struct operation_options *options,
                                 struct operation **out_operation, struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_activation), "activation", activation_forward,
                               options->is_training ? activation_backward : NULL);
    AS(plain_activation, *out_operation)->shape = *shape;
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

const struct kernel_ops kernel_plain = {
    .name = "plain",
    .open_dense = plain_open_dense,
    .open_conv = plain_open_conv,
    .open_pool = plain_open_pool,
    .open_activation = plain_open_activation,
    .sgd = plain_sgd,
    .axpy = plain_axpy,
    .scale = plain_scale,
};
