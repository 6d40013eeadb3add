/* covers lesson.c: one call of a function, on data and a model in a folder. */
#include "function/handler.h"
#include "function/job_scene_internal.h"

static int set_up(void **state)
{
    if (job_scene_set_up(state) != 0)
        return -1;
    struct job_scene *scene = *state;
    job_scene_put_model(scene, 0, lesson_parameters(scene->lesson),
                        lesson_parameter_count(scene->lesson));
    return 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct ask {
    int first, count, version;
    int64_t time_ms; /* 0: enough */
    int64_t memory_bytes;
};

static int call(struct job_scene *scene, struct ask ask, struct work_answer *out_answer,
                struct error *error)
{
    char request[256];
    struct buffer answer AUTO_BUFFER;
    buffer_init(&answer, WORK_JSON_MAX);
    snprintf(request, sizeof(request),
             "{\"job\":\"digits\",\"epoch\":0,\"run\":1,\"first_batch\":%d,\"batch_count\":%d,"
             "\"version\":%d}",
             ask.first, ask.count, ask.version);
    const int64_t time_ms = ask.time_ms ? ask.time_ms : 100000;
    const struct handler_limits limits = {.deadline_ns = scene->now_ns + time_ms * 1000000,
                                          .memory_bytes = ask.memory_bytes};
    if (handler_call(scene->handler, text_of(request), &limits, &answer, error) < 0)
        return -1;
    *out_answer = (struct work_answer){0};
    return json_read(scene->arena, buffer_text(&answer), &work_answer_schema, out_answer, error);
}

/* Steps over the batches here, from the parameters the lesson has. */
static void step_here(struct job_scene *scene, uint64_t first, uint64_t count)
{
    struct error error = {0};
    AUTO(dataset) struct dataset *dataset = NULL;
    double loss;
    const void *bytes[] = {scene->images, scene->labels};
    ASSERT_OK(lesson_open_records(scene->lesson, bytes, RECORDS, &dataset, &error));
    lesson_begin(scene->lesson, first);
    for (uint64_t i = first; i < first + count; i++)
        ASSERT_OK(lesson_step(scene->lesson, dataset, (uint32_t)i * BATCH, i, &loss, &error));
}

/* That what lies at the key brings `base` to where the lesson stands. */
static void assert_update(struct job_scene *scene, const char *key, const float *base)
{
    struct error error = {0};
    struct parcel parcel;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 20);
    ASSERT_OK(object_store_read(scene->store, key, &bytes, &error));
    ASSERT_OK(parcel_decode(buffer_text(&bytes), &parcel, &error));
    assert_int_equal(parcel.count, lesson_parameter_count(scene->lesson));
    for (size_t i = 0; i < parcel.count; i++)
        assert_true(lesson_parameters(scene->lesson)[i] - base[i] == parcel.values[i]);
}

static float *copy_parameters(struct job_scene *scene)
{
    const size_t size = sizeof(float) * lesson_parameter_count(scene->lesson);
    float *copy = arena_alloc(scene->arena, size);
    memcpy(copy, lesson_parameters(scene->lesson), size);
    return copy;
}

static void a_call_leaves_what_its_batches_make_of_the_model(void **state)
{
    struct job_scene *scene = *state;
    struct error error = {0};
    struct work_answer answer;
    float *base = copy_parameters(scene);
    ASSERT_OK(call(scene, (struct ask){2, 5, 0, 0, 0}, &answer, &error));
    assert_int_equal(answer.batches_done, 5);
    assert_int_equal(answer.samples, 5 * BATCH);
    assert_int_equal(answer.end, WORK_END_DONE);
    assert_true(answer.loss > 0 && answer.compute_us > 0 && answer.fetch_us > 0);
    assert_true(answer.update_us > 0 && answer.memory_bytes > 0);
    step_here(scene, 2, 5);
    assert_update(scene, "updates/digits/0-1-2", base);
    /* Warm, and it remembers nothing of the call before. */
    memcpy(lesson_parameters(scene->lesson), base,
           sizeof(float) * lesson_parameter_count(scene->lesson));
    ASSERT_OK(call(scene, (struct ask){7, 3, 0, 0, 0}, &answer, &error));
    step_here(scene, 7, 3);
    assert_update(scene, "updates/digits/0-1-7", base);
}

