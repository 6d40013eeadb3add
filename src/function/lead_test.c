/*
 * Every update is added exactly once, whatever becomes of those who write them: 150 processes at a
 * time, some killed half-way, some twice, some that do a part, a store that fails before or after
 * it has done what it was asked, and leads that die and are followed by others.
 *
 * The update of a batch b is b + 1 at place b and 0 elsewhere: floats hold the sums exactly, so
 * that a batch lost or added twice shows.
 */
#include "base/memory.h"
#include "base/random.h"
#include "function/lead.h"
#include "function/object_store_internal.h"
#include "function/parcel.h"
#include "testing/testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCHES = 600, CONCURRENT = 150, RUN_BASE = 1 << 20 };

static char folder[] = "/tmp/souk-lead-XXXXXX";

/* ---- A store that fails ---------------------------------------------------------------------- */

enum fault { FAULT_NONE, FAULT_BEFORE, FAULT_AFTER };

struct faulty_store {
    struct object_store store;
    struct object_store *inner;
    struct random random;
    uint64_t one_in;     /* calls fail; 0: none */
    const char *put_key; /* puts of it fail as `put_fault` says; NULL: of none */
    enum fault put_fault;
};

static enum fault draw(struct faulty_store *faulty)
{
    if (!faulty->one_in || random_below(&faulty->random, faulty->one_in))
        return FAULT_NONE;
    return random_below(&faulty->random, 2) ? FAULT_BEFORE : FAULT_AFTER;
}

static int break_down(struct error *error)
{
    return error_set(error, ERROR_UNAVAILABLE, "the store failed");
}

static int faulty_read(struct object_store *store, const char *key, struct buffer *out,
                       struct error *error)
{
    struct faulty_store *faulty = (struct faulty_store *)store;
    return draw(faulty) != FAULT_NONE ? break_down(error)
                                      : object_store_read(faulty->inner, key, out, error);
}

static int faulty_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                      struct error *error)
{
    struct faulty_store *faulty = (struct faulty_store *)store;
    const bool is_meant = faulty->put_key && strcmp(faulty->put_key, key) == 0;
    const enum fault fault = is_meant ? faulty->put_fault : draw(faulty);
    if (fault == FAULT_BEFORE)
        return break_down(error);
    const int result = object_store_put(faulty->inner, key, bytes, is_once, error);
    return fault == FAULT_AFTER ? break_down(error) : result;
}

static int faulty_delete(struct object_store *store, const char *key, struct error *error)
{
    struct faulty_store *faulty = (struct faulty_store *)store;
    return draw(faulty) != FAULT_NONE ? break_down(error)
                                      : object_store_delete(faulty->inner, key, error);
}

static const struct object_store_ops faulty_ops = {
    .read = faulty_read, .put = faulty_put, .delete = faulty_delete};

static void open_faulty(struct faulty_store *faulty, uint64_t seed, uint64_t one_in)
{
    struct error error = {0};
    const struct object_store_options options = {.place = folder};
    *faulty = (struct faulty_store){.store = {&faulty_ops}, .one_in = one_in};
    random_init(&faulty->random, seed);
    ASSERT_OK(object_store_open(&options, &faulty->inner, &error));
}

/* ---- Processes that write updates ------------------------------------------------------------ */

static int write_update(struct object_store *store, const struct work_request *request,
                        uint64_t batches)
{
    struct error error = {0};
    char key[OBJECT_KEY_SIZE], head[256];
    float values[BATCHES] = {0};
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 20);
    for (uint64_t i = 0; i < batches; i++)
        values[request->first_batch + i] = (float)(request->first_batch + i + 1);
    snprintf(head, sizeof(head),
             "{\"epoch\":%d,\"run\":%lld,\"first_batch\":%d,\"batches\":%d,\"samples\":%d,"
             "\"version\":%d}",
             (int)request->epoch, (long long)request->run, (int)request->first_batch, (int)batches,
             (int)batches, (int)request->version);
    const struct parcel parcel = {text_of(head), values, BATCHES};
    work_update_key(request, key);
    if (parcel_encode(&parcel, &bytes, &error) < 0)
        return 3;
    return object_store_put(store, key, buffer_text(&bytes), true, &error) == 0 ? 0 : 1;
}

