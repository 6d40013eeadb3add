/*
 * covers kernel.c, kernel_plain.c, kernel_onednn.c, kernel_onednn_conv.c, onednn_step.c
 *
 * Every set against plain on shapes that fill no vector evenly; plain against finite differences.
 */
#include "base/random.h"
#include "tensor/kernel.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The tensors of one operation, owned. */
struct fixture {
    struct operation *operation;
    size_t input_count, weights_count, bias_count, output_count;
    struct operation_tensors tensors;
    float *input, *weights, *bias, *output_gradient;
};

static float *random_floats(struct random *random, size_t count)
{
    float *values = malloc(sizeof(float) * (count ? count : 1));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)random_normal(random);
    return values;
}

static float *poisoned_floats(size_t count)
{
    float *values = malloc(sizeof(float) * (count ? count : 1));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = NAN; /* whoever adds instead of overwriting is found out */
    return values;
}

static void fixture_init(struct fixture *fixture, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    fixture->input = random_floats(&random, fixture->input_count);
    fixture->weights = random_floats(&random, fixture->weights_count);
    fixture->bias = random_floats(&random, fixture->bias_count);
    fixture->output_gradient = random_floats(&random, fixture->output_count);
    fixture->tensors = (struct operation_tensors){
        .input = fixture->input,
        .weights = fixture->weights,
        .bias = fixture->bias,
        .output = poisoned_floats(fixture->output_count),
        .output_gradient = fixture->output_gradient,
        .input_gradient = poisoned_floats(fixture->input_count),
        .weights_gradient = poisoned_floats(fixture->weights_count),
        .bias_gradient = poisoned_floats(fixture->bias_count),
    };
}

static void fixture_done(struct fixture *fixture)
{
    operation_free(fixture->operation);
    free(fixture->input);
    free(fixture->weights);
    free(fixture->bias);
    free(fixture->output_gradient);
    free(fixture->tensors.output);
    free(fixture->tensors.input_gradient);
    free(fixture->tensors.weights_gradient);
    free(fixture->tensors.bias_gradient);
}

static void assert_near(const char *what, const float *actual, const float *expected, size_t count)
{
    double scale = 1e-3;
    for (size_t i = 0; i < count; i++)
        scale = fmax(scale, fabs((double)expected[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)(actual[i] - expected[i])) <= 2e-5 * scale))
            fail_msg("%s[%zu] is %g, plain has %g", what, i, (double)actual[i],
                     (double)expected[i]);
}

static void assert_same_results(struct fixture *actual, struct fixture *expected)
{
    operation_forward(expected->operation, &expected->tensors);
    operation_forward(actual->operation, &actual->tensors);
    assert_near("output", actual->tensors.output, expected->tensors.output, expected->output_count);
    operation_backward(expected->operation, &expected->tensors);
    operation_backward(actual->operation, &actual->tensors);
    assert_near("input_gradient", actual->tensors.input_gradient, expected->tensors.input_gradient,
                expected->input_count);
    assert_near("weights_gradient", actual->tensors.weights_gradient,
                expected->tensors.weights_gradient, expected->weights_count);
    assert_near("bias_gradient", actual->tensors.bias_gradient, expected->tensors.bias_gradient,
                expected->bias_count);
}

static const struct operation_options training = {.is_training = true,
                                                  .needs_input_gradient = true};

/* Opens one operation of a given set; which one is the caller's. */
typedef void (*open_function)(struct kernel_set *set, const void *shape, struct fixture *fixture);

static void open_dense(struct kernel_set *set, const void *shape, struct fixture *fixture)
{
    const struct dense_shape *s = shape;
    struct error error;
    ASSERT_OK(operation_open_dense(set, s, &training, &fixture->operation, &error));
    fixture->input_count = (size_t)s->batch * s->inputs;
    fixture->weights_count = (size_t)s->inputs * s->outputs;
    fixture->bias_count = s->outputs;
    fixture->output_count = (size_t)s->batch * s->outputs;
}

