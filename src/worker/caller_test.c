/* covers function/work_put.c: rounds of real functions, whose calls the test makes as a daemon
 * does. */
#include "base/json.h"
#include "function/handler.h"
#include "function/lesson.h"
#include "function/work.h"
#include "runtime/job_spec.h"
#include "testing/testing.h"
#include "train/idx_reader.h"
#include "worker/caller.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 100, BATCH = 10, PIXELS = 784, FUNCTIONS = 2 };

static const char spec_json[] =
    "{\"name\":\"digits\",\"runtime\":\"native\",\"train\":{\"model\":\"logistic\",\"data\":"
    "\"fashion-mnist\",\"batch\":10,\"epochs\":2,\"optimizer\":{\"name\":\"sgd\",\"lr\":0.005,"
    "\"momentum\":0.9}}}";

static const struct dataset_entry entry = {.mean = 0.3, .deviation = 0.4};

/* A clock of which each look takes a millisecond. */
struct ticking {
    struct clock clock;
    int64_t *now_ns;
};

static int64_t tick(const struct clock *clock)
{
    return *((const struct ticking *)clock)->now_ns += 1000000;
}

struct scene {
    char folder[40], data[64], store[64];
    struct arena *arena;
    struct work work;
    struct caller *caller;
    int64_t now_ns;
    struct ticking clock;
    struct handler *handler;
    struct lesson *lesson; /* the same computed here */
    struct kernel_set *kernels;
    uint8_t images[RECORDS * PIXELS], labels[RECORDS];
    int daemon_fd;
    pthread_t daemon;
    /* What the daemon does. */
    int failures_left;
    const char *failure;
    int64_t time_ms;
    bool is_silent;
    bool makes_long; /* updates: more than any model has */
    int call_count;
};

/* ---- The daemon ------------------------------------------------------------------------------ */

static void lengthen_update(const struct scene *scene, struct text json)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct work_request request;
    char key[OBJECT_KEY_SIZE], path[OBJECT_KEY_SIZE + 96];
    ASSERT_OK(work_request_read(arena, json, &request, &error));
    work_update_key(&request, key);
    snprintf(path, sizeof(path), "%s/%s", scene->store, key);
    assert_int_equal(truncate(path, (off_t)1 << 32), 0);
}

static void answer(struct scene *scene, const struct child_message *message)
{
    struct error error = {0};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, CHILD_CALL_MAX);
    const struct handler_limits limits = {.deadline_ns = scene->now_ns + scene->time_ms * 1000000};
    scene->call_count++;
    struct child_message called = {.kind = CHILD_CALLED,
                                   .called = {.number = message->call.number}};
    if (scene->is_silent) {
        caller_stop(scene->caller);
        return;
    }
    if (scene->failures_left > 0) {
        scene->failures_left--;
        buffer_append_string(&json, scene->failure);
    } else if (handler_call(scene->handler, message->call.json, &limits, &json, &error) == 0) {
        called.called.is_ok = true;
        if (scene->makes_long)
            lengthen_update(scene, message->call.json);
    } else {
        handler_write_error(&error, &json);
    }
    called.called.json = buffer_text(&json);
    caller_on_called(scene->caller, &called);
}

static void *run_daemon(void *context)
{
    struct scene *scene = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    for (;;) {
        struct pollfd polled = {.fd = scene->daemon_fd, .events = POLLIN};
        struct child_message message;
        struct error error;
        bool has_ended = false;
        poll(&polled, 1, -1);
        arena_clear(arena);
        if (child_message_receive(scene->daemon_fd, arena, &message, &has_ended, &error) == 0)
            answer(scene, &message);
        else if (has_ended)
            return NULL;
    }
}

/* ---- The scene ------------------------------------------------------------------------------- */

static void write_part(const char *folder, enum dataset_part part, const void *records, size_t each)
{
    const struct idx_header header = {.rank = each > 1 ? 3 : 1,
                                      .sizes = {RECORDS, 28, 28},
                                      .record_size = each,
                                      .element = IDX_BYTE};
    char path[96];
    struct buffer start AUTO_BUFFER;
    buffer_init(&start, 64);
    idx_append_header(&start, &header, RECORDS);
    snprintf(path, sizeof(path), "%s/%s", folder, dataset_part_name(part));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(start.data, 1, start.size, file), start.size);
    assert_int_equal(fwrite(records, each, RECORDS, file), RECORDS);
    assert_int_equal(fclose(file), 0);
}

