/* Kernel plain: activations and dropout, element by element. */
#include "base/assert.h"
#include "base/random.h"
#include "tensor/kernel_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The normal distribution's share below x. */
static float normal_share(float x)
{
    return 0.5F * (1 + erff(x * 0.7071067812F));
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
    case ACTIVATION_GELU:
        for (size_t i = 0; i < s.count; i++)
            t->output[i] = t->input[i] * normal_share(t->input[i]);
        return;
    case ACTIVATION_KIND_COUNT:
        break;
    }
    ASSERT(false);
}

/* From the output alone but for gelu, so that the others may overwrite their input. */
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
    case ACTIVATION_GELU:
        for (size_t i = 0; i < s.count; i++) {
            const float x = t->input[i], density = 0.3989422804F * expf(-x * x / 2);
            t->input_gradient[i] = dy[i] * (normal_share(x) + x * density);
        }
        return;
    case ACTIVATION_KIND_COUNT:
        break;
    }
    ASSERT(false);
}

int plain_open_activation(void *state, const struct activation_shape *shape,
                          const struct operation_options *options, struct operation **out_operation,
                          struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_activation), "activation", activation_forward,
                               options->is_training ? activation_backward : NULL);
    AS(plain_activation, *out_operation)->shape = *shape;
    return 0;
}

struct plain_dropout {
    struct operation operation;
    struct dropout_shape shape;
    uint64_t seed; /* of the last forward */
};

/* Calls for the same seed give the same elements, so that backward needs no memory of them. */
static void dropout_apply(const struct dropout_shape *s, uint64_t seed, const float *from,
                          float *to)
{
    enum { PARTS = 4 }; /* draws of 16 bits from one of 64 */
    struct random random;
    random_init(&random, seed);
    const uint64_t limit = (uint64_t)((double)s->rate * 65536);
    const float scale = (float)(1 / (1 - (double)limit / 65536));
    uint64_t bits = 0;
    for (size_t i = 0; i < s->count; i++) {
        bits = i % PARTS == 0 ? random_u64(&random) : bits >> 16;
        to[i] = (bits & 0xffff) < limit ? 0 : from[i] * scale;
    }
}

static void dropout_forward(struct operation *operation, const struct operation_tensors *t)
{
    struct plain_dropout *dropout = AS(plain_dropout, operation);
    if (t->is_inference || !operation->backward) {
        if (t->output != t->input)
            memcpy(t->output, t->input, sizeof(float) * dropout->shape.count);
        return;
    }
    dropout->seed = t->seed;
    dropout_apply(&dropout->shape, t->seed, t->input, t->output);
}

static void dropout_backward(struct operation *operation, const struct operation_tensors *t)
{
    const struct plain_dropout *dropout = AS(plain_dropout, operation);
    dropout_apply(&dropout->shape, dropout->seed, t->output_gradient, t->input_gradient);
}

int plain_open_dropout(void *state, const struct dropout_shape *shape,
                       const struct operation_options *options, struct operation **out_operation,
                       struct error *error)
{
    (void)state;
    (void)error;
    *out_operation = plain_new(sizeof(struct plain_dropout), "dropout", dropout_forward,
                               options->is_training ? dropout_backward : NULL);
    AS(plain_dropout, *out_operation)->shape = *shape;
    return 0;
}