static void open_conv(struct kernel_set *set, const void *shape, struct fixture *fixture)
{
    const struct conv_shape *s = shape;
    struct error error;
    ASSERT_OK(operation_open_conv(set, s, &training, &fixture->operation, &error));
    fixture->input_count = (size_t)s->batch * s->channels_in * s->height * s->width;
    fixture->weights_count = (size_t)s->channels_out * s->channels_in * s->kernel * s->kernel;
    fixture->bias_count = s->channels_out;
    fixture->output_count = (size_t)s->batch * s->channels_out * conv_output_size(s, s->height) *
                            conv_output_size(s, s->width);
}

static void open_pool(struct kernel_set *set, const void *shape, struct fixture *fixture)
{
    const struct pool_shape *s = shape;
    struct error error;
    ASSERT_OK(operation_open_pool(set, s, &training, &fixture->operation, &error));
    const size_t planes = (size_t)s->batch * s->channels;
    fixture->input_count = planes * s->height * s->width;
    fixture->output_count = planes * pool_output_height(s) * pool_output_width(s);
}

static void open_activation(struct kernel_set *set, const void *shape, struct fixture *fixture)
{
    const struct activation_shape *s = shape;
    struct error error;
    ASSERT_OK(operation_open_activation(set, s, &training, &fixture->operation, &error));
    fixture->input_count = fixture->output_count = s->count;
}

/* The sets that can be opened here, beside plain. A set that cannot is skipped with its reason. */
static void compare_all_sets(open_function open, const void *shapes, size_t shape_size,
                             size_t shape_count)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *plain = NULL;
    ASSERT_OK(kernel_set_open("plain", &plain, &error));
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        if (kernel_set_open(*name, &set, &error) < 0) {
            print_message("left out: %s\n", error.message);
            continue;
        }
        for (size_t i = 0; i < shape_count; i++) {
            const void *shape = (const char *)shapes + i * shape_size;
            struct fixture expected = {0}, actual = {0};
            open(plain, shape, &expected);
            open(set, shape, &actual);
            fixture_init(&expected, i + 1);
            fixture_init(&actual, i + 1);
            assert_same_results(&actual, &expected);
            fixture_done(&expected);
            fixture_done(&actual);
        }
    }
}

TEST(every_set_computes_dense_layers_as_plain_does)
{
    const struct dense_shape shapes[] = {{1, 1, 1},       {3, 7, 5},     {32, 784, 10},
                                         {32, 400, 120},  {33, 120, 84}, {64, 129, 257},
                                         {128, 130, 256}, {17, 84, 10}};
    compare_all_sets(open_dense, shapes, sizeof(*shapes), sizeof(shapes) / sizeof(*shapes));
}

TEST(every_set_computes_convolutions_as_plain_does)
{
    const struct conv_shape shapes[] = {
        {.batch = 2, .channels_in = 1, .height = 28, .width = 28, 6, .kernel = 5, .pad = 2},
        {.batch = 3, .channels_in = 6, .height = 14, .width = 14, 16, .kernel = 5, .pad = 0},
        {.batch = 1, .channels_in = 3, .height = 7, .width = 9, 4, .kernel = 3, .pad = 1},
        {.batch = 17, .channels_in = 2, .height = 5, .width = 5, 3, .kernel = 1, .pad = 0},
        {.batch = 2,
         .channels_in = 4,
         .height = 9,
         .width = 8,
         5,
         .kernel = 3,
         .pad = 1,
         .stride = 2},
        {.batch = 3, .channels_in = 16, .height = 8, .width = 8, 32, .kernel = 1, .stride = 2},
    };
    compare_all_sets(open_conv, shapes, sizeof(*shapes), sizeof(shapes) / sizeof(*shapes));
}

static struct kernel_set *open_plain(void)
{
    struct error error;
    struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("plain", &set, &error));
    return set;
}