static void make_folders(struct scene *scene)
{
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/souk-caller-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->data, sizeof(scene->data), "%s/data", scene->folder);
    snprintf(scene->store, sizeof(scene->store), "%s/store", scene->folder);
    assert_int_equal(mkdir(scene->data, 0755), 0);
    assert_int_equal(mkdir(scene->store, 0755), 0);
    for (int i = 0; i < RECORDS; i++) {
        scene->labels[i] = (uint8_t)(i % 10);
        for (int j = 0; j < PIXELS; j++)
            scene->images[i * PIXELS + j] = (uint8_t)(j % 10 == i % 10 ? 200 : (i * 7 + j) % 50);
    }
    write_part(scene->data, DATASET_TRAIN_IMAGES, scene->images, PIXELS);
    write_part(scene->data, DATASET_TRAIN_LABELS, scene->labels, 1);
}

static void open_lesson(struct scene *scene)
{
    struct error error = {0};
    struct work_job job = {0};
    struct buffer json AUTO_BUFFER;
    AUTO(object_store) struct object_store *store = NULL;
    buffer_init(&json, WORK_JSON_MAX);
    ASSERT_OK(
        object_store_open(&(struct object_store_options){.place = scene->store}, &store, &error));
    ASSERT_OK(object_store_read(store, "jobs/lease-5-6", &json, &error));
    ASSERT_OK(json_read(scene->arena, buffer_text(&json), &work_job_schema, &job, &error));
    ASSERT_OK(kernel_set_open(NULL, &scene->kernels, &error));
    ASSERT_OK(lesson_open(scene->kernels, &job, &scene->lesson, &error));
}

static int set_up(void **state)
{
    struct error error = {0};
    struct job_spec spec;
    int sockets[2];
    struct scene *scene = calloc(1, sizeof(*scene));
    make_folders(scene);
    scene->arena = arena_new(0);
    scene->clock = (struct ticking){{.monotonic_ns = tick}, &scene->now_ns};
    scene->time_ms = 1000000;
    ASSERT_OK(job_spec_read(scene->arena, text_of(spec_json), &spec, &error));
    ASSERT_OK(child_socket_pair(sockets, &error));
    scene->daemon_fd = sockets[0];
    scene->work = (struct work){.arena = scene->arena,
                                .control_fd = sockets[1],
                                .data_folder = scene->data,
                                .store_folder = scene->store,
                                .function_count = FUNCTIONS,
                                .data = &entry,
                                .parameter_count = PIXELS * 10 + 10};
    scene->work.lease.lease = 5;
    scene->work.lease.fence = 6;
    scene->work.lease.train = spec.train;
    scene->work.lease.sync = spec.sync;
    ASSERT_OK(caller_open(&scene->work, &scene->caller, &error));
    open_lesson(scene);
    scene->handler =
        handler_new(&(struct handler_options){.clock = &scene->clock.clock, .store = scene->store});
    assert_int_equal(pthread_create(&scene->daemon, NULL, run_daemon, scene), 0);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    char command[64];
    close(scene->work.control_fd);
    pthread_join(scene->daemon, NULL);
    close(scene->daemon_fd);
    caller_free(scene->caller);
    handler_free(scene->handler);
    lesson_free(scene->lesson);
    kernel_set_free(scene->kernels);
    arena_free(scene->arena);
    snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
    free(scene);
    return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c) */
}

static float *first_parameters(struct scene *scene)
{
    const size_t size = scene->work.parameter_count * sizeof(float);
    return memset(arena_alloc(scene->arena, size), 0, size);
}

/* Adds a half of what the batches make of `base`. */
static void step_here(struct scene *scene, const float *base, uint32_t first, uint32_t count,
                      float *sum)
{
    struct error error = {0};
    AUTO(dataset) struct dataset *dataset = NULL;
    double loss;
    const void *bytes[] = {scene->images, scene->labels};
    float *parameters = lesson_parameters(scene->lesson);
    memcpy(parameters, base, scene->work.parameter_count * sizeof(float));
    ASSERT_OK(lesson_open_records(scene->lesson, bytes, RECORDS, &dataset, &error));
    lesson_begin(scene->lesson, first);
    for (uint32_t i = first; i < first + count; i++)
        ASSERT_OK(lesson_step(scene->lesson, dataset, i * BATCH, i, &loss, &error));
    for (size_t i = 0; i < scene->work.parameter_count; i++)
        sum[i] += 0.5f * (parameters[i] - base[i]);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void a_round_adds_the_mean_of_what_its_functions_learnt(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene), *expected = first_parameters(scene);
    const float *base = first_parameters(scene);
    ASSERT_OK(caller_make_round(scene->caller, 3, parameters, &round, &error));
    assert_int_equal(round.steps, 3);
    assert_int_equal(round.samples, 2 * 3 * BATCH);
    assert_true(round.loss > 0 && !round.has_diverged);
    step_here(scene, base, 0, 3, expected);
    step_here(scene, base, 3, 3, expected);
    for (size_t i = 0; i < scene->work.parameter_count; i++)
        assert_true(fabsf(parameters[i] - expected[i]) < 1e-6f);
    ASSERT_OK(caller_make_round(scene->caller, 100, parameters, &round, &error));
    assert_int_equal(round.samples, (4 + 10) * BATCH); /* the rest of this epoch, all of the next */
}

