/* Calls of a lease's functions, and what becomes of them.
 * covers tenancy_call.c, tenancy_function.c */
#include "peer/tenancy_call_scene_internal.h"

/* ---- Tests ----------------------------------------------------------------------------------- */

static void an_answer_comes_with_its_update(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 64);
    call(scene, 3);
    assert_called(scene, 3, true, "batches_done");
    ASSERT_OK(object_store_read(scene->own, "updates/lease-5-6/0-1-3", &bytes, &error));
    ASSERT_FAILS(object_store_read(scene->theirs, "updates/lease-5-6/0-1-3", &bytes, &error),
                 ERROR_NOT_FOUND);
    ASSERT_OK(object_store_read(scene->theirs, "models/lease-5-6/1", &bytes, &error));
}

static void one_too_many_waits_a_minute_and_costs_nothing(void **state)
{
    struct scene *scene = *state;
    scene->reply = REPLY_THROTTLE;
    call(scene, 1);
    wait_for_asked(scene, 1);
    wait_for_timer(scene, 0);
    advance(scene, 499);
    assert_nothing_begun(scene);
    advance(scene, 1);
    wait_for_asked(scene, 2);
    for (int i = 3; i < 5; i++) {
        wait_for_timer(scene, 0);
        advance(scene, 29000);
        wait_for_asked(scene, i);
    }
    wait_for_timer(scene, 0);
    advance(scene, 29000);
    assert_called(scene, 1, false, "for 60 s no call was let in");
    assert_int_equal(tenancy_called_ms(scene->tenancy), 0);
    scene->reply = REPLY_DONE; /* the next is not held to what was before */
    call(scene, 2);
    assert_called(scene, 2, true, "batches_done");
}

static void a_lost_call_is_made_again_ever_later_and_given_up(void **state)
{
    struct scene *scene = *state;
    scene->reply = REPLY_BREAK;
    call(scene, 1);
    for (int i = 0; i < 4; i++) {
        wait_for_asked(scene, i + 1);
        wait_for_timer(scene, 0);
        advance(scene, (1000 << i) - 1);
        assert_nothing_begun(scene);
        advance(scene, 1);
    }
    wait_for_asked(scene, 5);
    assert_called(scene, 1, false, "status 500");
}

static void what_a_host_refuses_or_leaves_empty_is_told(void **state)
{
    struct scene *scene = *state;
    scene->reply = REPLY_FORBIDDEN;
    call(scene, 1);
    assert_called(scene, 1, false, "status 403");
    scene->reply = REPLY_EMPTY;
    call(scene, 2);
    assert_called(scene, 2, false, "its answer is empty");
    scene->reply = REPLY_ERROR;
    call(scene, 3);
    assert_called(scene, 3, false, "{\"errorMessage\":\"no\"}");
}

static void a_call_that_hangs_counts_for_no_longer_than_it_can_run(void **state)
{
    struct scene *scene = *state;
    scene->is_deaf = true;
    call(scene, 1);
    wait_for_asked(scene, 1);
    advance(scene, 300);
    assert_int_equal(tenancy_called_ms(scene->tenancy), 300 / FUNCTIONS);
    advance(scene, 3600000);
    assert_int_equal(tenancy_called_ms(scene->tenancy), (TIME_MS + START_MS) / FUNCTIONS);
    answer(scene, http_server_find(scene->server, scene->waiting[0]));
    assert_called(scene, 1, true, "batches_done");
    assert_int_equal(tenancy_called_ms(scene->tenancy), (TIME_MS + START_MS) / FUNCTIONS);
}

static void a_call_counts_for_no_longer_than_it_was_waited_for(void **state)
{
    struct scene *scene = *state;
    static const struct {
        int64_t told_ms, counted_ms;
    } cases[] = {{10, 10}, {40, 40}, {5000, 40}, {-1, 40}, {0, 0}};
    int64_t sum_ms = 0;
    scene->is_deaf = true;
    for (int i = 0; i < 5; i++) {
        scene->billed_ms = cases[i].told_ms;
        call(scene, 1);
        wait_for_asked(scene, i + 1);
        advance(scene, 40);
        answer(scene, http_server_find(scene->server, scene->waiting[i % FUNCTIONS]));
        assert_called(scene, 1, true, "batches_done");
        sum_ms += cases[i].counted_ms;
        assert_int_equal(tenancy_called_ms(scene->tenancy), sum_ms / FUNCTIONS);
    }
}

static void answers_wait_while_the_owner_has_the_process_held_still(void **state)
{
    struct scene *scene = *state;
    scene->is_deaf = true;
    call(scene, 1);
    wait_for_asked(scene, 1);
    tenancy_yield_functions(scene->tenancy, YIELD_FROZEN);
    answer(scene, http_server_find(scene->server, scene->waiting[0]));
    while (!call_at(scene, 0)->is_answered)
        step(scene);
    assert_nothing_begun(scene);
    assert_true(call_at(scene, 0)->is_used);
    tenancy_yield_functions(scene->tenancy, YIELD_LOW);
    assert_called(scene, 1, true, "batches_done");
    assert_int_equal(scene->asked, 1);
}