/* The same tensors with channels last, and the results turned back. */
static void compare_channels_last(struct kernel_set *set, const struct conv_shape *shape)
{
    struct kernel_set *plain = open_plain();
    struct conv_shape last = *shape;
    last.is_channels_last = true;
    struct fixture expected = {0}, actual = {0};
    open_conv(plain, shape, &expected);
    open_conv(set, &last, &actual);
    fixture_init(&expected, 1);
    fixture_init(&actual, 1);
    const uint32_t in = shape->height * shape->width;
    const uint32_t out =
        conv_output_size(shape, shape->height) * conv_output_size(shape, shape->width);
    kernel_transpose(expected.input, actual.input, shape->batch, shape->channels_in, in);
    kernel_transpose(expected.output_gradient, actual.output_gradient, shape->batch,
                     shape->channels_out, out);
    operation_forward(expected.operation, &expected.tensors);
    operation_backward(expected.operation, &expected.tensors);
    operation_forward(actual.operation, &actual.tensors);
    operation_backward(actual.operation, &actual.tensors);
    float *turned = poisoned_floats(expected.output_count + expected.input_count);
    kernel_transpose(actual.tensors.output, turned, shape->batch, out, shape->channels_out);
    assert_near("output", turned, expected.tensors.output, expected.output_count);
    kernel_transpose(actual.tensors.input_gradient, turned, shape->batch, in, shape->channels_in);
    assert_near("input_gradient", turned, expected.tensors.input_gradient, expected.input_count);
    assert_near("weights_gradient", actual.tensors.weights_gradient,
                expected.tensors.weights_gradient, expected.weights_count);
    assert_near("bias_gradient", actual.tensors.bias_gradient, expected.tensors.bias_gradient,
                expected.bias_count);
    free(turned);
    fixture_done(&expected);
    fixture_done(&actual);
    kernel_set_free(plain);
}

TEST(convolutions_with_channels_last_match_plain)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    if (kernel_set_open("onednn", &set, &error) < 0) {
        print_message("left out: %s\n", error.message);
        return;
    }
    compare_channels_last(set, &(struct conv_shape){2, 3, 9, 8, 16, 5, 2, 1, false});
    compare_channels_last(set, &(struct conv_shape){3, 16, 8, 8, 32, 3, 1, 1, false});
    compare_channels_last(set, &(struct conv_shape){2, 32, 6, 7, 16, 3, 0, 1, false});
    compare_channels_last(set, &(struct conv_shape){2, 16, 8, 8, 32, 3, 1, 2, false});
    compare_channels_last(set, &(struct conv_shape){1, 64, 16, 16, 64, 5, 2, 1, false});
}

TEST(a_transpose_puts_each_number_in_its_place)
{
    enum { BATCH = 2, ROWS = 21, COLUMNS = 38, EACH = ROWS * COLUMNS };
    struct random random;
    random_init(&random, 1);
    float *in = random_floats(&random, (size_t)BATCH * EACH);
    float *out = poisoned_floats((size_t)BATCH * EACH);
    kernel_transpose(in, out, BATCH, ROWS, COLUMNS);
    for (size_t n = 0; n < BATCH; n++)
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < COLUMNS; j++)
                assert_true(out[n * EACH + j * ROWS + i] == in[n * EACH + i * COLUMNS + j]);
    free(in);
    free(out);
}

TEST(every_set_pools_as_plain_does)
{
    const struct pool_shape shapes[] = {
        {POOL_MAX, 2, 6, 28, 28, 2, 2, 2, 2, false, false},
        {POOL_MAX, 5, 16, 10, 10, 2, 2, 0, 0, false, false},
        {POOL_MAX, 1, 3, 7, 9, 2, 2, 2, 2, false, false},
        {POOL_MAX, 2, 16, 8, 8, 3, 3, 2, 2, true, false},
        {POOL_MAX, 2, 16, 8, 8, 3, 3, 2, 2, true, true},
        {POOL_MAX, 2, 1, 12, 5, 3, 1, 2, 1, false, false},
        {POOL_AVERAGE, 2, 6, 28, 28, 2, 2, 2, 2, false, false},
        {POOL_AVERAGE, 3, 2, 9, 9, 3, 3, 3, 3, false, false},
        {POOL_AVERAGE, 2, 16, 8, 8, 8, 8, 8, 8, false, true},
        {POOL_AVERAGE, 4, 8, 2, 2, 2, 2, 1, 1, false, false},
        {POOL_AVERAGE, 4, 8, 2, 2, 2, 2, 1, 1, false, true},
        {POOL_AVERAGE, 2, 5, 6, 7, 3, 3, 2, 2, false, true},
    };
    compare_all_sets(open_pool, shapes, sizeof(*shapes), sizeof(shapes) / sizeof(*shapes));
}

