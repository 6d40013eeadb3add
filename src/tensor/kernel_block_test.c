/*
 * covers kernel_simd.c, kernel_simd_dense.c, kernel_simd_norm.c, kernel_simd_base.c
 * covers kernel_simd_avx2.c, kernel_simd_avx512.c
 *
 * Every instruction set this processor has, against plain: dense layers of awkward sizes and with
 * many zeros, norms and ReLU, and convolution with pooling and ReLU in one against the three one
 * after the other.
 */
#include "base/random.h"
#include "tensor/kernel_simd_internal.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 128 }; /* for running statistics */

static const struct operation_options training = {.is_training = true,
                                                  .needs_input_gradient = true};

static float *floats(size_t count, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    float *values = malloc(sizeof(float) * (count + 1));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = seed ? (float)random_normal(&random) : NAN;
    return values;
}

static void assert_near(const char *isa, const char *what, const float *actual,
                        const float *expected, size_t count)
{
    double scale = 1e-3;
    for (size_t i = 0; i < count; i++)
        scale = fmax(scale, fabs((double)expected[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)(actual[i] - expected[i])) <= 2e-5 * scale))
            fail_msg("%s: %s[%zu] is %g, plain has %g", isa, what, i, (double)actual[i],
                     (double)expected[i]);
}

struct sizes {
    size_t input, weights, bias, output;
};

/* The same inputs for all; outputs are poisoned. */
static struct operation_tensors tensors_new(struct sizes sizes)
{
    return (struct operation_tensors){
        .input = floats(sizes.input, 1),
        .weights = floats(sizes.weights, 2),
        .bias = floats(sizes.bias, 3),
        .output = floats(sizes.output, 0),
        .output_gradient = floats(sizes.output, 4),
        .input_gradient = floats(sizes.input, 0),
        .weights_gradient = floats(sizes.weights, 0),
        .bias_gradient = floats(sizes.bias, 0),
    };
}

static void tensors_free(struct operation_tensors *t)
{
    union {
        const float *borrowed;
        float *owned;
    } const inputs[] = {{t->input}, {t->weights}, {t->bias}, {t->output_gradient}};
    for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++)
        free(inputs[i].owned);
    free(t->output);
    free(t->input_gradient);
    free(t->weights_gradient);
    free(t->bias_gradient);
}

static void assert_same(const char *isa, const struct operation_tensors *actual,
                        const struct operation_tensors *expected, struct sizes sizes)
{
    assert_near(isa, "output", actual->output, expected->output, sizes.output);
    assert_near(isa, "weights_gradient", actual->weights_gradient, expected->weights_gradient,
                sizes.weights);
    assert_near(isa, "bias_gradient", actual->bias_gradient, expected->bias_gradient, sizes.bias);
    assert_near(isa, "input_gradient", actual->input_gradient, expected->input_gradient,
                sizes.input);
}

/* Up to three; returns how many this processor can run. */
static int isas_here(const struct simd_isa *isas[3])
{
    int count = 0;
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        isas[count++] = &simd_isa_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        isas[count++] = &simd_isa_avx2;
#endif
    isas[count++] = &simd_isa_base;
    return count;
}

static void compare_dense(const struct dense_shape *s)
{
    const struct sizes sizes = {(size_t)s->batch * s->inputs, (size_t)s->inputs * s->outputs,
                                s->outputs, (size_t)s->batch * s->outputs};
    struct error error;
    AUTO(operation) struct operation *plain = NULL;
    ASSERT_OK(kernel_plain.open_dense(NULL, s, &training, &plain, &error));
    struct operation_tensors expected = tensors_new(sizes);
    operation_forward(plain, &expected);
    operation_backward(plain, &expected);
    const struct simd_isa *isas[3];
    const int count = isas_here(isas);
    for (int i = 0; i < count; i++) {
        const struct simd_dense dense = {.isa = isas[i], .shape = *s, .needs_input_gradient = true};
        struct operation_tensors actual = tensors_new(sizes);
        isas[i]->dense_forward(&dense, &actual);
        isas[i]->dense_backward(&dense, &actual);
        assert_same(isas[i]->name, &actual, &expected, sizes);
        tensors_free(&actual);
    }
    tensors_free(&expected);
}