static void a_call_withdrawn_for_the_owner_is_made_again_later(void **state)
{
    struct scene *scene = *state;
    scene->is_deaf = true;
    scene->reply = REPLY_ERROR;
    call(scene, 1);
    wait_for_asked(scene, 1);
    tenancy_yield_functions(scene->tenancy, YIELD_FROZEN);
    answer(scene, http_server_find(scene->server, scene->waiting[0]));
    while (!call_at(scene, 0)->is_waiting)
        step(scene);
    assert_nothing_begun(scene);
    scene->is_deaf = false;
    scene->reply = REPLY_DONE;
    tenancy_yield_functions(scene->tenancy, YIELD_FULL);
    assert_called(scene, 1, true, "batches_done");
    assert_int_equal(scene->asked, 2);
}

static void a_lease_that_is_stopped_begins_no_calls(void **state)
{
    struct scene *scene = *state;
    tenancy_yield_functions(scene->tenancy, YIELD_FROZEN);
    call(scene, 1);
    scene->tenancy->is_stop_wanted = true;
    tenancy_yield_functions(scene->tenancy, YIELD_LOW);
    assert_nothing_begun(scene);
    assert_int_equal(scene->asked, 0);
}

static void no_call_is_made_again_for_a_process_that_has_ended(void **state)
{
    struct scene *scene = *state;
    scene->reply = REPLY_BREAK;
    call(scene, 1);
    wait_for_asked(scene, 1);
    wait_for_timer(scene, 0);
    scene->tenancy->has_exited = true;
    advance(scene, 1000);
    assert_nothing_begun(scene);
    assert_int_equal(scene->asked, 1);
}

/* Its socket is full; then it reads, and the owner's word comes before the next try. */
static void an_answer_that_found_no_room_is_told_once(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    static const char words[CHILD_TEXT_MAX];
    const struct child_message filling = {.kind = CHILD_STOP,
                                          .stop = {.reason = {words, sizeof(words)}}};
    while (tenancy_offer_to_child(scene->tenancy, &filling))
        ;
    call(scene, 1);
    wait_for_timer(scene, 0);
    assert_true(call_at(scene, 0)->is_answered);
    struct child_message message;
    bool has_ended = false;
    while (child_message_receive(scene->process_fd, scene->arena, &message, &has_ended, &error) ==
           0)
        assert_int_equal(message.kind, CHILD_STOP);
    tenancy_yield_functions(scene->tenancy, YIELD_LOW);
    assert_called(scene, 1, true, "batches_done");
    advance(scene, 1000);
    assert_nothing_begun(scene);
    assert_int_equal(scene->asked, 1);
}

static void a_process_that_calls_out_of_turn_fails_its_lease(void **state)
{
    struct scene *scene = *state;
    scene->is_deaf = true;
    for (uint32_t number = 1; number <= FUNCTIONS; number++)
        call(scene, number);
    wait_for_asked(scene, FUNCTIONS);
    assert_false(scene->tenancy->has_failed);
    call(scene, FUNCTIONS + 1);
    assert_true(scene->tenancy->has_failed);
    assert_string_equal(scene->tenancy->reason,
                        "the process makes more calls than it has functions");
}

static void a_process_that_calls_for_another_job_fails_its_lease(void **state)
{
    struct scene *scene = *state;
    tenancy_call_function(scene->tenancy, 1,
                          TEXT("{\"job\":\"lease-5-7\",\"epoch\":0,\"run\":1,\"first_batch\":0,"
                               "\"batch_count\":2,\"version\":1}"));
    assert_true(scene->tenancy->has_failed);
    assert_nothing_begun(scene);
}

static void what_lies_in_the_store_counts_against_the_lease_s_disk(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct tenancy *tenancy = scene->tenancy;
    static const char records[2 << 20];
    const struct meter_usage none = {0};
    snprintf(tenancy->lease_folder, sizeof(tenancy->lease_folder), "%s/lease", scene->folder);
    ASSERT_OK(folder_make(tenancy->lease_folder, 0755, &error));
    meter_start(&tenancy->meter, &(struct lease_fence){5, 6}, 1000, tenancy_now_ns(tenancy), &none);
    tenancy->tick_timer = loop_timer_new(scene->loop, tenancy_on_tick, tenancy);
    tenancy_on_tick(tenancy);
    assert_false(tenancy->has_failed);
    ASSERT_OK(object_store_put(scene->own, "data/lease-5-6/labels",
                               (struct text){records, sizeof(records)}, true, &error));
    tenancy_on_tick(tenancy);
    assert_true(tenancy->has_failed);
    assert_string_equal(tenancy->reason, "the job filled the disk it was given");
    loop_timer_free(tenancy->tick_timer);
}