static void a_call_stops_in_time_and_another_does_the_rest(void **state)
{
    struct job_scene *scene = *state;
    struct error error = {0};
    struct work_answer answer;
    float *base = copy_parameters(scene);
    ASSERT_OK(call(scene, (struct ask){0, BATCHES, 0, 45, 0}, &answer, &error));
    assert_int_equal(answer.end, WORK_END_TIME);
    assert_true(answer.batches_done > 0 && answer.batches_done < BATCHES);
    const int done = (int)answer.batches_done;
    step_here(scene, 0, (uint64_t)done);
    assert_update(scene, "updates/digits/0-1-0", base);
    float *after = copy_parameters(scene);
    job_scene_put_model(scene, 1, after, lesson_parameter_count(scene->lesson));
    ASSERT_OK(call(scene, (struct ask){done, BATCHES - done, 1, 0, 0}, &answer, &error));
    assert_int_equal(answer.batches_done, BATCHES - done);
    step_here(scene, (uint64_t)done, (uint64_t)(BATCHES - done));
    char key[64];
    snprintf(key, sizeof(key), "updates/digits/0-1-%d", done);
    assert_update(scene, key, after);
}

static void a_call_without_time_does_nothing_and_says_so(void **state)
{
    struct job_scene *scene = *state;
    struct error error = {0};
    struct work_answer answer;
    char byte;
    ASSERT_OK(call(scene, (struct ask){0, 4, 0, 5, 0}, &answer, &error));
    assert_int_equal(answer.batches_done, 0);
    assert_int_equal(answer.end, WORK_END_TIME);
    ASSERT_FAILS(object_store_read_part(scene->store, "updates/digits/0-1-0", 0, &byte, 1, &error),
                 ERROR_NOT_FOUND);
}

static void a_repeated_call_finds_what_the_first_left(void **state)
{
    struct job_scene *scene = *state;
    struct error error = {0};
    struct work_answer first, second;
    ASSERT_OK(call(scene, (struct ask){0, BATCHES, 0, 45, 0}, &first, &error));
    ASSERT_OK(call(scene, (struct ask){0, BATCHES, 0, 0, 0}, &second, &error));
    assert_true(second.is_repeated);
    assert_int_equal(second.batches_done, first.batches_done);
    assert_int_equal(second.samples, first.samples);
    assert_int_equal(second.end, WORK_END_TIME);
    assert_true(second.loss == first.loss);
}

static void what_cannot_be_done_is_refused_with_words(void **state)
{
    struct job_scene *scene = *state;
    struct error error = {0};
    struct work_answer answer;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 4096);
    const struct handler_limits limits = {.deadline_ns = INT64_MAX};
    ASSERT_FAILS(call(scene, (struct ask){0, 1, 0, 0, 8 << 20}, &answer, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(call(scene, (struct ask){8, 3, 0, 0, 0}, &answer, &error), ERROR_INVALID);
    ASSERT_FAILS(call(scene, (struct ask){0, 1, 9, 0, 0}, &answer, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(handler_call(scene->handler, TEXT("hello"), &limits, &out, &error), ERROR_INVALID);
    ASSERT_FAILS(
        handler_call(scene->handler,
                     TEXT("{\"job\":\"digits\",\"store\":\"/etc\",\"epoch\":0,\"run\":1,\"first_"
                          "batch\":0,\"batch_count\":1,\"version\":0}"),
                     &limits, &out, &error),
        ERROR_REFUSED);
    ASSERT_FAILS(handler_call(scene->handler,
                              TEXT("{\"job\":\"none\",\"epoch\":0,\"run\":1,\"first_batch\":0,"
                                   "\"batch_count\":1,\"version\":0}"),
                              &limits, &out, &error),
                 ERROR_NOT_FOUND);
    assert_int_equal(out.size, 0);
    handler_write_error(&error, &out);
    assert_non_null(strstr(buffer_string(&out), "\"errorMessage\":\"the job: "));
    /* A model of another size, and one that is cut. */
    job_scene_put_model(scene, 3, lesson_parameters(scene->lesson), 5);
    ASSERT_FAILS(call(scene, (struct ask){0, 1, 3, 0, 0}, &answer, &error), ERROR_CORRUPT);
    ASSERT_OK(object_store_put(scene->store, "models/digits/4", TEXT("SOUKPARC"), true, &error));
    ASSERT_FAILS(call(scene, (struct ask){0, 1, 4, 0, 0}, &answer, &error), ERROR_CORRUPT);
    ASSERT_OK(call(scene, (struct ask){0, 1, 0, 0, 0}, &answer, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, job_scene_tear_down)
        CASE(a_call_leaves_what_its_batches_make_of_the_model),
        CASE(a_call_stops_in_time_and_another_does_the_rest),
        CASE(a_call_without_time_does_nothing_and_says_so),
        CASE(a_repeated_call_finds_what_the_first_left),
        CASE(what_cannot_be_done_is_refused_with_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
