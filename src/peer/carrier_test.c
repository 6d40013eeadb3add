#include "function/object_store.h"
#include "net/http_server.h"
#include "peer/carrier.h"
#include "source/remote.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scene {
    char folder[40], own_place[64], their_place[64];
    struct loop *loop;
    struct object_store *own, *theirs;
    struct carrier *carrier;
    int answered;
    enum error_code code; /* of the last answer that says why not */
    int failed;
    int ended;
};

static int set_up(void **state)
{
    struct error error = {0};
    struct scene *scene = calloc(1, sizeof(*scene));
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/souk-carrier-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->own_place, sizeof(scene->own_place), "%s/own", scene->folder);
    snprintf(scene->their_place, sizeof(scene->their_place), "%s/theirs", scene->folder);
    assert_int_equal(mkdir(scene->own_place, 0755), 0);
    assert_int_equal(mkdir(scene->their_place, 0755), 0);
    ASSERT_OK(object_store_open(&(struct object_store_options){.place = scene->own_place},
                                &scene->own, &error));
    ASSERT_OK(object_store_open(&(struct object_store_options){.place = scene->their_place},
                                &scene->theirs, &error));
    ASSERT_OK(loop_open(&clock_system, &scene->loop, &error));
    const struct carrier_options options = {.loop = scene->loop,
                                            .own = scene->own_place,
                                            .place = scene->their_place,
                                            .job = "lease-5-6",
                                            .data_bytes_max = 64};
    ASSERT_OK(carrier_open(&options, &scene->carrier, &error));
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    char command[64];
    carrier_free(scene->carrier);
    object_store_free(scene->own);
    object_store_free(scene->theirs);
    loop_free(scene->loop);
    snprintf(command, sizeof(command), "rm -rf %s", scene->folder);
    free(scene);
    return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c) */
}

static void put(struct object_store *store, const char *key, const char *words)
{
    struct error error = {0};
    ASSERT_OK(object_store_put(store, key, text_of(words), true, &error));
}

static void assert_there(struct object_store *store, const char *key, const char *words)
{
    struct error error = {0};
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 64);
    if (!words) {
        ASSERT_FAILS(object_store_read(store, key, &bytes, &error), ERROR_NOT_FOUND);
        return;
    }
    ASSERT_OK(object_store_read(store, key, &bytes, &error));
    assert_true(text_equal(buffer_text(&bytes), text_of(words)));
}

static void put_job(struct scene *scene)
{
    put(scene->own, "jobs/lease-5-6", "job");
    put(scene->own, "data/lease-5-6/images", "records");
    put(scene->own, "models/lease-5-6/1", "first");
}

static struct work_request request_of(uint64_t version)
{
    return (struct work_request){
        .job = "lease-5-6", .run = version, .first_batch = 3, .batch_count = 2, .version = version};
}

static void on_answer(void *context, const struct error *reason)
{
    struct scene *scene = context;
    scene->answered++;
    if (reason) {
        scene->failed++;
        scene->code = reason->code;
    }
}

static void wait_for_answers(struct scene *scene, int count)
{
    struct error error = {0};
    while (scene->answered < count)
        ASSERT_OK(loop_step(scene->loop, -1, &error));
}

static void on_ended(void *context)
{
    ((struct scene *)context)->ended++;
}

static void end_carrier(struct scene *scene)
{
    struct error error = {0};
    carrier_end(scene->carrier, on_ended, scene);
    while (scene->ended == 0)
        ASSERT_OK(loop_step(scene->loop, -1, &error));
    carrier_free(TAKE(scene->carrier));
    assert_int_equal(scene->ended, 1);
}