TEST(every_set_activates_as_plain_does)
{
    const struct activation_shape shapes[] = {
        {ACTIVATION_RELU, 1000}, {ACTIVATION_TANH, 1001}, {ACTIVATION_SIGMOID, 37}};
    compare_all_sets(open_activation, shapes, sizeof(*shapes), sizeof(shapes) / sizeof(*shapes));
}

/* sum(output * output_gradient): its derivatives are what backward computes. */
static double objective(struct fixture *fixture)
{
    operation_forward(fixture->operation, &fixture->tensors);
    double sum = 0;
    for (size_t i = 0; i < fixture->output_count; i++)
        sum += (double)fixture->tensors.output[i] * (double)fixture->output_gradient[i];
    return sum;
}

static void assert_slopes(struct fixture *fixture, float *values, const float *gradient,
                          size_t count)
{
    const float step = 1e-2F;
    for (size_t i = 0; i < count; i++) {
        const float kept = values[i];
        values[i] = kept + step;
        const double above = objective(fixture);
        values[i] = kept - step;
        const double below = objective(fixture);
        values[i] = kept;
        const double slope = (above - below) / (2 * (double)step);
        if (fabs(slope - (double)gradient[i]) > 2e-2 * fmax(1, fabs(slope)))
            fail_msg("element %zu: gradient %g, slope %g", i, (double)gradient[i], slope);
    }
}

static void check_finite_differences(open_function open, const void *shape)
{
    AUTO(kernel_set) struct kernel_set *plain = open_plain();
    struct fixture fixture = {0};
    open(plain, shape, &fixture);
    fixture_init(&fixture, 7);
    operation_forward(fixture.operation, &fixture.tensors);
    operation_backward(fixture.operation, &fixture.tensors);
    assert_slopes(&fixture, fixture.input, fixture.tensors.input_gradient, fixture.input_count);
    assert_slopes(&fixture, fixture.weights, fixture.tensors.weights_gradient,
                  fixture.weights_count);
    assert_slopes(&fixture, fixture.bias, fixture.tensors.bias_gradient, fixture.bias_count);
    fixture_done(&fixture);
}

TEST(gradients_of_plain_are_the_slopes_of_its_outputs)
{
    check_finite_differences(open_dense, &(struct dense_shape){3, 5, 4});
    check_finite_differences(open_conv, &(struct conv_shape){2, 2, 5, 6, 3, 3, 1});
    check_finite_differences(open_conv, &(struct conv_shape){1, 1, 6, 6, 2, 5, 2});
    check_finite_differences(
        open_pool, &(struct pool_shape){POOL_AVERAGE, 2, 2, 4, 6, 2, 2, 0, 0, false, false});
    check_finite_differences(open_activation, &(struct activation_shape){ACTIVATION_TANH, 20});
    check_finite_differences(open_activation, &(struct activation_shape){ACTIVATION_SIGMOID, 20});
}