/* Of the process's share, which is none here, nothing can be set. */
static void functions_of_a_process_that_cannot_yield_stay_as_they_are(void **state)
{
    struct scene *scene = *state;
    struct tenancy *tenancy = scene->tenancy;
    tenancy_yield_functions(tenancy, YIELD_FROZEN);
    tenancy->yield = YIELD_FROZEN;
    tenancy->functions->share.own_milli = 0;
    call(scene, 1);
    tenancy_yield(tenancy, YIELD_LOW);
    assert_int_equal(tenancy->yield, YIELD_FROZEN);
    assert_true(tenancy->functions->is_held);
    assert_nothing_begun(scene);
}

static void the_process_sees_the_folders_of_its_store_and_not_what_they_lie_in(void **state)
{
    struct scene *scene = *state;
    struct sandbox_mount mounts[TENANCY_STORE_PARTS];
    const char *store = tenancy_function_store(scene->tenancy);
    static const char *const targets[] = {"/functions/jobs", "/functions/data", "/functions/models",
                                          "/functions/updates"};
    tenancy_function_mounts(scene->tenancy, mounts);
    for (int i = 0; i < TENANCY_STORE_PARTS; i++) {
        assert_string_equal(mounts[i].target, targets[i]);
        assert_true(mounts[i].is_writable);
        const char *name = mounts[i].source + strlen(store);
        assert_true(strncmp(mounts[i].source, store, strlen(store)) == 0 && name[0] == '/');
        assert_null(strchr(name + 1, '/')); /* whose folder is the keeper's */
    }
}

static void the_process_has_a_share_of_the_lease_and_of_the_room_here(void **state)
{
    const struct scene *scene = *state;
    assert_int_equal(tenancy_own_bytes(scene->tenancy), INT64_C(128) << 20);
    assert_int_equal(tenancy_own_milli(scene->tenancy), 250);
}

static void on_cleared(void *context)
{
    struct tenancy *tenancy = context;
    tenancy->is_cleared = true;
}

static void at_the_end_calls_stop_and_what_was_brought_goes(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 64);
    scene->is_deaf = true;
    call(scene, 1);
    wait_for_asked(scene, 1);
    tenancy_end_calls(scene->tenancy);
    scene->tenancy->has_ended = true;
    assert_true(tenancy_clear_functions(scene->tenancy, on_cleared));
    while (!scene->tenancy->is_cleared)
        step(scene);
    ASSERT_FAILS(object_store_read(scene->theirs, "models/lease-5-6/1", &bytes, &error),
                 ERROR_NOT_FOUND);
    ASSERT_FAILS(object_store_read(scene->theirs, "jobs/lease-5-6", &bytes, &error),
                 ERROR_NOT_FOUND);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(an_answer_comes_with_its_update),
        SCENE_TEST(one_too_many_waits_a_minute_and_costs_nothing),
        SCENE_TEST(a_lost_call_is_made_again_ever_later_and_given_up),
        SCENE_TEST(what_a_host_refuses_or_leaves_empty_is_told),
        SCENE_TEST(a_call_that_hangs_counts_for_no_longer_than_it_can_run),
        SCENE_TEST(a_call_counts_for_no_longer_than_it_was_waited_for),
        SCENE_TEST(answers_wait_while_the_owner_has_the_process_held_still),
        SCENE_TEST(a_call_withdrawn_for_the_owner_is_made_again_later),
        SCENE_TEST(a_lease_that_is_stopped_begins_no_calls),
        SCENE_TEST(no_call_is_made_again_for_a_process_that_has_ended),
        SCENE_TEST(an_answer_that_found_no_room_is_told_once),
        SCENE_TEST(a_process_that_calls_out_of_turn_fails_its_lease),
        SCENE_TEST(a_process_that_calls_for_another_job_fails_its_lease),
        SCENE_TEST(what_lies_in_the_store_counts_against_the_lease_s_disk),
        SCENE_TEST(functions_of_a_process_that_cannot_yield_stay_as_they_are),
        SCENE_TEST(the_process_sees_the_folders_of_its_store_and_not_what_they_lie_in),
        SCENE_TEST(the_process_has_a_share_of_the_lease_and_of_the_room_here),
        SCENE_TEST(at_the_end_calls_stop_and_what_was_brought_goes),
    };
    struct error error;
    struct sandbox_host *host = NULL;
    if (sandbox_host_open("/tmp", NULL, &host, &error) < 0) {
        fprintf(stderr, "skipped: %s\n", error.message);
        return SKIPPED;
    }
    sandbox_host_free(host);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
