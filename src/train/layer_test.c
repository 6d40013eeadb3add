/*
 * covers layer.c, layer_arrange.c, layer_norm.c, layer_residual.c, layer_sequence.c, layer_sparse.c
 *
 * Small networks of every type of layer: gradients against finite differences, every kernel set
 * against plain, and every loss.
 */
#include "base/random.h"
#include "testing/testing.h"
#include "train/loss.h"
#include "train/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4 };

static const struct model_spec networks[] = {
    {.kind = MODEL_LAYERS,
     .channels = 3,
     .height = 8,
     .width = 8,
     .classes = 4,
     .layer_count = 9,
     .layers = {{.type = LAYER_CONV, .outputs = 16, .kernel = 3, .pad = 1},
                {.type = LAYER_TANH},
                {.type = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .partial = true},
                {.type = LAYER_LOCAL_NORM, .kernel = 5, .alpha = 2},
                {.type = LAYER_CONV, .outputs = 8, .kernel = 5, .pad = 2, .stride = 2},
                {.type = LAYER_SIGMOID},
                {.type = LAYER_AVERAGE_POOL, .kernel = 2, .stride = 1},
                {.type = LAYER_LAYER_NORM},
                {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 2,
     .height = 6,
     .width = 6,
     .classes = 3,
     .layer_count = 11,
     .layers = {{.type = LAYER_CONV, .outputs = 4, .kernel = 3, .pad = 1},
                {.type = LAYER_TANH},
                {.type = LAYER_TANH},
                {.type = LAYER_CONV, .outputs = 8, .kernel = 3, .pad = 1, .stride = 2},
                {.type = LAYER_BATCH_NORM},
                {.type = LAYER_RESIDUAL, .back = 3},
                {.type = LAYER_TANH},
                {.type = LAYER_CONV, .outputs = 8, .kernel = 1},
                {.type = LAYER_RESIDUAL, .back = 2},
                {.type = LAYER_AVERAGE_POOL},
                {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 1,
     .height = 1,
     .width = 6,
     .values = 2,
     .loss = LOSS_MSE,
     .layer_count = 6,
     .layers = {{.type = LAYER_BATCH_NORM},
                {.type = LAYER_DENSE, .outputs = 7},
                {.type = LAYER_GELU},
                {.type = LAYER_DROPOUT, .rate = 0.3},
                {.type = LAYER_RESIDUAL, .back = 2},
                {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 1,
     .height = 2,
     .width = 5,
     .vocabulary = 3,
     .classes = 3,
     .layer_count = 3,
     .layers = {{.type = LAYER_DENSE, .outputs = 4}, {.type = LAYER_TANH}, {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 1,
     .height = 5,
     .width = 3,
     .classes = 3,
     .loss = LOSS_HINGE,
     .layer_count = 3,
     .layers = {{.type = LAYER_GRU, .outputs = 5, .steps = true},
                {.type = LAYER_LSTM, .outputs = 4},
                {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 1,
     .height = 5,
     .width = 3,
     .classes = 2,
     .loss = LOSS_LOGISTIC,
     .layer_count = 3,
     .layers = {{.type = LAYER_LSTM, .outputs = 5, .steps = true},
                {.type = LAYER_GRU, .outputs = 4},
                {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 1,
     .height = 1,
     .width = 7,
     .vocabulary = 11,
     .classes = 11,
     .layer_count = 5,
     .layers = {{.type = LAYER_EMBEDDING, .outputs = 6},
                {.type = LAYER_CONV, .outputs = 6, .kernel = 3, .pad = 1},
                {.type = LAYER_LAYER_NORM},
                {.type = LAYER_LSTM, .outputs = 8, .steps = true},
                {.type = LAYER_DENSE}}},
    {.kind = MODEL_LAYERS,
     .channels = 1,
     .height = 1,
     .width = 9,
     .vocabulary = 11,
     .classes = 2,
     .layer_count = 6,
     .layers = {{.type = LAYER_EMBEDDING, .outputs = 6},
                {.type = LAYER_CONV, .outputs = 5, .kernel = 4},
                {.type = LAYER_MAX_POOL, .kernel = 2},
                {.type = LAYER_BATCH_NORM},
                {.type = LAYER_FLATTEN},
                {.type = LAYER_DENSE}}},
};
enum { NETWORK_COUNT = sizeof(networks) / sizeof(*networks), TARGETS_MAX = BATCH * 16 };

struct fixture {
    struct model *model;
    int32_t labels[TARGETS_MAX];
    float values[TARGETS_MAX];
    struct targets targets;
};

static struct kernel_set *open_set(const char *name)
{
    struct error error;
    struct kernel_set *set = NULL;
    if (kernel_set_open(name, &set, &error) < 0) {
        print_message("left out: %s\n", error.message);
        return NULL;
    }
    return set;
}

static void fixture_init(struct fixture *fixture, struct kernel_set *set,
                         const struct model_spec *spec)
{
    struct error error;
    struct random random;
    const struct model_options options = {*spec, BATCH, .is_training = true};
    ASSERT_OK(model_open(set, &options, &fixture->model, &error));
    model_init_parameters(fixture->model, 3);
    model_set_seed(fixture->model, 5);
    random_init(&random, 4);
    for (size_t i = 0; i < BATCH * model_input_size(fixture->model); i++)
        model_input(fixture->model)[i] = spec->vocabulary
                                             ? (float)random_below(&random, spec->vocabulary)
                                             : (float)random_normal(&random);
    for (size_t i = 0; i < TARGETS_MAX; i++) {
        fixture->labels[i] = (int32_t)random_below(&random, spec->classes ? spec->classes : 1);
        fixture->values[i] = (float)random_normal(&random);
    }
    fixture->targets = (struct targets){fixture->labels, fixture->values};
}

static double loss_now(struct fixture *fixture)
{
    model_forward(fixture->model);
    return loss_of_rows(fixture->model, &fixture->targets, BATCH).mean;
}

static void differentiate(struct fixture *fixture)
{
    model_forward(fixture->model);
    loss_with_gradient(fixture->model, &fixture->targets);
    model_backward(fixture->model);
}

static double slope_at(struct fixture *fixture, float *value)
{
    const float kept = *value, step = 2e-3F;
    *value = kept + step;
    const double above = loss_now(fixture);
    *value = kept - step;
    const double below = loss_now(fixture);
    *value = kept;
    return (above - below) / (2 * (double)step);
}

/* The most telling element of each parameter, and one in the middle. */
static void assert_gradients_are_slopes(struct fixture *fixture, size_t index)
{
    differentiate(fixture);
    const struct parameter_table *table = model_parameter_table(fixture->model);
    const float *gradients = model_gradients(fixture->model);
    for (uint32_t p = 0; p < table->count; p++) {
        const struct parameter *parameter = &table->items[p];
        size_t places[2] = {parameter->offset, parameter->offset + parameter->count / 2};
        for (size_t i = 0; i < parameter->count; i++)
            if (fabsf(gradients[parameter->offset + i]) > fabsf(gradients[places[0]]))
                places[0] = parameter->offset + i;
        for (size_t i = 0; i < 2; i++) {
            const double slope = slope_at(fixture, model_parameters(fixture->model) + places[i]);
            const double gradient = (double)gradients[places[i]];
            if (fabs(slope - gradient) > 0.03 * fabs(gradient) + 2e-4)
                fail_msg("network %zu, %s: gradient %g, slope %g", index, parameter->name, gradient,
                         slope);
        }
    }
}

TEST(gradients_of_every_layer_are_the_slopes_of_the_loss)
{
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = open_set(*name);
        for (size_t i = 0; set && i < NETWORK_COUNT; i++) {
            struct fixture fixture;
            fixture_init(&fixture, set, &networks[i]);
            assert_gradients_are_slopes(&fixture, i);
            model_free(fixture.model);
        }
    }
}

static size_t network; /* for messages */

static void assert_near(const char *what, const float *actual, const float *expected, size_t count)
{
    double scale = 1e-3;
    for (size_t i = 0; i < count; i++)
        scale = fmax(scale, fabs((double)expected[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)(actual[i] - expected[i])) <= 1e-4 * scale))
            fail_msg("network %zu: %s[%zu] is %g, plain has %g", network, what, i,
                     (double)actual[i], (double)expected[i]);
}

TEST(every_set_computes_every_layer_as_plain_does)
{
    AUTO(kernel_set) struct kernel_set *plain = open_set("plain");
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = open_set(*name);
        for (size_t i = 0; set && i < NETWORK_COUNT; i++) {
            struct fixture expected, actual;
            network = i;
            fixture_init(&expected, plain, &networks[i]);
            fixture_init(&actual, set, &networks[i]);
            differentiate(&expected);
            differentiate(&actual);
            const size_t outputs = (size_t)BATCH * model_output_rows(expected.model) *
                                   (networks[i].values                  ? networks[i].values
                                    : networks[i].loss == LOSS_LOGISTIC ? 1
                                                                        : networks[i].classes);
            assert_near("output", model_logits(actual.model), model_logits(expected.model),
                        outputs);
            const struct parameter_table *table = model_parameter_table(expected.model);
            for (uint32_t p = 0; p < table->count; p++)
                assert_near(table->items[p].name,
                            model_gradients(actual.model) + table->items[p].offset,
                            model_gradients(expected.model) + table->items[p].offset,
                            table->items[p].count);
            assert_near("parameters", model_parameters(actual.model),
                        model_parameters(expected.model), table->float_count);
            model_predict(expected.model);
            model_predict(actual.model);
            assert_near("prediction", model_logits(actual.model), model_logits(expected.model),
                        outputs);
            model_free(expected.model);
            model_free(actual.model);
        }
    }
}

TEST(running_statistics_follow_the_batch_and_are_used_in_prediction)
{
    AUTO(kernel_set) struct kernel_set *set = open_set("plain");
    struct fixture fixture;
    fixture_init(&fixture, set, &networks[2]);
    const struct parameter_table *table = model_parameter_table(fixture.model);
    const float *mean = model_parameters(fixture.model) + table->learned_count;
    const float before = mean[0];
    for (int i = 0; i < 200; i++)
        model_forward(fixture.model);
    float sum = 0;
    for (size_t n = 0; n < BATCH; n++)
        sum += model_input(fixture.model)[n * 6];
    assert_true(fabsf(before) < 1e-6F);
    assert_true(fabsf(mean[0] - sum / BATCH) < 1e-4F);
    const float kept = mean[0];
    model_predict(fixture.model);
    assert_true(mean[0] == kept);
    for (size_t i = table->learned_count; i < table->float_count; i++)
        assert_true(model_gradients(fixture.model)[i] == 0);
    model_free(fixture.model);
}

TEST(what_is_dropped_follows_the_seed_and_nothing_is_in_prediction)
{
    const struct model_spec spec = {.kind = MODEL_LAYERS,
                                    .channels = 1,
                                    .height = 1,
                                    .width = 1000,
                                    .values = 1000,
                                    .loss = LOSS_MSE,
                                    .layer_count = 1,
                                    .layers = {{.type = LAYER_DROPOUT, .rate = 0.25}}};
    AUTO(kernel_set) struct kernel_set *set = open_set("auto");
    struct fixture fixture = {0};
    struct error error;
    const struct model_options options = {spec, 1, .is_training = true};
    ASSERT_OK(model_open(set, &options, &fixture.model, &error));
    for (size_t i = 0; i < 1000; i++)
        model_input(fixture.model)[i] = 1;
    float first[1000];
    model_set_seed(fixture.model, 1);
    memcpy(first, model_forward(fixture.model), sizeof(first));
    int dropped = 0;
    for (size_t i = 0; i < 1000; i++) {
        dropped += first[i] == 0;
        assert_true(first[i] == 0 || fabsf(first[i] - 1 / 0.75F) < 1e-3F);
    }
    assert_in_range(dropped, 200, 300);
    assert_memory_equal(first, model_forward(fixture.model), sizeof(first));
    model_set_seed(fixture.model, 2);
    assert_memory_not_equal(first, model_forward(fixture.model), sizeof(first));
    assert_true(model_predict(fixture.model)[0] == 1 && model_predict(fixture.model)[999] == 1);
    model_free(fixture.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_every_layer_are_the_slopes_of_the_loss),
        cmocka_unit_test(every_set_computes_every_layer_as_plain_does),
        cmocka_unit_test(running_statistics_follow_the_batch_and_are_used_in_prediction),
        cmocka_unit_test(what_is_dropped_follows_the_seed_and_nothing_is_in_prediction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
