/* covers model.c, layer_activation.c, layer_conv.c, layer_dense.c, layer_pool.c, loss.c */
#include "base/random.h"
#include "testing/testing.h"
#include "train/loss.h"
#include "train/model.h"

#include <math.h>
#include <string.h>

enum { BATCH = 3 };
static const int32_t labels[BATCH] = {1, 0, 2};
static const struct targets targets = {.labels = labels};

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

static struct model *open_model(struct kernel_set *set, const struct model_spec *spec)
{
    struct error error;
    struct model *model = NULL;
    const struct model_options options = {*spec, BATCH, .is_training = true};
    ASSERT_OK(model_open(set, &options, &model, &error));
    model_init_parameters(model, 3);
    struct random random;
    random_init(&random, 4);
    /* Biases of 0 would leave units exactly at the ReLU's kink, where there is no slope. */
    for (size_t i = 0; i < model_parameter_count(model); i++)
        model_parameters(model)[i] += 0.05F * (float)random_normal(&random);
    for (size_t i = 0; i < BATCH * model_input_size(model); i++)
        model_input(model)[i] = (float)random_normal(&random);
    return model;
}

static double loss_of(struct model *model)
{
    model_forward(model);
    return loss_of_rows(model, &targets, BATCH).mean;
}

/* The gradient of each parameter group, by its most telling element, against the slope. */
static void assert_gradients_are_slopes(struct model *model)
{
    model_forward(model);
    loss_with_gradient(model, &targets);
    model_backward(model);
    const struct parameter_table *table = model_parameter_table(model);
    for (uint32_t p = 0; p < table->count; p++) {
        const struct parameter *parameter = &table->items[p];
        size_t best = parameter->offset;
        for (size_t i = 0; i < parameter->count; i++)
            if (fabsf(model_gradients(model)[parameter->offset + i]) >
                fabsf(model_gradients(model)[best]))
                best = parameter->offset + i;
        float *value = model_parameters(model) + best;
        const float kept = *value, step = 1e-3F;
        *value = kept + step;
        const double above = loss_of(model);
        *value = kept - step;
        const double below = loss_of(model);
        *value = kept;
        const double slope = (above - below) / (2 * (double)step);
        const double gradient = (double)model_gradients(model)[best];
        if (fabs(slope - gradient) > 0.03 * fabs(gradient) + 1e-4)
            fail_msg("%s: gradient %g, slope %g", parameter->name, gradient, slope);
    }
}

static const struct model_spec small_mlp = {.kind = MODEL_MLP,
                                            .channels = 2,
                                            .height = 3,
                                            .width = 3,
                                            .classes = 4,
                                            .layer_count = 5,
                                            .layers = {{.type = LAYER_DENSE, .outputs = 7},
                                                       {.type = LAYER_RELU},
                                                       {.type = LAYER_DENSE, .outputs = 5},
                                                       {.type = LAYER_RELU},
                                                       {.type = LAYER_DENSE}}};

TEST(gradients_of_every_model_are_the_slopes_of_the_loss)
{
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = open_set(*name);
        if (!set)
            continue;
        AUTO(model) struct model *mlp = open_model(set, &small_mlp);
        assert_gradients_are_slopes(mlp);
        struct model_spec spec;
        model_spec_default(MODEL_LENET5, &spec);
        AUTO(model) struct model *lenet = open_model(set, &spec);
        assert_gradients_are_slopes(lenet);
        model_spec_default(MODEL_LOGISTIC, &spec);
        AUTO(model) struct model *logistic = open_model(set, &spec);
        assert_gradients_are_slopes(logistic);
    }
}

TEST(every_set_gives_the_gradients_of_plain)
{
    struct model_spec spec;
    model_spec_default(MODEL_LENET5, &spec);
    AUTO(kernel_set) struct kernel_set *plain = open_set("plain");
    AUTO(model) struct model *expected = open_model(plain, &spec);
    model_forward(expected);
    loss_with_gradient(expected, &targets);
    model_backward(expected);
    float scale = 0;
    for (size_t i = 0; i < model_parameter_count(expected); i++)
        scale = fmaxf(scale, fabsf(model_gradients(expected)[i]));
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = open_set(*name);
        if (!set)
            continue;
        AUTO(model) struct model *model = open_model(set, &spec);
        model_forward(model);
        loss_with_gradient(model, &targets);
        model_backward(model);
        for (size_t i = 0; i < model_parameter_count(model); i++) {
            const float difference = model_gradients(model)[i] - model_gradients(expected)[i];
            if (!(fabsf(difference) <= 1e-4F * scale))
                fail_msg("%s: gradient %zu is %g, plain has %g", *name, i,
                         (double)model_gradients(model)[i], (double)model_gradients(expected)[i]);
        }
    }
}

TEST(the_seed_decides_the_parameters)
{
    AUTO(kernel_set) struct kernel_set *set = open_set("plain");
    AUTO(model) struct model *left = open_model(set, &small_mlp);
    AUTO(model) struct model *right = open_model(set, &small_mlp);
    const size_t size = sizeof(float) * model_parameter_count(left);
    assert_memory_equal(model_parameters(left), model_parameters(right), size);
    model_init_parameters(right, 99);
    assert_memory_not_equal(model_parameters(left), model_parameters(right), size);
}

TEST(a_model_for_evaluation_has_no_gradients_and_the_same_logits)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = open_set("auto");
    struct model_spec spec;
    model_spec_default(MODEL_LENET5, &spec);
    AUTO(model) struct model *training = open_model(set, &spec);
    AUTO(model) struct model *evaluating = NULL;
    const struct model_options options = {spec, BATCH, .is_training = false};
    ASSERT_OK(model_open(set, &options, &evaluating, &error));
    assert_null(model_gradients(evaluating));
    memcpy(model_parameters(evaluating), model_parameters(training),
           sizeof(float) * model_parameter_count(training));
    memcpy(model_input(evaluating), model_input(training),
           sizeof(float) * BATCH * model_input_size(training));
    assert_true(fabs(loss_of(evaluating) - loss_of(training)) < 1e-5);
}

TEST(a_batch_of_no_or_too_many_images_is_refused)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = open_set("plain");
    struct model *none = NULL;
    struct model_options options = {small_mlp, 0, .is_training = true};
    ASSERT_FAILS(model_open(set, &options, &none, &error), ERROR_INVALID);
    options.batch = MODEL_BATCH_MAX + 1;
    ASSERT_FAILS(model_open(set, &options, &none, &error), ERROR_INVALID);
}

TEST(a_model_tells_how_each_layer_is_computed)
{
    AUTO(kernel_set) struct kernel_set *set = open_set("plain");
    AUTO(model) struct model *model = open_model(set, &small_mlp);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 4096);
    model_describe(model, &buffer);
    assert_non_null(strstr(buffer_string(&buffer), "fc3"));
    assert_non_null(strstr(buffer_string(&buffer), "plain:dense"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_every_model_are_the_slopes_of_the_loss),
        cmocka_unit_test(every_set_gives_the_gradients_of_plain),
        cmocka_unit_test(the_seed_decides_the_parameters),
        cmocka_unit_test(a_model_for_evaluation_has_no_gradients_and_the_same_logits),
        cmocka_unit_test(a_batch_of_no_or_too_many_images_is_refused),
        cmocka_unit_test(a_model_tells_how_each_layer_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
