/*
 * covers kernel_sequence.c, kernel_recurrent.c, kernel_plain_sequence.c, kernel_plain_norm.c
 * covers kernel_plain_activation.c
 *
 * Sequence operations and norms of every set against plain, at sizes that fill no vector evenly;
 * plain against what the definitions say of small cases.
 */
#include "base/random.h"
#include "tensor/kernel.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 17 };

/* Room for any operation here; gradients are poisoned, so that whoever adds is found out. */
struct bench {
    float input[ROOM], weights[ROOM], bias[ROOM], recurrent[ROOM], recurrent_bias[ROOM];
    float output[ROOM], output_gradient[ROOM], input_gradient[ROOM], weights_gradient[ROOM];
    float bias_gradient[ROOM], recurrent_gradient[ROOM], recurrent_bias_gradient[ROOM];
    float mean[ROOM], variance[ROOM];
};

static struct operation_tensors tensors_of(struct bench *b)
{
    return (struct operation_tensors){
        .input = b->input,
        .weights = b->weights,
        .bias = b->bias,
        .output = b->output,
        .output_gradient = b->output_gradient,
        .input_gradient = b->input_gradient,
        .weights_gradient = b->weights_gradient,
        .bias_gradient = b->bias_gradient,
        .recurrent_weights = b->recurrent,
        .recurrent_bias = b->recurrent_bias,
        .recurrent_weights_gradient = b->recurrent_gradient,
        .recurrent_bias_gradient = b->recurrent_bias_gradient,
        .running_mean = b->mean,
        .running_variance = b->variance,
    };
}

static void fill(float *values, uint64_t seed, double scale)
{
    struct random random;
    random_init(&random, seed);
    for (size_t i = 0; i < ROOM; i++)
        values[i] = (float)(scale * random_normal(&random));
}

static struct bench *bench_new(void)
{
    struct bench *b = malloc(sizeof(*b));
    assert_non_null(b);
    float *const given[] = {b->input,     b->weights,        b->bias,
                            b->recurrent, b->recurrent_bias, b->output_gradient};
    for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
        fill(given[i], i + 1, 0.3);
    float *const results[] = {b->output,        b->input_gradient,     b->weights_gradient,
                              b->bias_gradient, b->recurrent_gradient, b->recurrent_bias_gradient};
    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
        for (size_t k = 0; k < ROOM; k++)
            results[i][k] = NAN;
    for (size_t i = 0; i < ROOM; i++) {
        b->mean[i] = 0;
        b->variance[i] = 1;
    }
    return b;
}

static void run(struct operation *operation, struct bench *b)
{
    const struct operation_tensors tensors = tensors_of(b);
    operation_forward(operation, &tensors);
    operation_backward(operation, &tensors);
}

/* What neither wrote is still NAN in both. */
static void assert_same(const char *what, const float *actual, const float *expected)
{
    double scale = 1e-3;
    for (size_t i = 0; i < ROOM; i++)
        if (isfinite(expected[i]))
            scale = fmax(scale, fabs((double)expected[i]));
    for (size_t i = 0; i < ROOM; i++) {
        if (isnan(expected[i]) && isnan(actual[i]))
            continue;
        if (!(fabs((double)(actual[i] - expected[i])) <= 5e-5 * scale))
            fail_msg("%s[%zu] is %g, plain has %g", what, i, (double)actual[i],
                     (double)expected[i]);
    }
}

static void assert_benches_equal(const struct bench *actual, const struct bench *expected)
{
    assert_same("output", actual->output, expected->output);
    assert_same("input_gradient", actual->input_gradient, expected->input_gradient);
    assert_same("weights_gradient", actual->weights_gradient, expected->weights_gradient);
    assert_same("bias_gradient", actual->bias_gradient, expected->bias_gradient);
    assert_same("recurrent_gradient", actual->recurrent_gradient, expected->recurrent_gradient);
    assert_same("recurrent_bias_gradient", actual->recurrent_bias_gradient,
                expected->recurrent_bias_gradient);
    assert_same("mean", actual->mean, expected->mean);
    assert_same("variance", actual->variance, expected->variance);
}

static const struct operation_options training = {.is_training = true,
                                                  .needs_input_gradient = true};

typedef int (*open_function)(struct kernel_set *set, const void *shape,
                             struct operation **out_operation, struct error *error);

