/* covers local_run.c */
#include "base/random.h"
#include "testing/testing.h"
#include "train/local_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 200, WIDTH = 6 };

struct scene {
    float inputs[RECORDS][WIDTH];
    int32_t labels[RECORDS];
    struct dataset *dataset;
    struct kernel_set *kernels;
    struct local_run_options options;
};

/* Two classes told apart by a plane. */
static int scene_open(void **state)
{
    struct error error;
    struct scene *scene = calloc(1, sizeof(*scene));
    assert_non_null(scene);
    struct random random;
    random_init(&random, 3);
    for (int i = 0; i < RECORDS; i++) {
        double sum = 0;
        for (int k = 0; k < WIDTH; k++) {
            scene->inputs[i][k] = (float)random_normal(&random);
            sum += (k % 2 ? 1 : -1) * (double)scene->inputs[i][k];
        }
        scene->labels[i] = sum > 0;
    }
    const struct dataset_shape shape = {
        .count = RECORDS, .channels = 1, .height = 1, .width = WIDTH, .classes = 2};
    const struct dataset_arrays arrays = {.inputs = &scene->inputs[0][0], .labels = scene->labels};
    ASSERT_OK(dataset_open_arrays(&shape, &arrays, &scene->dataset, &error));
    ASSERT_OK(kernel_set_open("plain", &scene->kernels, &error));
    struct model_spec spec;
    model_spec_default(MODEL_LOGISTIC, &spec);
    spec.height = 1;
    spec.width = WIDTH;
    spec.classes = 2;
    spec.layers[0].outputs = 2;
    scene->options = (struct local_run_options){
        .trainer = {.spec = spec, .optimizer = {.lr = 0.1}, .batch = 8, .seed = 5},
        .train = scene->dataset,
        .test = scene->dataset,
        .epochs = 4,
        .clock = &clock_system,
    };
    *state = scene;
    return 0;
}

static int scene_close(void **state)
{
    struct scene *scene = *state;
    dataset_free(scene->dataset);
    kernel_set_free(scene->kernels);
    free(scene);
    return 0;
}

static struct local_run *run_open(struct scene *scene)
{
    struct error error;
    struct local_run *run = NULL;
    ASSERT_OK(local_run_open(scene->kernels, &scene->options, &run, &error));
    return run;
}

static void run_to_end(struct local_run *run)
{
    struct error error;
    enum local_run_event event;
    do {
        event = local_run_advance(run, 1000, &error);
        assert_int_not_equal(event, LOCAL_RUN_FAILED);
    } while (event != LOCAL_RUN_ENDED);
}

static void all_epochs_are_trained_and_measured(void **state)
{
    struct scene *scene = *state;
    AUTO(local_run) struct local_run *run = run_open(scene);
    run_to_end(run);
    const struct local_run_status *status = local_run_status(run);
    assert_int_equal(status->end, LOCAL_RUN_EPOCHS);
    assert_string_equal(status->reason, "4 epochs are done");
    assert_int_equal(status->samples, 4 * RECORDS);
    assert_true(status->epochs == 4);
    assert_int_equal(status->measurements, 10);
    assert_true(status->test.accuracy > 0.9 && status->loss < 0.5);
    assert_true(local_run_is_sound(run));
}

static void a_target_ends_it_early(void **state)
{
    struct scene *scene = *state;
    scene->options.target.accuracy = 0.85;
    scene->options.epochs = 1000;
    scene->options.measure_steps = 5;
    AUTO(local_run) struct local_run *run = run_open(scene);
    run_to_end(run);
    const struct local_run_status *status = local_run_status(run);
    assert_int_equal(status->end, LOCAL_RUN_TARGET);
    assert_non_null(strstr(status->reason, "the test accuracy reached 0.8"));
    assert_true(status->steps < 1000 && status->steps % 5 == 0);
}