static pid_t start_writer(const struct work_request *request, uint64_t seed)
{
    const pid_t pid = fork();
    if (pid)
        return pid;
    struct random random;
    struct faulty_store faulty;
    random_init(&random, seed);
    open_faulty(&faulty, seed, 6);
    /* All of it, or a part as one that is out of time does. */
    const uint64_t batches = random_below(&random, 4)
                                 ? request->batch_count
                                 : 1 + random_below(&random, request->batch_count);
    _exit(write_update(&faulty.store, request, batches));
}

/* ---- The job --------------------------------------------------------------------------------- */

struct scene {
    struct faulty_store faulty;
    struct random random;
    struct lead *lead;
    struct epoch_plan *plan;
    struct work_job job;
    uint64_t run;
};

/* As a lead that was killed: nothing it had in memory is left. */
static void open_lead(struct scene *scene)
{
    const float zeros[BATCHES] = {0};
    struct error error = {0};
    epoch_plan_free(TAKE(scene->plan));
    lead_free(TAKE(scene->lead));
    scene->run += LEAD_RUN_STEP;
    const struct lead_options options = {.store = &scene->faulty.store,
                                         .job = &scene->job,
                                         .parameters = zeros,
                                         .parameter_count = BATCHES,
                                         .batch_count = BATCHES,
                                         .run = scene->run};
    while (lead_open(&options, &scene->lead, &error) < 0)
        assert_int_equal(error.code, ERROR_UNAVAILABLE);
    size_t covered_count;
    const struct batch_span *covered = lead_covered(scene->lead, &covered_count);
    scene->plan = epoch_plan_new(&(struct epoch_plan_options){.batch_count = BATCHES,
                                                              .span_batches = 3,
                                                              .staleness = 400,
                                                              .version = lead_version(scene->lead),
                                                              .seed = scene->run,
                                                              .covered = covered,
                                                              .covered_count = covered_count});
}

static void publish(struct scene *scene)
{
    struct error error = {0};
    while (lead_publish(scene->lead, scene->plan, epoch_plan_oldest(scene->plan), &error) < 0)
        assert_int_equal(error.code, ERROR_UNAVAILABLE);
}

/* 150 at once, all waited for, and what they left is added. */
static void run_wave(struct scene *scene)
{
    struct error error = {0};
    struct work_request requests[CONCURRENT];
    pid_t writers[2 * CONCURRENT];
    size_t count = 0, writer_count = 0;
    struct plan_task task;
    publish(scene);
    while (count < CONCURRENT && epoch_plan_take(scene->plan, lead_published(scene->lead), &task))
        requests[count++] = lead_request(scene->lead, &task);
    for (size_t i = 0; i < count; i++) {
        writers[writer_count++] = start_writer(&requests[i], random_u64(&scene->random));
        if (random_below(&scene->random, 5) == 0) /* the same again, as after a lost answer */
            writers[writer_count++] = start_writer(&requests[i], random_u64(&scene->random));
        if (random_below(&scene->random, 5) == 0)
            kill(writers[random_below(&scene->random, writer_count)], SIGKILL);
    }
    for (size_t i = 0; i < writer_count; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) <= 1);
    }
    for (size_t i = 0; i < count; i++) {
        struct work_update update;
        if (lead_fold(scene->lead, &requests[i], &update, &error) == 0)
            epoch_plan_fold(scene->plan, requests[i].first_batch, update.batches);
        else
            epoch_plan_fail(scene->plan, requests[i].first_batch);
    }
}

static int set_up(void **state __attribute__((unused)))
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state __attribute__((unused)))
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c) */
}

static void scene_done(struct scene *scene)
{
    epoch_plan_free(scene->plan);
    lead_free(scene->lead);
    object_store_free(scene->faulty.inner);
}

TEST(whoever_dies_or_repeats_each_update_is_added_once)
{
    struct scene scene = {.job = {.name = "sums"}, .run = RUN_BASE};
    random_init(&scene.random, 7);
    open_faulty(&scene.faulty, 9, 5);
    open_lead(&scene);
    int waves = 0, deaths = 0;
    while (!epoch_plan_is_complete(scene.plan)) {
        run_wave(&scene);
        assert_true(++waves < 200);
        if (random_below(&scene.random, 4) == 0 && deaths++ < 3)
            open_lead(&scene);
    }
    publish(&scene);
    const float *sums = lead_parameters(scene.lead);
    for (int i = 0; i < BATCHES; i++)
        assert_true(sums[i] == (float)(i + 1));
    assert_true(waves > 2);
    assert_int_equal(lead_samples(scene.lead), BATCHES);
    scene_done(&scene);
}

