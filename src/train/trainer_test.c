/*
 * covers trainer.c, evaluation.c
 *
 * Whole training on Debian's Fashion-MNIST: it must learn, and repeat itself from a seed.
 */
#include "testing/testing.h"
#include "train/dataset_catalogue.h"
#include "train/evaluation.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct data {
    struct dataset *train, *test;
};

static int open_data(void **state)
{
    struct error error;
    static struct data data;
    const struct dataset_entry *entry = NULL;
    ASSERT_OK(dataset_entry_find(TEXT("fashion-mnist"), &entry, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS,
                                 &data.train, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &data.test,
                                 &error));
    *state = &data;
    return 0;
}

static int close_data(void **state)
{
    struct data *data = *state;
    dataset_free(data->train);
    dataset_free(data->test);
    return 0;
}

static struct trainer_options lenet_options(void)
{
    struct trainer_options options = {.batch = 32, .seed = 7};
    model_spec_default(MODEL_LENET5, &options.spec);
    options.optimizer = (struct optimizer_options){.lr = 0.02, .momentum = 0.9};
    return options;
}

static double run_steps(struct trainer *trainer, int count)
{
    struct error error;
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double loss;
        ASSERT_OK(trainer_step(trainer, &loss, &error));
        sum += loss;
    }
    return sum / count;
}

static void lenet_learns_fashion_in_few_steps(void **state)
{
    struct error error;
    const struct data *data = *state;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    AUTO(trainer) struct trainer *trainer = NULL;
    const struct trainer_options options = lenet_options();
    ASSERT_OK(trainer_open(set, data->train, &options, &trainer, &error));
    const double first = run_steps(trainer, 20);
    run_steps(trainer, 360);
    const double last = run_steps(trainer, 20);
    print_message("loss %.3f, after 400 steps %.3f, by %s\n", first, last, kernel_set_name(set));
    assert_true(first > 1.0);
    assert_true(last < 0.75);
    assert_int_equal(trainer_step_count(trainer), 400);
    assert_int_equal(trainer_sample_count(trainer), 12800);
    assert_true(trainer_epochs(trainer) > 0.21 && trainer_epochs(trainer) < 0.22);

    struct evaluation evaluation;
    ASSERT_OK(evaluation_init(&evaluation, trainer_model(trainer), data->test, 100, 2010, &error));
    int slices = 1;
    while (!evaluation_advance(&evaluation))
        slices++;
    assert_int_equal(slices, 63); /* 62 batches of 32 and a short one */
    const struct evaluation_result result = evaluation_result(&evaluation);
    assert_int_equal(result.count, 2010);
    print_message("accuracy %.3f\n", result.accuracy);
    assert_true(result.accuracy > 0.72 && result.loss < 0.8);
    struct evaluation_result whole;
    ASSERT_OK(evaluation_run(trainer_model(trainer), data->test, &whole, &error));
    assert_int_equal(whole.count, 10000);
    assert_true(whole.accuracy > 0.72);
}

static void the_same_seed_gives_the_same_model(void **state)
{
    struct error error;
    const struct data *data = *state;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    struct trainer_options options = lenet_options();
    AUTO(trainer) struct trainer *left = NULL;
    AUTO(trainer) struct trainer *right = NULL;
    AUTO(trainer) struct trainer *other = NULL;
    ASSERT_OK(trainer_open(set, data->train, &options, &left, &error));
    ASSERT_OK(trainer_open(set, data->train, &options, &right, &error));
    options.stream = 1;
    ASSERT_OK(trainer_open(set, data->train, &options, &other, &error));
    const size_t size = sizeof(float) * model_parameter_count(trainer_model(left));
    assert_memory_equal(model_parameters(trainer_model(left)),
                        model_parameters(trainer_model(other)), size);
    run_steps(left, 20);
    run_steps(right, 20);
    run_steps(other, 20);
    assert_memory_equal(model_parameters(trainer_model(left)),
                        model_parameters(trainer_model(right)), size);
    assert_memory_not_equal(model_parameters(trainer_model(left)),
                            model_parameters(trainer_model(other)), size);
}