static void make_file(char *path)
{
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static void a_resumed_run_ends_at_the_same_model(void **state)
{
    struct error error;
    struct scene *scene = *state;
    char path[] = "/tmp/local_run_test.XXXXXX";
    make_file(path);
    AUTO(local_run) struct local_run *whole = run_open(scene);
    run_to_end(whole);
    scene->options.epochs = 2;
    AUTO(local_run) struct local_run *half = run_open(scene);
    run_to_end(half);
    ASSERT_OK(local_run_save(half, path, &error));
    scene->options.epochs = 4;
    AUTO(local_run) struct local_run *rest = run_open(scene);
    ASSERT_OK(local_run_resume(rest, path, &error));
    assert_int_equal(local_run_status(rest)->steps, 50);
    run_to_end(rest);
    const size_t size = sizeof(float) * (2 * WIDTH + 2);
    assert_memory_equal(local_run_parameters(whole), local_run_parameters(rest), size);
    assert_memory_not_equal(local_run_parameters(whole), local_run_parameters(half), size);

    scene->options.trainer.seed = 6;
    AUTO(local_run) struct local_run *other = run_open(scene);
    ASSERT_FAILS(local_run_resume(other, path, &error), ERROR_INVALID);
    unlink(path);
}

static void a_checkpoint_of_several_workers_gives_its_model_and_count(void **state)
{
    struct error error;
    struct scene *scene = *state;
    char path[] = "/tmp/local_run_test.XXXXXX";
    make_file(path);
    AUTO(checkpoint) struct checkpoint *theirs = NULL;
    scene->options.epochs = 2;
    scene->options.trainer.optimizer.momentum = 0.9;
    AUTO(local_run) struct local_run *half = run_open(scene);
    run_to_end(half);
    ASSERT_OK(local_run_save(half, path, &error));
    ASSERT_OK(checkpoint_read(path, &theirs, &error));
    theirs->epoch = theirs->position = 0;
    for (size_t i = 0; i < theirs->parameter_count; i++)
        theirs->velocity[i] = 1000; /* of their joint model */
    ASSERT_OK(checkpoint_write(path, theirs, &error));
    scene->options.epochs = 4;
    AUTO(local_run) struct local_run *rest = run_open(scene);
    ASSERT_OK(local_run_resume(rest, path, &error));
    assert_true(local_run_status(rest)->epochs == 2.0);
    run_to_end(rest);
    assert_true(local_run_status(rest)->epochs >= 4.0);
    for (size_t i = 0; i < theirs->parameter_count; i++)
        assert_true(fabsf(local_run_parameters(rest)[i]) < 100);
    unlink(path);
}

/* Once the rate passes 2, the decay throws every weight further out than it was. */
static void a_run_that_diverges_keeps_its_last_good_model(void **state)
{
    struct error error;
    struct scene *scene = *state;
    scene->options.epochs = 100;
    scene->options.measure_steps = 25;
    scene->options.trainer.optimizer =
        (struct optimizer_options){.lr = 10, .weight_decay = 1, .schedule = {.warmup = 1000}};
    AUTO(local_run) struct local_run *run = run_open(scene);
    run_to_end(run);
    const struct local_run_status *status = local_run_status(run);
    assert_int_equal(status->end, LOCAL_RUN_DIVERGED);
    assert_non_null(strstr(status->reason, "not finite"));
    assert_true(isfinite(status->test.loss) && status->test.loss < 2);
    const float *good = local_run_parameters(run);
    assert_non_null(good);
    for (int i = 0; i < 2 * WIDTH + 2; i++)
        assert_true(fabsf(good[i]) < 100);
    ASSERT_FAILS(local_run_save(run, "/tmp/local_run_test.none", &error), ERROR_INVALID);
}

int main(void)
{
#define WITH_SCENE(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)
    const struct CMUnitTest tests[] = {
        WITH_SCENE(all_epochs_are_trained_and_measured),
        WITH_SCENE(a_target_ends_it_early),
        WITH_SCENE(a_resumed_run_ends_at_the_same_model),
        WITH_SCENE(a_checkpoint_of_several_workers_gives_its_model_and_count),
        WITH_SCENE(a_run_that_diverges_keeps_its_last_good_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