TEST(pooling_sends_the_gradient_to_the_largest)
{
    AUTO(kernel_set) struct kernel_set *plain = open_plain();
    struct fixture fixture = {0};
    open_pool(plain, &(struct pool_shape){POOL_MAX, 1, 1, 2, 4, 2, 2, 0, 0, false, false},
              &fixture);
    fixture_init(&fixture, 1);
    const float image[] = {1, 2, 9, 0, 4, 3, 5, 6};
    memcpy(fixture.input, image, sizeof(image));
    operation_forward(fixture.operation, &fixture.tensors);
    operation_backward(fixture.operation, &fixture.tensors);
    const float *gradient = fixture.tensors.input_gradient;
    assert_true(fixture.tensors.output[0] == 4 && fixture.tensors.output[1] == 9);
    assert_true(gradient[4] == fixture.output_gradient[0]);
    assert_true(gradient[2] == fixture.output_gradient[1]);
    assert_true(gradient[0] == 0 && gradient[3] == 0 && gradient[7] == 0);
    fixture_done(&fixture);
}

TEST(cross_entropy_and_its_gradient_match_worked_numbers_in_every_set)
{
    struct error error;
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        if (kernel_set_open(*name, &set, &error) < 0)
            continue;
        const float logits[] = {1, 1, 0, 1000, -1000, 0};
        const int32_t labels[] = {0, 0};
        float gradient[6];
        uint32_t correct = 0;
        const struct cross_entropy arguments = {2, 3, logits, labels, gradient, &correct};
        const double loss = kernel_cross_entropy(set, &arguments);
        const double e = exp(-1.0), expected = log(2 + e) / 2; /* the second row's loss is 0 */
        assert_true(fabs(loss - expected) < 1e-6);
        assert_true(fabs((double)gradient[0] - (1 / (2 + e) - 1) / 2) < 1e-6);
        assert_true(fabs((double)gradient[2] - e / (2 + e) / 2) < 1e-6);
        assert_true(gradient[3] == 0 && gradient[4] == 0);
        assert_int_equal(correct, 2); /* of equals the first counts */
        const struct cross_entropy looking = {2, 3, logits, labels, NULL, NULL};
        assert_true(fabs(kernel_cross_entropy(set, &looking) - expected) < 1e-6);
    }
}

/* Rows of every length beside plain's, more than are taken at once, and one that is not a number.
 */
TEST(cross_entropy_is_the_same_in_every_set)
{
    enum { ROWS = 300, CLASSES_MAX = 40 };
    struct error error;
    AUTO(kernel_set) struct kernel_set *plain = open_plain();
    float logits[ROWS * CLASSES_MAX], gradient[ROWS * CLASSES_MAX], expected[ROWS * CLASSES_MAX];
    int32_t labels[ROWS];
    struct random random;
    random_init(&random, 5);
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        if (kernel_set_open(*name, &set, &error) < 0)
            continue;
        for (uint32_t classes = 1; classes <= CLASSES_MAX; classes++) {
            for (uint32_t i = 0; i < ROWS * classes; i++)
                logits[i] = 20 * (float)random_normal(&random);
            for (uint32_t n = 0; n < ROWS; n++)
                labels[n] = (int32_t)random_below(&random, classes);
            const struct cross_entropy one = {ROWS, classes, logits, labels, gradient, NULL};
            const struct cross_entropy two = {ROWS, classes, logits, labels, expected, NULL};
            const double loss = kernel_cross_entropy(set, &one);
            assert_true(fabs(loss - kernel_cross_entropy(plain, &two)) <= 1e-6 * (1 + fabs(loss)));
            for (uint32_t i = 0; i < ROWS * classes; i++)
                assert_true(fabsf(gradient[i] - expected[i]) < 1e-6F / ROWS);
        }
        logits[7] = NAN;
        const struct cross_entropy broken = {2, 5, logits, labels, gradient, NULL};
        labels[0] = labels[1] = 0;
        assert_true(isnan(kernel_cross_entropy(set, &broken)));
    }
}