TEST(dense_layers_of_any_size_match_plain)
{
    compare_dense(&(struct dense_shape){1, 1, 1});
    compare_dense(&(struct dense_shape){5, 3, 17});
    compare_dense(&(struct dense_shape){7, 16, 4});
    compare_dense(&(struct dense_shape){33, 84, 10});
    compare_dense(&(struct dense_shape){32, 401, 121});
}

/* Zeros in `share` of the places, among them whole rows; two numbers and nothing else where that
 * is 1. */
static struct operation_tensors tensors_with_zeros(const struct dense_shape *s, struct sizes sizes,
                                                   double share)
{
    struct operation_tensors t = tensors_new(sizes);
    struct random random;
    random_init(&random, 5);
    float *input = floats(sizes.input, 1), *gradient = floats(sizes.output, 4);
    for (size_t i = 0; i < sizes.input; i++)
        if (i / s->inputs == 1 || random_unit(&random) < share)
            input[i] = 0;
    for (size_t i = 0; i < sizes.output; i++)
        if (i / s->outputs == 2 || random_unit(&random) < share)
            gradient[i] = i % 2 ? 0 : -0.0F;
    input[sizes.input - 1] = 3;
    gradient[sizes.output - 1] = -2;
    struct operation_tensors old = {.input = t.input, .output_gradient = t.output_gradient};
    tensors_free(&old);
    t.input = input;
    t.output_gradient = gradient;
    return t;
}

static void compare_with_zeros(const struct dense_shape *s, double share)
{
    const struct sizes sizes = {(size_t)s->batch * s->inputs, (size_t)s->inputs * s->outputs,
                                s->outputs, (size_t)s->batch * s->outputs};
    struct error error;
    AUTO(operation) struct operation *plain = NULL;
    ASSERT_OK(kernel_plain.open_dense(NULL, s, &training, &plain, &error));
    struct operation_tensors expected = tensors_with_zeros(s, sizes, share);
    operation_forward(plain, &expected);
    operation_backward(plain, &expected);
    const struct simd_isa *isas[3];
    const int count = isas_here(isas);
    for (int i = 0; i < count; i++) {
        struct simd_state state = {.isa = isas[i]};
        AUTO(operation) struct operation *operation = NULL;
        ASSERT_OK(kernel_simd.open_dense(&state, s, &training, &operation, &error));
        const struct simd_dense *dense = AS(simd_dense, operation);
        struct operation_tensors actual = tensors_with_zeros(s, sizes, share);
        operation_forward(operation, &actual);
        operation_backward(operation, &actual);
        assert_same(isas[i]->name, &actual, &expected, sizes);
        /* The room holds what was listed last: nothing where zeros were not passed over. */
        bool has_listed = false;
        for (size_t row = 0; row < SPARSE_ROWS; row++)
            has_listed |= dense->sparse.counts[row] > 0;
        assert_int_equal(has_listed, share > 0.5);
        tensors_free(&actual);
    }
    tensors_free(&expected);
}

TEST(dense_layers_pass_over_zeros_where_there_are_many)
{
    compare_with_zeros(&(struct dense_shape){16, 16, 16}, 0.6);
    compare_with_zeros(&(struct dense_shape){33, 150, 300}, 0.7);
    compare_with_zeros(&(struct dense_shape){270, 39, 65}, 0.6);
    compare_with_zeros(&(struct dense_shape){65, 257, 130}, 0.9);
    compare_with_zeros(&(struct dense_shape){40, 130, 129}, 1);
    compare_with_zeros(&(struct dense_shape){40, 130, 129}, 0.1);
    compare_with_zeros(&(struct dense_shape){64, 784, 40}, 0);
}

/* Opens what is compared with a set's table and state. */
typedef int (*open_function)(const struct kernel_ops *ops, void *state, const void *shape,
                             struct operation **out_operation, struct error *error);