static void what_a_call_needs_is_brought_and_the_model_before_goes(void **state)
{
    struct scene *scene = *state;
    const struct work_request first = request_of(1), second = request_of(2);
    put_job(scene); /* which has no labels */
    carrier_bring(scene->carrier, &first, on_answer, scene);
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 2);
    assert_int_equal(scene->failed, 0);
    assert_there(scene->theirs, "jobs/lease-5-6", "job");
    assert_there(scene->theirs, "data/lease-5-6/images", "records");
    assert_there(scene->theirs, "models/lease-5-6/1", "first");
    put(scene->own, "models/lease-5-6/2", "second");
    carrier_bring(scene->carrier, &second, on_answer, scene);
    wait_for_answers(scene, 3);
    assert_int_equal(scene->failed, 0);
    assert_there(scene->theirs, "models/lease-5-6/1", NULL);
    assert_there(scene->theirs, "models/lease-5-6/2", "second");
}

static void an_update_is_fetched_and_goes_there(void **state)
{
    struct scene *scene = *state;
    const struct work_request first = request_of(1);
    put(scene->theirs, "updates/lease-5-6/0-1-3", "learnt");
    carrier_fetch(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 1);
    assert_int_equal(scene->failed, 0);
    assert_there(scene->own, "updates/lease-5-6/0-1-3", "learnt");
    assert_there(scene->theirs, "updates/lease-5-6/0-1-3", NULL);
}

static void what_is_not_there_is_told_and_may_be_asked_for_again(void **state)
{
    struct scene *scene = *state;
    const struct work_request second = request_of(2);
    put_job(scene);
    carrier_bring(scene->carrier, &second, on_answer, scene);
    carrier_fetch(scene->carrier, &second, on_answer, scene);
    wait_for_answers(scene, 2);
    assert_int_equal(scene->failed, 2);
    assert_int_equal(scene->code, ERROR_NOT_FOUND);
    put(scene->own, "models/lease-5-6/2", "second");
    carrier_bring(scene->carrier, &second, on_answer, scene);
    wait_for_answers(scene, 3);
    assert_int_equal(scene->failed, 2);
}

static void what_is_no_file_or_too_long_is_not_carried(void **state)
{
    struct scene *scene = *state;
    const struct work_request first = request_of(1);
    char path[96], records[66] = "";
    put_job(scene);
    snprintf(path, sizeof(path), "%s/data/lease-5-6/labels", scene->own_place);
    assert_int_equal(mkfifo(path, 0644), 0);
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 1);
    assert_int_equal(scene->code, ERROR_REFUSED);
    assert_int_equal(unlink(path), 0);
    memset(records, 'r', sizeof(records) - 1);
    put(scene->own, "data/lease-5-6/labels", records);
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 2);
    assert_int_equal(scene->code, ERROR_EXHAUSTED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 3);
    assert_int_equal(scene->failed, 3);
    assert_there(scene->theirs, "data/lease-5-6/labels", NULL);
}

static void at_the_end_nothing_of_the_job_is_left_there(void **state)
{
    struct scene *scene = *state;
    const struct work_request first = request_of(1);
    put_job(scene);
    put(scene->own, "data/lease-5-6/labels", "told");
    put(scene->theirs, "jobs/other", "job");
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 1);
    carrier_bring(scene->carrier, &first, on_answer, scene); /* which nobody hears of */
    end_carrier(scene);
    assert_int_equal(scene->answered, 1);
    assert_there(scene->theirs, "jobs/lease-5-6", NULL);
    assert_there(scene->theirs, "data/lease-5-6/images", NULL);
    assert_there(scene->theirs, "data/lease-5-6/labels", NULL);
    assert_there(scene->theirs, "models/lease-5-6/1", NULL);
    assert_there(scene->theirs, "jobs/other", "job");
}

static void what_cannot_be_deleted_keeps_nothing_else_there(void **state)
{
    struct scene *scene = *state;
    const struct work_request first = request_of(1), second = request_of(2);
    char path[96];
    put_job(scene);
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 1);
    snprintf(path, sizeof(path), "%s/models/lease-5-6/1", scene->their_place);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0); /* which is no object */
    put(scene->own, "models/lease-5-6/2", "second");
    carrier_bring(scene->carrier, &second, on_answer, scene);
    wait_for_answers(scene, 2);
    assert_int_equal(scene->failed, 0);
    end_carrier(scene);
    assert_there(scene->theirs, "models/lease-5-6/2", NULL);
    assert_there(scene->theirs, "data/lease-5-6/images", NULL);
    assert_there(scene->theirs, "jobs/lease-5-6", NULL);
}