static int open_recurrent(struct kernel_set *set, const void *shape,
                          struct operation **out_operation, struct error *error)
{
    return operation_open_recurrent(set, shape, &training, out_operation, error);
}

static int open_sequence_conv(struct kernel_set *set, const void *shape,
                              struct operation **out_operation, struct error *error)
{
    return operation_open_sequence_conv(set, shape, &training, out_operation, error);
}

static int open_norm(struct kernel_set *set, const void *shape, struct operation **out_operation,
                     struct error *error)
{
    return operation_open_norm(set, shape, &training, out_operation, error);
}

static int open_activation(struct kernel_set *set, const void *shape,
                           struct operation **out_operation, struct error *error)
{
    return operation_open_activation(set, shape, &training, out_operation, error);
}

static void compare_sets(open_function open, const void *shape)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *plain = NULL;
    ASSERT_OK(kernel_set_open("plain", &plain, &error));
    AUTO(operation) struct operation *reference = NULL;
    ASSERT_OK(open(plain, shape, &reference, &error));
    struct bench *expected = bench_new();
    run(reference, expected);
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        if (kernel_set_open(*name, &set, &error) < 0) {
            print_message("left out: %s\n", error.message);
            continue;
        }
        AUTO(operation) struct operation *operation = NULL;
        ASSERT_OK(open(set, shape, &operation, &error));
        struct bench *actual = bench_new();
        run(operation, actual);
        assert_benches_equal(actual, expected);
        free(actual);
    }
    free(expected);
}

TEST(every_set_computes_lstm_and_gru_as_plain_does)
{
    for (int kind = 0; kind < RECURRENT_KIND_COUNT; kind++) {
        const enum recurrent_kind k = (enum recurrent_kind)kind;
        compare_sets(open_recurrent, &(struct recurrent_shape){k, 1, 1, 1, 1, false});
        compare_sets(open_recurrent, &(struct recurrent_shape){k, 3, 7, 5, 19, true});
        compare_sets(open_recurrent, &(struct recurrent_shape){k, 17, 4, 33, 40, false});
    }
}

TEST(every_set_convolves_over_time_as_plain_does)
{
    compare_sets(open_sequence_conv, &(struct sequence_conv_shape){1, 1, 1, 1, 1, 0});
    compare_sets(open_sequence_conv, &(struct sequence_conv_shape){3, 9, 5, 7, 3, 1});
    compare_sets(open_sequence_conv, &(struct sequence_conv_shape){5, 33, 20, 31, 5, 4});
}

TEST(every_set_norms_as_plain_does)
{
    compare_sets(open_norm, &(struct norm_shape){NORM_BATCH, 5, 7, 9, 0, 0, 0});
    compare_sets(open_norm, &(struct norm_shape){NORM_BATCH, 130, 67, 1, 0, 0, 0});
    compare_sets(open_norm, &(struct norm_shape){NORM_LAYER, 11, 70, 1, 0, 0, 0});
    compare_sets(open_norm, &(struct norm_shape){NORM_LOCAL, 4, 13, 6, 5, 0.5F, 0.75F});
    compare_sets(open_norm, &(struct norm_shape){NORM_LOCAL, 90, 64, 1, 9, 0.5F, 0.75F});
    compare_sets(open_norm, &(struct norm_shape){NORM_LOCAL, 9, 5, 1, 9, 2, 0.6F});
}

TEST(every_set_activates_as_plain_does)
{
    for (int kind = 0; kind < ACTIVATION_KIND_COUNT; kind++)
        compare_sets(open_activation, &(struct activation_shape){(enum activation_kind)kind, 1037});
}

/* One unit, one step, all by hand: i f g o from 2 x + 1 h with h = 0. */
TEST(an_lstm_of_one_unit_is_what_the_book_says)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    AUTO(operation) struct operation *lstm = NULL;
    ASSERT_OK(kernel_set_open("plain", &set, &error));
    const struct recurrent_shape shape = {RECURRENT_LSTM, 1, 2, 1, 1, true};
    ASSERT_OK(operation_open_recurrent(set, &shape, &training, &lstm, &error));
    const float input[2] = {0.5F, -1}, weights[4] = {1, 2, 3, 4},
                recurrent[4] = {.1F, .2F, .3F, .4F};
    const float bias[4] = {0, 0.5F, 0, 0}, other[4] = {0, 0.5F, 0, 0};
    float output[2];
    const struct operation_tensors tensors = {.input = input,
                                              .weights = weights,
                                              .bias = bias,
                                              .recurrent_weights = recurrent,
                                              .recurrent_bias = other,
                                              .output = output};
    operation_forward(lstm, &tensors);
    double h = 0, c = 0;
    for (int t = 0; t < 2; t++) {
        const double x = (double)input[t];
        const double i = 1 / (1 + exp(-(x + .1 * h))), f = 1 / (1 + exp(-(2 * x + .2 * h + 1)));
        const double g = tanh(3 * x + .3 * h), o = 1 / (1 + exp(-(4 * x + .4 * h)));
        c = f * c + i * g;
        h = o * tanh(c);
        assert_true(fabs((double)output[t] - h) < 1e-6);
    }
}