static void a_restored_trainer_goes_on_exactly(void **state)
{
    struct error error;
    const struct data *data = *state;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    struct trainer_options options = lenet_options();
    options.record_first = 100;
    options.record_count = 500; /* so that an epoch ends on the way */
    options.augment = (struct augment){.crop = 2, .flip = true};
    AUTO(trainer) struct trainer *left = NULL;
    AUTO(trainer) struct trainer *right = NULL;
    ASSERT_OK(trainer_open(set, data->train, &options, &left, &error));
    ASSERT_OK(trainer_open(set, data->train, &options, &right, &error));
    run_steps(left, 17);
    struct checkpoint checkpoint;
    trainer_save(left, &checkpoint);
    ASSERT_OK(trainer_restore(right, &checkpoint, &error));
    run_steps(left, 17);
    run_steps(right, 17);
    assert_int_equal(trainer_step_count(right), 34);
    assert_memory_equal(model_parameters(trainer_model(left)),
                        model_parameters(trainer_model(right)),
                        sizeof(float) * checkpoint.parameter_count);
    float *none = checkpoint.second;
    checkpoint.second = checkpoint.velocity;
    ASSERT_FAILS(trainer_restore(right, &checkpoint, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "second moments, as of adam, and sgd keeps none"));
    checkpoint.second = none;
    options.optimizer = (struct optimizer_options){
        .kind = OPTIMIZER_ADAM, .lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    AUTO(trainer) struct trainer *adam = NULL;
    ASSERT_OK(trainer_open(set, data->train, &options, &adam, &error));
    ASSERT_FAILS(trainer_restore(adam, &checkpoint, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "no second moments for adam to go on from"));
    checkpoint.seed++;
    ASSERT_FAILS(trainer_restore(right, &checkpoint, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "was made with seed "));
    model_spec_default(MODEL_MLP, &checkpoint.spec);
    ASSERT_FAILS(trainer_restore(right, &checkpoint, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "another model: mlp of"));
    assert_non_null(strstr(error.message, "not lenet5 of 61706"));
}

/* Steps after a restart follow from the parameters, the place and the data: another trainer, with
 * kernels of its own, makes them again. */
static void steps_are_made_again_by_another_trainer(void **state)
{
    enum { BEFORE = 5, STEPS = 6 };
    static const enum optimizer_kind kinds[] = {OPTIMIZER_SGD, OPTIMIZER_ADAM};
    static const char *const others[] = {"auto", "plain"};
    struct error error;
    const struct data *data = *state;
    for (size_t k = 0; k < 2; k++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        AUTO(trainer) struct trainer *trainer = NULL;
        ASSERT_OK(kernel_set_open("auto", &set, &error));
        struct trainer_options options = lenet_options();
        options.optimizer = (struct optimizer_options){.lr = 0.002, .kind = kinds[k]};
        if (kinds[k] == OPTIMIZER_SGD)
            options.optimizer.momentum = 0.9;
        options.stream = 2;
        options.record_first = 20000;
        options.record_count = 10000;
        ASSERT_OK(trainer_open(set, data->train, &options, &trainer, &error));
        run_steps(trainer, BEFORE);
        optimizer_restart(trainer_optimizer(trainer));
        const size_t count = model_parameter_count(trainer_model(trainer));
        const float *result = model_parameters(trainer_model(trainer));
        float *start = malloc(count * sizeof(float));
        assert_non_null(start);
        memcpy(start, result, count * sizeof(float));
        run_steps(trainer, STEPS);
        for (size_t o = 0; o < 2; o++) {
            AUTO(kernel_set) struct kernel_set *other_set = NULL;
            AUTO(trainer) struct trainer *other = NULL;
            ASSERT_OK(kernel_set_open(others[o], &other_set, &error));
            ASSERT_OK(trainer_open(other_set, data->train, &options, &other, &error));
            ASSERT_OK(trainer_seek(other, BEFORE, (uint64_t)BEFORE * options.batch, &error));
            float *again = model_parameters(trainer_model(other));
            memcpy(again, start, count * sizeof(float));
            run_steps(other, STEPS);
            double apart = 0, moved = 0;
            for (size_t i = 0; i < count; i++) {
                apart += pow((double)result[i] - (double)again[i], 2);
                moved += pow((double)result[i] - (double)start[i], 2);
            }
            assert_true(moved > 0 && sqrt(apart / moved) < (o == 0 ? 1e-12 : 1e-2));
            assert_int_equal(trainer_sample_count(other), trainer_sample_count(trainer));
        }
        free(start);
    }
}

static void a_loss_that_explodes_is_an_error(void **state)
{
    struct error error;
    const struct data *data = *state;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    struct trainer_options options = lenet_options();
    options.optimizer.lr = 100;
    AUTO(trainer) struct trainer *trainer = NULL;
    ASSERT_OK(trainer_open(set, data->train, &options, &trainer, &error));
    int result = 0;
    double loss;
    for (int i = 0; i < 200 && result == 0; i++)
        result = trainer_step(trainer, &loss, &error);
    assert_int_equal(result, -1);
    assert_int_equal(error.code, ERROR_INVALID);
    assert_non_null(strstr(error.message, "lower lr"));
    assert_true(trainer_has_diverged(trainer));
}

static void every_metric_asked_for_must_be_reached(void **state)
{
    (void)state;
    char reached[96] = "";
    const struct evaluation_result result = {
        .loss = 0.5, .accuracy = 0.8, .error = 0.2, .perplexity = 1.6};
    const struct {
        struct evaluation_target target;
        bool is_reached;
    } cases[] = {
        {{0}, false},
        {{.accuracy = 0.8}, true},
        {{.accuracy = 0.81}, false},
        {{.loss = 0.5}, true},
        {{.loss = 0.49}, false},
        {{.error = 0.3}, true},
        {{.error = 0.1}, false},
        {{.perplexity = 2}, true},
        {{.perplexity = 1.5}, false},
        {{.accuracy = 0.7, .loss = 0.4}, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(evaluation_reaches(&result, &cases[i].target, reached, sizeof(reached)),
                         cases[i].is_reached);
    const struct evaluation_target both = {.accuracy = 0.7, .loss = 0.6};
    assert_true(evaluation_reaches(&result, &both, reached, sizeof(reached)));
    assert_string_equal(reached, "the test accuracy reached 0.8000, loss reached 0.5000");
    const struct evaluation_result gone = {.loss = (double)NAN, .accuracy = 1};
    assert_false(evaluation_reaches(&gone, &(struct evaluation_target){.accuracy = 0.5}, reached,
                                    sizeof(reached)));
}

static void data_that_does_not_fit_the_model_is_refused(void **state)
{
    struct error error;
    const struct data *data = *state;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("plain", &set, &error));
    struct trainer *none = NULL;
    struct trainer_options options = lenet_options();
    options.spec.width = 32;
    ASSERT_FAILS(trainer_open(set, data->train, &options, &none, &error), ERROR_INVALID);
    options = lenet_options();
    options.spec.classes = 9;
    ASSERT_FAILS(trainer_open(set, data->train, &options, &none, &error), ERROR_INVALID);
    options = lenet_options();
    options.record_first = 60000;
    ASSERT_FAILS(trainer_open(set, data->train, &options, &none, &error), ERROR_INVALID);
    options = lenet_options();
    options.record_first = 59999;
    options.record_count = 2;
    ASSERT_FAILS(trainer_open(set, data->train, &options, &none, &error), ERROR_INVALID);
}

TEST(another_batch_goes_on_where_the_last_one_stood)
{
    const struct data *data = *state;
    struct error error;
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    AUTO(trainer) struct trainer *trainer = NULL;
    const struct trainer_options options = lenet_options();
    ASSERT_OK(kernel_set_open(NULL, &kernels, &error));
    ASSERT_OK(trainer_open(kernels, data->train, &options, &trainer, &error));
    run_steps(trainer, 2);
    const size_t count = model_parameter_count(trainer_model(trainer));
    float *before = test_malloc(count * sizeof(float));
    memcpy(before, model_parameters(trainer_model(trainer)), count * sizeof(float));
    ASSERT_OK(trainer_set_batch(trainer, 48, &error));
    assert_memory_equal(before, model_parameters(trainer_model(trainer)), count * sizeof(float));
    run_steps(trainer, 1);
    assert_int_equal(trainer_sample_count(trainer), 2 * 32 + 48);
    assert_memory_not_equal(before, model_parameters(trainer_model(trainer)),
                            count * sizeof(float));
    ASSERT_FAILS(trainer_set_batch(trainer, MODEL_BATCH_MAX + 1, &error), ERROR_INVALID);
    run_steps(trainer, 1);
    assert_int_equal(trainer_sample_count(trainer), 2 * 32 + 2 * 48);
    test_free(before);
}

TEST(numbers_are_measured_by_the_share_of_their_variance)
{
    (void)state;
    struct error error;
    static const float inputs[] = {0, 1, 2, 3}, values[] = {1, 3, 5, 9};
    const struct dataset_shape shape = {
        .count = 4, .channels = 1, .height = 1, .width = 1, .target = DATASET_VALUES, .values = 1};
    const struct dataset_arrays arrays = {.inputs = inputs, .values = values};
    AUTO(dataset) struct dataset *dataset = NULL;
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    AUTO(model) struct model *model = NULL;
    struct model_options options = {.batch = 3}; /* the last slice is short */
    model_spec_default(MODEL_LINEAR, &options.spec);
    options.spec.width = 1;
    ASSERT_OK(dataset_open_arrays(&shape, &arrays, &dataset, &error));
    ASSERT_OK(kernel_set_open("plain", &kernels, &error));
    ASSERT_OK(model_open(kernels, &options, &model, &error));
    model_parameters(model)[0] = 2; /* weight, then bias: all but the last are right */
    model_parameters(model)[1] = 1;
    struct evaluation_result result;
    ASSERT_OK(evaluation_run(model, dataset, &result, &error));
    /* The squares of what is off are 4 of 35 about the mean of 4.5. */
    assert_true(fabs(result.loss - 1) < 1e-6 && fabs(result.accuracy - (1 - 4.0 / 35)) < 1e-6);
    const struct evaluation_target target = {.error = 10, .unit = 9},
                                   strict = {.error = 8, .unit = 9};
    char reached[128];
    assert_true(evaluation_reaches(&result, &target, reached, sizeof(reached)));
    assert_non_null(strstr(reached, "error reached 9.0000"));
    assert_false(evaluation_reaches(&result, &strict, reached, sizeof(reached)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lenet_learns_fashion_in_few_steps),
        cmocka_unit_test(the_same_seed_gives_the_same_model),
        cmocka_unit_test(a_restored_trainer_goes_on_exactly),
        cmocka_unit_test(steps_are_made_again_by_another_trainer),
        cmocka_unit_test(every_metric_asked_for_must_be_reached),
        cmocka_unit_test(a_loss_that_explodes_is_an_error),
        cmocka_unit_test(data_that_does_not_fit_the_model_is_refused),
        cmocka_unit_test(another_batch_goes_on_where_the_last_one_stood),
        cmocka_unit_test(numbers_are_measured_by_the_share_of_their_variance),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