static int open_norm(const struct kernel_ops *ops, void *state, const void *shape,
                     struct operation **out_operation, struct error *error)
{
    return ops->open_norm(state, shape, &training, out_operation, error);
}

static int open_activation(const struct kernel_ops *ops, void *state, const void *shape,
                           struct operation **out_operation, struct error *error)
{
    return ops->open_activation(state, shape, &training, out_operation, error);
}

/* Twice: the second round meets what the first left. */
static void run_twice(struct operation *operation, struct operation_tensors *t, float *running)
{
    t->running_mean = running;
    t->running_variance = running + ROOM;
    for (int round = 0; round < 2; round++) {
        operation_forward(operation, t);
        operation_backward(operation, t);
    }
}

static void compare_rows(open_function open, const void *shape, struct sizes sizes)
{
    struct error error;
    AUTO(operation) struct operation *plain = NULL;
    ASSERT_OK(open(&kernel_plain, NULL, shape, &plain, &error));
    struct operation_tensors expected = tensors_new(sizes);
    float expected_running[2 * ROOM] = {0};
    run_twice(plain, &expected, expected_running);
    const struct simd_isa *isas[3];
    const int count = isas_here(isas);
    for (int i = 0; i < count; i++) {
        struct simd_state state = {.isa = isas[i]};
        AUTO(operation) struct operation *operation = NULL;
        ASSERT_OK(open(&kernel_simd, &state, shape, &operation, &error));
        assert_true(strncmp(operation_describe(operation), "simd:", 5) == 0);
        struct operation_tensors actual = tensors_new(sizes);
        float running[2 * ROOM] = {0};
        run_twice(operation, &actual, running);
        assert_same(isas[i]->name, &actual, &expected, sizes);
        assert_near(isas[i]->name, "running", running, expected_running, (size_t)2 * ROOM);
        tensors_free(&actual);
    }
    tensors_free(&expected);
}

TEST(norms_of_rows_and_relu_match_plain)
{
    const struct norm_shape batches[] = {{NORM_BATCH, 1, 1, 1, 0, 0, 0},
                                         {NORM_BATCH, 130, 67, 1, 0, 0, 0},
                                         {NORM_BATCH, 4096, 64, 1, 0, 0, 0}};
    for (size_t i = 0; i < sizeof(batches) / sizeof(*batches); i++) {
        const size_t F = batches[i].features, all = F * batches[i].outer;
        compare_rows(open_norm, &batches[i], (struct sizes){all, F, F, all});
    }
    const struct norm_shape locals[] = {{NORM_LOCAL, 90, 64, 1, 9, 0.5F, 0.75F},
                                        {NORM_LOCAL, 7, 3, 1, 9, 2, 0.75F},
                                        {NORM_LOCAL, 11, 37, 1, 1, 2, 0.75F}};
    for (size_t i = 0; i < sizeof(locals) / sizeof(*locals); i++) {
        const size_t all = (size_t)locals[i].features * locals[i].outer;
        compare_rows(open_norm, &locals[i], (struct sizes){all, 0, 0, all});
    }
    const struct activation_shape relus[] = {{ACTIVATION_RELU, 3}, {ACTIVATION_RELU, 1037}};
    for (size_t i = 0; i < 2; i++)
        compare_rows(open_activation, &relus[i],
                     (struct sizes){relus[i].count, 0, 0, relus[i].count});
}