static void models_that_stayed_are_deleted_once_they_can_be(void **state)
{
    struct scene *scene = *state;
    char path[96], key[64];
    put_job(scene);
    for (uint64_t i = 1; i <= 3; i++) {
        const struct work_request request = request_of(i);
        snprintf(key, sizeof(key), "models/lease-5-6/%d", (int)i);
        if (i > 1)
            put(scene->own, key, "model");
        carrier_bring(scene->carrier, &request, on_answer, scene);
        wait_for_answers(scene, (int)i);
        if (i == 3)
            break;
        snprintf(path, sizeof(path), "%s/models/lease-5-6/%d", scene->their_place, (int)i);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0755), 0); /* which cannot be deleted */
    }
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof(path), "%s/models/lease-5-6/%d", scene->their_place, i);
        assert_int_equal(rmdir(path), 0);
        snprintf(key, sizeof(key), "models/lease-5-6/%d", i);
        put(scene->theirs, key, "it is away no more");
    }
    end_carrier(scene);
    assert_there(scene->theirs, "models/lease-5-6/1", NULL);
    assert_there(scene->theirs, "models/lease-5-6/2", NULL);
    assert_there(scene->theirs, "models/lease-5-6/3", NULL);
}

static void what_was_brought_in_part_goes_too(void **state)
{
    struct scene *scene = *state;
    const struct work_request first = request_of(1);
    put(scene->own, "data/lease-5-6/images", "records"); /* and no job */
    carrier_bring(scene->carrier, &first, on_answer, scene);
    wait_for_answers(scene, 1);
    assert_int_equal(scene->failed, 1);
    assert_there(scene->theirs, "data/lease-5-6/images", "records");
    end_carrier(scene);
    assert_there(scene->theirs, "data/lease-5-6/images", NULL);
}

/* ---- A store that hangs ---------------------------------------------------------------------- */

/* An S3 on the loop of the carrier's owner: who waits for the one waits for the other, for ever. */
struct bucket {
    struct http_server *server;
    struct carrier *carrier;
    const char *deaf_to; /* what is put: a part of its path; NULL: nothing */
    bool is_deaf_to_delete;
    int put, deleted, unanswered;
};

static void take_request(struct http_request *request, void *context)
{
    struct bucket *bucket = context;
    const bool is_put = text_is(http_request_method(request), "PUT");
    const struct text path = http_request_path(request);
    const bool is_deaf_to_put =
        bucket->deaf_to && memmem(path.data, path.size, bucket->deaf_to, strlen(bucket->deaf_to));
    if (is_put ? is_deaf_to_put : bucket->is_deaf_to_delete) {
        bucket->unanswered++;
        return;
    }
    bucket->put += is_put;
    bucket->deleted += !is_put;
    http_reply(request, is_put ? 200 : 204, "text/plain", TEXT(""));
}

static const struct http_route routes[] = {
    {"PUT", "/{key...}", 1 << 16, take_request, 0},
    {"DELETE", "/{key...}", 0, take_request, 0},
};

static void open_bucket(struct scene *scene, struct bucket *bucket, int64_t end_ms)
{
    struct error error = {0};
    struct remote_credentials credentials = {.access_key = "key", .secret_key = "secret"};
    struct address any;
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    const struct http_server_options server = {
        .loop = scene->loop, .listen = any, .routes = routes, .route_count = 2, .context = bucket};
    ASSERT_OK(http_server_open(&server, &bucket->server, &error));
    snprintf(credentials.endpoint_url, sizeof(credentials.endpoint_url), "http://127.0.0.1:%d",
             http_server_port(bucket->server));
    const struct carrier_options options = {.loop = scene->loop,
                                            .own = scene->own_place,
                                            .place = "s3://bucket/souk",
                                            .credentials = &credentials,
                                            .job = "lease-5-6",
                                            .data_bytes_max = 64,
                                            .end_ms = end_ms};
    ASSERT_OK(carrier_open(&options, &bucket->carrier, &error));
    put_job(scene);
}