TEST(of_two_leads_one_goes_on)
{
    struct scene first = {.job = {.name = "two"}, .run = RUN_BASE};
    struct scene second = {.job = {.name = "two"}, .run = (uint64_t)2 * RUN_BASE};
    struct error error = {0};
    struct plan_task task;
    open_faulty(&first.faulty, 1, 0);
    open_faulty(&second.faulty, 1, 0);
    open_lead(&first);
    open_lead(&second);
    for (int i = 0; i < 2; i++) {
        struct scene *scene = i ? &second : &first;
        struct work_update update;
        assert_true(epoch_plan_take(scene->plan, 0, &task));
        const struct work_request request = lead_request(scene->lead, &task);
        assert_int_equal(write_update(&scene->faulty.store, &request, 1), 0);
        ASSERT_OK(lead_fold(scene->lead, &request, &update, &error));
        epoch_plan_fold(scene->plan, task.span.first, 1);
    }
    ASSERT_OK(lead_publish(first.lead, first.plan, 0, &error));
    ASSERT_FAILS(lead_publish(second.lead, second.plan, 0, &error), ERROR_CONFLICT);
    scene_done(&first);
    scene_done(&second);
}

/* Writes and adds the next update, of one batch. */
static void add_one(struct scene *scene)
{
    struct error error = {0};
    struct plan_task task;
    struct work_update update;
    assert_true(epoch_plan_take(scene->plan, lead_published(scene->lead), &task));
    const struct work_request request = lead_request(scene->lead, &task);
    assert_int_equal(write_update(scene->faulty.inner, &request, 1), 0);
    ASSERT_OK(lead_fold(scene->lead, &request, &update, &error));
    epoch_plan_fold(scene->plan, task.span.first, 1);
}

/* The lead is gone around the put of a key, at model 2, and another counts up to 2 and beyond. */
static void assert_goes_on_after(const char *job, const char *key, enum fault fault,
                                 uint64_t version)
{
    struct scene scene = {.run = RUN_BASE};
    struct error error = {0};
    snprintf(scene.job.name, sizeof(scene.job.name), "%s", job);
    open_faulty(&scene.faulty, 1, 0);
    open_lead(&scene);
    add_one(&scene);
    ASSERT_OK(lead_publish(scene.lead, scene.plan, 0, &error));
    add_one(&scene);
    scene.faulty.put_key = key;
    scene.faulty.put_fault = fault;
    ASSERT_FAILS(lead_publish(scene.lead, scene.plan, 0, &error), ERROR_UNAVAILABLE);
    scene.faulty.put_key = NULL;
    open_lead(&scene);
    assert_int_equal(lead_version(scene.lead), version);
    for (int i = 0; i < 3; i++) {
        add_one(&scene);
        ASSERT_OK(lead_publish(scene.lead, scene.plan, 0, &error));
    }
    open_lead(&scene);
    assert_int_equal(lead_version(scene.lead), version + 3);
    assert_int_equal(epoch_plan_covered_count(scene.plan), version + 3);
    scene_done(&scene);
}

TEST(a_lead_that_dies_while_it_publishes_is_followed)
{
    assert_goes_on_after("a", "models/a/newest", FAULT_BEFORE, 1);
    assert_goes_on_after("b", "models/b/newest", FAULT_AFTER, 1);
    assert_goes_on_after("c", "models/c/2", FAULT_BEFORE, 1);
    assert_goes_on_after("d", "models/d/2", FAULT_AFTER, 2);
}

/* It was put though the store said otherwise, then the lead went on to the next and died there. */
TEST(a_model_that_was_passed_over_is_in_nobodys_way)
{
    struct scene scene = {.job = {.name = "over"}, .run = RUN_BASE};
    struct error error = {0};
    open_faulty(&scene.faulty, 1, 0);
    open_lead(&scene);
    add_one(&scene);
    scene.faulty.put_fault = FAULT_AFTER;
    scene.faulty.put_key = "models/over/1";
    ASSERT_FAILS(lead_publish(scene.lead, scene.plan, 0, &error), ERROR_UNAVAILABLE);
    add_one(&scene);
    scene.faulty.put_fault = FAULT_BEFORE;
    scene.faulty.put_key = "models/over/2";
    ASSERT_FAILS(lead_publish(scene.lead, scene.plan, 0, &error), ERROR_UNAVAILABLE);
    scene.faulty.put_key = NULL;
    open_lead(&scene);
    assert_int_equal(lead_version(scene.lead), 0);
    add_one(&scene);
    ASSERT_OK(lead_publish(scene.lead, scene.plan, 0, &error));
    assert_int_equal(lead_published(scene.lead), 1);
    scene_done(&scene);
}