TEST(an_embedding_looks_up_rows_and_adds_up_their_gradients)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    AUTO(operation) struct operation *embedding = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    const struct embedding_shape shape = {3, 4, 2};
    ASSERT_OK(operation_open_embedding(set, &shape, &training, &embedding, &error));
    const float tokens[3] = {2, 0, 2}, table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const float gradient[6] = {1, 10, 2, 20, 3, 30}, expected[8] = {2, 20, 0, 0, 4, 40, 0, 0};
    float output[6], table_gradient[8];
    const struct operation_tensors tensors = {.input = tokens,
                                              .weights = table,
                                              .output = output,
                                              .output_gradient = gradient,
                                              .weights_gradient = table_gradient};
    operation_forward(embedding, &tensors);
    const float looked_up[6] = {5, 6, 1, 2, 5, 6};
    assert_memory_equal(output, looked_up, sizeof(output));
    operation_backward(embedding, &tensors);
    assert_memory_equal(table_gradient, expected, sizeof(expected));
}

TEST(a_batch_norm_gives_mean_zero_and_deviation_one)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    AUTO(operation) struct operation *norm = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    const struct norm_shape shape = {NORM_BATCH, 4, 1, 1, 0, 0, 0};
    ASSERT_OK(operation_open_norm(set, &shape, &training, &norm, &error));
    const float input[4] = {1, 2, 3, 6}, one = 1, zero = 0;
    float output[4], mean = 0, variance = 1;
    const struct operation_tensors tensors = {.input = input,
                                              .weights = &one,
                                              .bias = &zero,
                                              .output = output,
                                              .running_mean = &mean,
                                              .running_variance = &variance};
    operation_forward(norm, &tensors);
    assert_true(fabs((double)(output[0] + output[1] + output[2] + output[3])) < 1e-5);
    assert_true(fabs((double)output[3] - 3 / sqrt(3.5)) < 1e-4);
    assert_true(fabs((double)mean - 0.3) < 1e-6);                        /* a tenth of 3 */
    assert_true(fabs((double)variance - (0.9 + 0.1 * 14.0 / 3)) < 1e-5); /* 14 / (4 - 1) */
}

TEST(shapes_that_make_no_sense_are_refused)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    struct operation *none = NULL;
    ASSERT_OK(kernel_set_open("plain", &set, &error));
    ASSERT_FAILS(open_recurrent(set, &(struct recurrent_shape){RECURRENT_GRU, 1, 0, 1, 1, true},
                                &none, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(open_norm(set, &(struct norm_shape){NORM_LOCAL, 1, 4, 1, 4, 1, 1}, &none, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(open_norm(set, &(struct norm_shape){NORM_LAYER, 1, 4, 2, 0, 0, 0}, &none, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(
        open_sequence_conv(set, &(struct sequence_conv_shape){1, 3, 1, 1, 4, 0}, &none, &error),
        ERROR_INVALID);
    const struct dropout_shape all = {8, 1};
    ASSERT_FAILS(operation_open_dropout(set, &all, &training, &none, &error), ERROR_INVALID);
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_computes_lstm_and_gru_as_plain_does),
        cmocka_unit_test(every_set_convolves_over_time_as_plain_does),
        cmocka_unit_test(every_set_norms_as_plain_does),
        cmocka_unit_test(every_set_activates_as_plain_does),
        cmocka_unit_test(an_lstm_of_one_unit_is_what_the_book_says),
        cmocka_unit_test(an_embedding_looks_up_rows_and_adds_up_their_gradients),
        cmocka_unit_test(a_batch_norm_gives_mean_zero_and_deviation_one),
        cmocka_unit_test(shapes_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