static void plain_block(const struct conv_shape *s, struct operation_tensors *t)
{
    struct error error;
    const uint32_t P = conv_output_size(s, s->height), Q = conv_output_size(s, s->width);
    const size_t conv_count = (size_t)s->batch * s->channels_out * P * Q;
    const struct pool_shape pool_shape = {POOL_MAX, s->batch, s->channels_out, P,    Q, 2, 2,
                                          2,        2,        false,           false};
    const struct activation_shape relu_shape = {ACTIVATION_RELU, conv_count / 4};
    AUTO(operation) struct operation *conv = NULL;
    AUTO(operation) struct operation *pool = NULL;
    AUTO(operation) struct operation *relu = NULL;
    struct conv_shape by_one = *s;
    by_one.stride = 1;
    ASSERT_OK(kernel_plain.open_conv(NULL, &by_one, &training, &conv, &error));
    ASSERT_OK(kernel_plain.open_pool(NULL, &pool_shape, &training, &pool, &error));
    ASSERT_OK(kernel_plain.open_activation(NULL, &relu_shape, &training, &relu, &error));
    float *conv_output = floats(conv_count, 0), *conv_gradient = floats(conv_count, 0);
    float *relu_gradient = floats(conv_count / 4, 0);
    struct operation_tensors conv_tensors = *t;
    conv_tensors.output = conv_output;
    conv_tensors.output_gradient = conv_gradient;
    const struct operation_tensors pool_tensors = {.input = conv_output,
                                                   .output = t->output,
                                                   .output_gradient = relu_gradient,
                                                   .input_gradient = conv_gradient};
    const struct operation_tensors relu_tensors = {.input = t->output,
                                                   .output = t->output,
                                                   .output_gradient = t->output_gradient,
                                                   .input_gradient = relu_gradient};
    operation_forward(conv, &conv_tensors);
    operation_forward(pool, &pool_tensors);
    operation_forward(relu, &relu_tensors);
    operation_backward(relu, &relu_tensors);
    operation_backward(pool, &pool_tensors);
    operation_backward(conv, &conv_tensors);
    free(conv_output);
    free(conv_gradient);
    free(relu_gradient);
}

static void compare_block(const struct conv_shape *s)
{
    const uint32_t P = conv_output_size(s, s->height), Q = conv_output_size(s, s->width);
    const struct sizes sizes = {(size_t)s->batch * s->channels_in * s->height * s->width,
                                (size_t)s->channels_out * s->channels_in * s->kernel * s->kernel,
                                s->channels_out,
                                (size_t)s->batch * s->channels_out * (P / 2) * (Q / 2)};
    struct operation_tensors expected = tensors_new(sizes);
    plain_block(s, &expected);
    const struct simd_isa *isas[3];
    const int count = isas_here(isas);
    for (int i = 0; i < count; i++) {
        struct error error;
        struct simd_state state = {.isa = isas[i]};
        const struct conv_block_shape shape = {*s};
        AUTO(operation) struct operation *block = NULL;
        ASSERT_OK(kernel_simd.open_conv_block(&state, &shape, &training, &block, &error));
        struct operation_tensors actual = tensors_new(sizes);
        for (int round = 0; round < 2; round++) { /* the second meets what the first left */
            operation_forward(block, &actual);
            operation_backward(block, &actual);
            assert_same(isas[i]->name, &actual, &expected, sizes);
        }
        tensors_free(&actual);
    }
    tensors_free(&expected);
}

TEST(convolution_pooling_and_relu_in_one_match_plain)
{
    compare_block(&(struct conv_shape){32, 1, 28, 28, 6, 5, 2});
    compare_block(&(struct conv_shape){19, 6, 14, 14, 16, 5, 0});
    compare_block(&(struct conv_shape){1, 3, 8, 6, 5, 3, 1});
    compare_block(&(struct conv_shape){16, 2, 10, 12, 7, 7, 0});
    compare_block(&(struct conv_shape){3, 2, 4, 4, 1, 1, 0});
}

TEST(blocks_that_cannot_be_are_refused)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("simd", &set, &error));
    assert_true(kernel_set_has_conv_block(set));
    struct operation *none = NULL;
    const struct conv_block_shape odd = {{1, 1, 5, 5, 1, 3, 1}}, even = {{1, 1, 5, 5, 1, 2, 0}};
    ASSERT_FAILS(operation_open_conv_block(set, &odd, &training, &none, &error), ERROR_INVALID);
    ASSERT_FAILS(operation_open_conv_block(set, &even, &training, &none, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_layers_of_any_size_match_plain),
        cmocka_unit_test(dense_layers_pass_over_zeros_where_there_are_many),
        cmocka_unit_test(norms_of_rows_and_relu_match_plain),
        cmocka_unit_test(convolution_pooling_and_relu_in_one_match_plain),
        cmocka_unit_test(blocks_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