static void step_until(struct scene *scene, const int *number, int least)
{
    struct error error = {0};
    while (*number < least)
        ASSERT_OK(loop_step(scene->loop, -1, &error));
}

static void end_of_a_bring_that_hangs_takes_away_what_may_be_there(void **state)
{
    struct scene *scene = *state;
    struct bucket bucket = {.deaf_to = "/data/"};
    const struct work_request first = request_of(1);
    open_bucket(scene, &bucket, 0);
    carrier_bring(bucket.carrier, &first, on_answer, scene);
    step_until(scene, &bucket.unanswered, 1);
    carrier_end(bucket.carrier, on_ended, scene);
    step_until(scene, &scene->ended, 1);
    assert_int_equal(bucket.deleted, 3); /* both parts of the records, and the job */
    assert_int_equal(scene->answered, 0);
    carrier_free(bucket.carrier);
    http_server_free(bucket.server);
}

static void model_that_was_being_put_goes_too(void **state)
{
    struct scene *scene = *state;
    struct bucket bucket = {.deaf_to = "/models/"};
    const struct work_request first = request_of(1);
    open_bucket(scene, &bucket, 0);
    carrier_bring(bucket.carrier, &first, on_answer, scene);
    step_until(scene, &bucket.unanswered, 1);
    carrier_end(bucket.carrier, on_ended, scene);
    step_until(scene, &scene->ended, 1);
    assert_int_equal(bucket.deleted, 4);
    carrier_free(bucket.carrier);
    http_server_free(bucket.server);
}

static void end_is_told_where_nothing_can_be_taken_away(void **state)
{
    struct scene *scene = *state;
    struct bucket bucket = {.is_deaf_to_delete = true};
    const struct work_request first = request_of(1);
    open_bucket(scene, &bucket, 1);
    carrier_bring(bucket.carrier, &first, on_answer, scene);
    wait_for_answers(scene, 1);
    assert_int_equal(scene->failed, 0);
    assert_int_equal(bucket.put, 3); /* there are no labels */
    carrier_end(bucket.carrier, on_ended, scene);
    step_until(scene, &scene->ended, 1);
    assert_int_equal(bucket.deleted, 0);
    carrier_free(bucket.carrier);
    http_server_free(bucket.server);
}

static void letting_go_of_a_carrier_waits_for_nothing(void **state)
{
    struct scene *scene = *state;
    struct bucket bucket = {.deaf_to = "/data/"};
    const struct work_request first = request_of(1);
    open_bucket(scene, &bucket, 0);
    carrier_bring(bucket.carrier, &first, on_answer, scene);
    step_until(scene, &bucket.unanswered, 1);
    carrier_free(bucket.carrier);
    step_until(scene, &bucket.deleted, 3); /* its thread goes on, and frees what it used */
    assert_int_equal(scene->answered, 0);
    http_server_free(bucket.server);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(what_a_call_needs_is_brought_and_the_model_before_goes),
        SCENE_TEST(an_update_is_fetched_and_goes_there),
        SCENE_TEST(what_is_not_there_is_told_and_may_be_asked_for_again),
        SCENE_TEST(what_is_no_file_or_too_long_is_not_carried),
        SCENE_TEST(what_cannot_be_deleted_keeps_nothing_else_there),
        SCENE_TEST(at_the_end_nothing_of_the_job_is_left_there),
        SCENE_TEST(models_that_stayed_are_deleted_once_they_can_be),
        SCENE_TEST(what_was_brought_in_part_goes_too),
        SCENE_TEST(end_of_a_bring_that_hangs_takes_away_what_may_be_there),
        SCENE_TEST(model_that_was_being_put_goes_too),
        SCENE_TEST(end_is_told_where_nothing_can_be_taken_away),
        SCENE_TEST(letting_go_of_a_carrier_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