TEST(sgd_follows_its_rule_in_every_set)
{
    struct error error;
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        if (kernel_set_open(*name, &set, &error) < 0)
            continue;
        enum { COUNT = 37 };
        float weights[COUNT], velocity[COUNT], gradient[COUNT];
        for (int i = 0; i < COUNT; i++) {
            weights[i] = 2;
            velocity[i] = 1;
            gradient[i] = (float)i;
        }
        const struct sgd_rule rule = {.lr = 0.5F, .momentum = 0.5F, .weight_decay = 0.25F};
        kernel_sgd(set, &rule, weights, velocity, gradient, COUNT);
        assert_true(velocity[36] == 37 && weights[36] == 2 - 18.5F);
        const struct sgd_rule nesterov = {.lr = 1, .momentum = 0.5F, .is_nesterov = true};
        velocity[3] = 2;
        weights[3] = 0;
        kernel_sgd(set, &nesterov, weights, velocity, gradient, COUNT);
        assert_true(velocity[3] == 4 && weights[3] == -5);
        kernel_scale(set, 3, velocity, COUNT);
        assert_true(velocity[3] == 12);
        kernel_axpy(set, 2, gradient, velocity, COUNT);
        assert_true(velocity[3] == 18);
    }
}

TEST(shapes_that_make_no_sense_are_refused)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *plain = open_plain();
    struct operation *none = NULL;
    const struct dense_shape empty = {0, 1, 1}, huge = {1, 1 << 20, 1 << 20};
    ASSERT_FAILS(operation_open_dense(plain, &empty, &training, &none, &error), ERROR_INVALID);
    ASSERT_FAILS(operation_open_dense(plain, &huge, &training, &none, &error), ERROR_INVALID);
    const struct conv_shape wide = {1, 1, 3, 3, 1, 5, 0}, padded = {1, 1, 3, 3, 1, 2, 2};
    ASSERT_FAILS(operation_open_conv(plain, &wide, &training, &none, &error), ERROR_INVALID);
    ASSERT_FAILS(operation_open_conv(plain, &padded, &training, &none, &error), ERROR_INVALID);
    const struct pool_shape big = {POOL_MAX, 1, 1, 3, 3, 4, 4, 0, 0, false, false};
    ASSERT_FAILS(operation_open_pool(plain, &big, &training, &none, &error), ERROR_INVALID);
    const struct activation_shape nothing = {ACTIVATION_RELU, 0};
    ASSERT_FAILS(operation_open_activation(plain, &nothing, &training, &none, &error),
                 ERROR_INVALID);
    assert_null(none);
}

TEST(an_unknown_set_is_named_and_auto_always_opens)
{
    struct error error;
    struct kernel_set *none = NULL;
    ASSERT_FAILS(kernel_set_open("abacus", &none, &error), ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "abacus"));
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    assert_non_null(kernel_set_name(set));
}

TEST(onednn_never_runs_lenet_by_its_reference)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    if (kernel_set_open("onednn", &set, &error) < 0)
        SKIP("%s", error.message);
    const struct conv_shape conv = {32, 6, 14, 14, 16, 5, 0};
    AUTO(operation) struct operation *operation = NULL;
    ASSERT_OK(operation_open_conv(set, &conv, &training, &operation, &error));
    print_message("convolution by %s\n", operation_describe(operation));
    assert_non_null(strstr(operation_describe(operation), "onednn:"));
    assert_null(strstr(operation_describe(operation), "ref"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_computes_dense_layers_as_plain_does),
        cmocka_unit_test(every_set_computes_convolutions_as_plain_does),
        cmocka_unit_test(convolutions_with_channels_last_match_plain),
        cmocka_unit_test(a_transpose_puts_each_number_in_its_place),
        cmocka_unit_test(every_set_pools_as_plain_does),
        cmocka_unit_test(every_set_activates_as_plain_does),
        cmocka_unit_test(gradients_of_plain_are_the_slopes_of_its_outputs),
        cmocka_unit_test(pooling_sends_the_gradient_to_the_largest),
        cmocka_unit_test(cross_entropy_and_its_gradient_match_worked_numbers_in_every_set),
        cmocka_unit_test(cross_entropy_is_the_same_in_every_set),
        cmocka_unit_test(sgd_follows_its_rule_in_every_set),
        cmocka_unit_test(shapes_that_make_no_sense_are_refused),
        cmocka_unit_test(an_unknown_set_is_named_and_auto_always_opens),
        cmocka_unit_test(onednn_never_runs_lenet_by_its_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