TEST(what_is_no_update_of_the_call_changes_nothing)
{
    struct scene scene = {.job = {.name = "odd"}, .run = RUN_BASE};
    struct error error = {0};
    struct plan_task task;
    struct work_update update;
    char key[OBJECT_KEY_SIZE];
    open_faulty(&scene.faulty, 1, 0);
    open_lead(&scene);
    assert_true(epoch_plan_take(scene.plan, 0, &task));
    struct work_request request = lead_request(scene.lead, &task);
    ASSERT_FAILS(lead_fold(scene.lead, &request, &update, &error), ERROR_NOT_FOUND);
    work_update_key(&request, key);
    ASSERT_OK(object_store_put(scene.faulty.inner, key, TEXT("garbage"), true, &error));
    ASSERT_FAILS(lead_fold(scene.lead, &request, &update, &error), ERROR_CORRUPT);
    epoch_plan_spoil(scene.plan, task.span.first);
    assert_true(epoch_plan_take(scene.plan, 0, &task));
    request = lead_request(scene.lead, &task);
    struct work_request longer = request;
    longer.batch_count += 3; /* an update of more than was asked for */
    assert_int_equal(write_update(&scene.faulty.store, &longer, longer.batch_count), 0);
    ASSERT_FAILS(lead_fold(scene.lead, &request, &update, &error), ERROR_CORRUPT);
    assert_int_equal(lead_version(scene.lead), 0);
    for (int i = 0; i < BATCHES; i++)
        assert_true(lead_parameters(scene.lead)[i] == 0);
    scene_done(&scene);
}

TEST(an_update_that_is_longer_than_the_model_is_none)
{
    struct scene scene = {.job = {.name = "long"}, .run = RUN_BASE};
    struct error error = {0};
    struct plan_task task;
    struct work_update update;
    char key[OBJECT_KEY_SIZE], path[OBJECT_KEY_SIZE + 64];
    open_faulty(&scene.faulty, 1, 0);
    open_lead(&scene);
    assert_true(epoch_plan_take(scene.plan, 0, &task));
    const struct work_request request = lead_request(scene.lead, &task);
    assert_int_equal(write_update(scene.faulty.inner, &request, 1), 0);
    work_update_key(&request, key);
    snprintf(path, sizeof(path), "%s/%s", folder, key);
    assert_int_equal(truncate(path, (off_t)1 << 32), 0);
    /* Not EXHAUSTED, of which nothing could be made: the span goes out under another key. */
    ASSERT_FAILS(lead_fold(scene.lead, &request, &update, &error), ERROR_CORRUPT);
    assert_int_equal(lead_version(scene.lead), 0);
    scene_done(&scene);
}

static bool is_there(struct object_store *store, const char *key)
{
    struct error error = {0};
    char byte;
    return object_store_read_part(store, key, 0, &byte, 1, &error) == 0;
}

TEST(what_a_job_put_is_taken_away_its_description_last)
{
    static const char *const keys[] = {"models/done/newest", "models/done/2", "data/done/images",
                                       "data/done/labels", "jobs/done"};
    enum { COUNT = sizeof(keys) / sizeof(*keys) };
    struct scene scene = {.job = {.name = "done"}, .run = RUN_BASE};
    struct error error = {0};
    open_faulty(&scene.faulty, 1, 0);
    for (int i = 2; i < COUNT; i++)
        ASSERT_OK(object_store_put(scene.faulty.inner, keys[i], TEXT("{}"), true, &error));
    open_lead(&scene);
    for (int i = 0; i < 2; i++) {
        add_one(&scene);
        ASSERT_OK(lead_publish(scene.lead, scene.plan, lead_version(scene.lead), &error));
    }
    scene.faulty.one_in = 1; /* all fails */
    ASSERT_FAILS(lead_clear(scene.lead, &error), ERROR_UNAVAILABLE);
    for (int i = 0; i < COUNT; i++)
        assert_true(is_there(scene.faulty.inner, keys[i]));
    scene.faulty.one_in = 0;
    ASSERT_OK(lead_clear(scene.lead, &error));
    for (int i = 0; i < COUNT; i++)
        assert_false(is_there(scene.faulty.inner, keys[i]));
    scene_done(&scene);
}