static void a_shard_of_less_than_a_batch_is_one(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    caller_free(TAKE(scene->caller));
    scene->work.lease.fence = 7;
    scene->work.lease.train.batch = RECORDS + 1;
    ASSERT_OK(caller_open(&scene->work, &scene->caller, &error));
    ASSERT_OK(caller_make_round(scene->caller, 3, parameters, &round, &error));
    assert_int_equal(round.steps, 1);
    assert_int_equal(round.samples, FUNCTIONS * RECORDS); /* each has an epoch of its own */
}

static void a_call_that_fails_is_made_again(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    scene->failures_left = 4;
    scene->failure = "{\"errorType\":\"Runtime.ExitError\",\"errorMessage\":\"killed\"}";
    ASSERT_OK(caller_make_round(scene->caller, 2, parameters, &round, &error));
    assert_int_equal(round.samples, 2 * 2 * BATCH);
    assert_int_equal(scene->call_count, 6);
}

static void one_that_fails_too_often_ends_it(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    scene->failures_left = 1000;
    scene->failure = "{\"errorType\":\"Sandbox.Timedout\",\"errorMessage\":\"too slow\"}";
    ASSERT_FAILS(caller_make_round(scene->caller, 2, parameters, &round, &error),
                 ERROR_UNAVAILABLE);
    assert_non_null(strstr(error.message, "too slow"));
}

static void an_update_that_is_longer_than_the_model_is_not_read(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    scene->makes_long = true;
    ASSERT_FAILS(caller_make_round(scene->caller, 2, parameters, &round, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "is longer than"));
}

static void what_can_never_be_done_is_tried_once(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    scene->failures_left = 1;
    scene->failure = "{\"errorType\":\"exhausted\",\"errorMessage\":\"128 MiB are too little\"}";
    ASSERT_FAILS(caller_make_round(scene->caller, 2, parameters, &round, &error), ERROR_EXHAUSTED);
}

static void a_loss_that_is_not_finite_is_told(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    for (size_t i = 0; i < scene->work.parameter_count; i++)
        parameters[i] = i % 2 ? 3e38f : -3e38f;
    ASSERT_OK(caller_make_round(scene->caller, 2, parameters, &round, &error));
    assert_true(round.has_diverged);
    assert_int_equal(round.steps, 0);
}

/* Each batch takes some looks at the clock, so that time for few is time for some of ten. */
static void what_a_call_leaves_undone_is_the_next_round_s(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    uint64_t samples = 0;
    int rounds = 0;
    scene->time_ms = 44;
    for (; samples < (uint64_t)RECORDS; rounds++) {
        ASSERT_OK(caller_make_round(scene->caller, 5, parameters, &round, &error));
        assert_true(round.steps > 0 && round.steps < 5);
        samples += round.samples;
    }
    assert_true(rounds > 1);
    assert_true(caller_counts(scene->caller).cut > 0);
    assert_int_equal(caller_counts(scene->caller).calls, scene->call_count);
    /* Every batch of the first epoch once: the rest of it is what the first calls left. */
    assert_int_equal(samples, RECORDS);
}

static void what_was_left_undone_is_cut_to_what_a_round_asks_for(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    uint64_t samples;
    scene->time_ms = 44;
    ASSERT_OK(caller_make_round(scene->caller, 5, parameters, &round, &error));
    assert_true(round.steps > 0 && round.steps < 4); /* two or more of each are left */
    samples = round.samples;
    scene->time_ms = 60000;
    while (samples < (uint64_t)RECORDS) {
        ASSERT_OK(caller_make_round(scene->caller, 1, parameters, &round, &error));
        assert_int_equal(round.steps, 1);
        samples += round.samples;
    }
    assert_int_equal(samples, RECORDS);
}

static void stopped_a_round_ends_at_once_and_changes_nothing(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct caller_round round;
    float *parameters = first_parameters(scene);
    scene->is_silent = true;
    ASSERT_OK(caller_make_round(scene->caller, 2, parameters, &round, &error));
    assert_int_equal(round.steps, 0);
    assert_true(parameters[0] == 0);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_round_adds_the_mean_of_what_its_functions_learnt),
        SCENE_TEST(a_shard_of_less_than_a_batch_is_one),
        SCENE_TEST(a_call_that_fails_is_made_again),
        SCENE_TEST(one_that_fails_too_often_ends_it),
        SCENE_TEST(an_update_that_is_longer_than_the_model_is_not_read),
        SCENE_TEST(what_can_never_be_done_is_tried_once),
        SCENE_TEST(a_loss_that_is_not_finite_is_told),
        SCENE_TEST(what_a_call_leaves_undone_is_the_next_round_s),
        SCENE_TEST(what_was_left_undone_is_cut_to_what_a_round_asks_for),
        SCENE_TEST(stopped_a_round_ends_at_once_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