TEST(a_job_whose_lead_is_gone_is_forgotten)
{
    static const char *const keys[] = {"models/gone/newest", "models/gone/0", "data/gone/images",
                                       "jobs/gone"};
    enum { COUNT = sizeof(keys) / sizeof(*keys) };
    struct scene scene = {.job = {.name = "gone"}, .run = RUN_BASE};
    struct error error = {0};
    open_faulty(&scene.faulty, 1, 0);
    for (int i = 2; i < COUNT; i++)
        ASSERT_OK(object_store_put(scene.faulty.inner, keys[i], TEXT("{}"), true, &error));
    open_lead(&scene);
    assert_true(is_there(scene.faulty.inner, keys[1]));
    ASSERT_FAILS(lead_forget(scene.faulty.inner, "gone/../other", &error), ERROR_INVALID);
    ASSERT_FAILS(lead_forget(scene.faulty.inner, "other", &error), ERROR_NOT_FOUND);
    ASSERT_OK(lead_forget(scene.faulty.inner, "gone", &error));
    for (int i = 0; i < COUNT; i++)
        assert_false(is_there(scene.faulty.inner, keys[i]));
    ASSERT_FAILS(lead_forget(scene.faulty.inner, "gone", &error), ERROR_NOT_FOUND);
    scene_done(&scene);
}

TEST(calls_are_told_the_token_that_is_good_now)
{
    struct scene scene = {.job = {.name = "told"}, .run = RUN_BASE};
    struct plan_task task;
    open_faulty(&scene.faulty, 1, 0);
    open_lead(&scene);
    assert_true(epoch_plan_take(scene.plan, 0, &task));
    assert_int_equal(lead_request(scene.lead, &task).token.size, 0);
    lead_set_token(scene.lead, "first");
    lead_set_token(scene.lead, "second");
    assert_true(text_equal(lead_request(scene.lead, &task).token, TEXT("second")));
    scene_done(&scene);
}

/* Where a model was put that says it has these batches. */
static void assert_no_model(const char *job, const char *spans)
{
    struct faulty_store faulty;
    struct error error = {0};
    struct work_job work = {0};
    struct lead *lead = NULL;
    const float zeros[BATCHES] = {0};
    char key[OBJECT_KEY_SIZE], head[256];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 20);
    snprintf(work.name, sizeof(work.name), "%s", job);
    snprintf(head, sizeof(head), "{\"version\":2,\"epoch\":0,\"samples\":2,\"spans\":[%s]}", spans);
    open_faulty(&faulty, 1, 0);
    ASSERT_OK(parcel_encode(&(struct parcel){text_of(head), zeros, BATCHES}, &bytes, &error));
    work_model_key(job, 2, key);
    ASSERT_OK(object_store_put(faulty.inner, key, buffer_text(&bytes), true, &error));
    snprintf(key, sizeof(key), "models/%s/newest", job);
    ASSERT_OK(object_store_put(faulty.inner, key, TEXT("{\"version\":2}"), true, &error));
    const struct lead_options options = {.store = &faulty.store,
                                         .job = &work,
                                         .parameters = zeros,
                                         .parameter_count = BATCHES,
                                         .batch_count = BATCHES,
                                         .run = RUN_BASE};
    ASSERT_FAILS(lead_open(&options, &lead, &error), ERROR_CORRUPT);
    object_store_free(faulty.inner);
}

TEST(a_model_of_batches_that_cannot_be_is_none)
{
    assert_no_model("past", "{\"first\":600,\"count\":1}");
    assert_no_model("long", "{\"first\":599,\"count\":2}");
    assert_no_model("huge", "{\"first\":1,\"count\":9223372036854775807}");
    assert_no_model("twice", "{\"first\":0,\"count\":3},{\"first\":2,\"count\":3}");
    assert_no_model("falling", "{\"first\":9,\"count\":3},{\"first\":2,\"count\":3}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_dies_or_repeats_each_update_is_added_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(of_two_leads_one_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lead_that_dies_while_it_publishes_is_followed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_model_that_was_passed_over_is_in_nobodys_way, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_update_that_is_longer_than_the_model_is_none, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_job_put_is_taken_away_its_description_last, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_whose_lead_is_gone_is_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_are_told_the_token_that_is_good_now, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_model_of_batches_that_cannot_be_is_none, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_update_of_the_call_changes_nothing, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
