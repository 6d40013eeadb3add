/*
 * Calls of a lease's functions, to a host elsewhere that answers as the tests say; time passes as
 * they say, too. The tests are the lease's process.
 * covers tenancy_call.c, tenancy_function.c
 */
#include "base/memory.h"
#include "function/invoker.h"
#include "function/object_store.h"
#include "net/http_server.h"
#include "peer/carrier.h"
#include "peer/tenancy_function_internal.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FUNCTIONS = 2, TIME_MS = 1000, START_MS = 10000, SKIPPED = 77 };

enum reply { REPLY_DONE, REPLY_ERROR, REPLY_EMPTY, REPLY_FORBIDDEN, REPLY_THROTTLE, REPLY_BREAK };

struct scene {
    char folder[40], their_place[64], url[64];
    struct virtual_clock clock;
    struct loop *loop;
    struct http_server *server;
    struct object_store *own, *theirs;
    struct tenancy_host host;
    struct tenancy *tenancy;
    int process_fd;
    struct arena *arena;
    bool is_deaf; /* what is called is answered later */
    uint64_t waiting[FUNCTIONS];
    enum reply reply;
    int64_t billed_ms; /* as the host reports it; -1: it does not */
    int asked;
    int carried;
    bool is_cleared;
};

/* ---- The host -------------------------------------------------------------------------------- */

static void advance(struct scene *scene, int64_t ms)
{
    virtual_clock_advance(&scene->clock, ms * 1000000);
}

static void report(struct scene *scene, struct http_request *request)
{
    struct error error = {0};
    char line[128], encoded[256];
    snprintf(line, sizeof(line), "REPORT RequestId: 1\tDuration: 1.0 ms\tBilled Duration: %d ms\t",
             (int)scene->billed_ms);
    sodium_bin2base64(encoded, sizeof(encoded), (const uint8_t *)line, strlen(line),
                      sodium_base64_VARIANT_ORIGINAL);
    ASSERT_OK(http_reply_header(request, "X-Amz-Log-Result", encoded, &error));
}

static void answer(struct scene *scene, struct http_request *request)
{
    struct error error = {0};
    static const int statuses[] = {
        [REPLY_DONE] = 200,      [REPLY_ERROR] = 200, [REPLY_EMPTY] = 200,
        [REPLY_FORBIDDEN] = 403, [REPLY_BREAK] = 500, [REPLY_THROTTLE] = 429};
    const struct text body = scene->reply == REPLY_DONE    ? TEXT("{\"batches_done\":2}")
                             : scene->reply == REPLY_EMPTY ? TEXT("")
                                                           : TEXT("{\"errorMessage\":\"no\"}");
    if (scene->billed_ms >= 0)
        report(scene, request);
    if (scene->reply == REPLY_ERROR)
        ASSERT_OK(http_reply_header(request, "X-Amz-Function-Error", "Unhandled", &error));
    http_reply(request, statuses[scene->reply], "application/json", body);
}

static void on_invocation(struct http_request *request, void *context)
{
    struct scene *scene = context;
    scene->waiting[scene->asked++ % FUNCTIONS] = http_request_id(request);
    if (!scene->is_deaf)
        answer(scene, request);
}

static const struct http_route routes[] = {
    {"POST", "/2015-03-31/functions/train/invocations", 1 << 16, on_invocation, 0},
};

static void open_host(struct scene *scene)
{
    struct error error = {0};
    struct address any;
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    const struct http_server_options options = {
        .loop = scene->loop, .listen = any, .routes = routes, .route_count = 1, .context = scene};
    ASSERT_OK(http_server_open(&options, &scene->server, &error));
    snprintf(scene->url, sizeof(scene->url), "http://127.0.0.1:%d",
             http_server_port(scene->server));
}

/* ---- The lease ------------------------------------------------------------------------------- */

static void put(struct object_store *store, const char *key)
{
    struct error error = {0};
    ASSERT_OK(object_store_put(store, key, TEXT("bytes"), false, &error));
}

static void open_tenancy(struct scene *scene)
{
    struct error error = {0};
    int fds[2];
    scene->host.folder = scene->folder;
    scene->host.loop = scene->loop;
    scene->host.disk_bytes = 1 << 20;
    scene->host.functions =
        (struct keeper_functions){.memory_mb = 256,
                                  .time_ms = TIME_MS,
                                  .process_bytes = UINT64_C(1) << 30,
                                  .name = TEXT("train"),
                                  .url = text_of(scene->url),
                                  .token = TEXT("0123456789abcdef0123456789abcdef"),
                                  .store = text_of(scene->their_place)};
    struct tenancy *tenancy = memory_zeroed(1, sizeof(*tenancy));
    tenancy->host = &scene->host;
    tenancy->document = (struct lease_document){.lease = 5,
                                                .fence = 6,
                                                .role = LEASE_ROLE_WORKER,
                                                .ram_bytes = INT64_C(512) << 20,
                                                .cores_milli = 1000};
    list_init(&tenancy->streams);
    list_init(&tenancy->uploads);
    ASSERT_OK(child_socket_pair(fds, &error));
    tenancy->control_fd = fds[0];
    scene->process_fd = fds[1];
    assert_int_equal(fcntl(scene->process_fd, F_SETFL, O_NONBLOCK), 0);
    scene->tenancy = tenancy;
    ASSERT_OK(tenancy_open_functions(tenancy, &error));
    assert_int_equal(tenancy_function_count(tenancy), FUNCTIONS);
}

static int set_up(void **state)
{
    struct error error = {0};
    char place[64];
    struct scene *scene = calloc(1, sizeof(*scene));
    *state = scene;
    scene->billed_ms = -1;
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/souk-calls-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->their_place, sizeof(scene->their_place), "%s/theirs", scene->folder);
    ASSERT_OK(folder_make(scene->their_place, 0755, &error));
    virtual_clock_init(&scene->clock, 0);
    advance(scene, 1);
    scene->arena = arena_new(0);
    ASSERT_OK(loop_open(&scene->clock.clock, &scene->loop, &error));
    ASSERT_OK(sandbox_host_open(scene->folder, NULL, &scene->host.sandboxes, &error));
    open_host(scene);
    open_tenancy(scene);
    snprintf(place, sizeof(place), "%s/functions", scene->folder);
    ASSERT_OK(
        object_store_open(&(struct object_store_options){.place = place}, &scene->own, &error));
    ASSERT_OK(object_store_open(&(struct object_store_options){.place = scene->their_place},
                                &scene->theirs, &error));
    put(scene->own, "jobs/lease-5-6");
    put(scene->own, "data/lease-5-6/images");
    put(scene->own, "models/lease-5-6/1");
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    struct error error = {0};
    tenancy_free_functions(scene->tenancy);
    close(scene->tenancy->control_fd);
    close(scene->process_fd);
    free(scene->tenancy);
    http_server_free(scene->server);
    object_store_free(scene->own);
    object_store_free(scene->theirs);
    sandbox_host_free(scene->host.sandboxes);
    loop_free(scene->loop);
    arena_free(scene->arena);
    ASSERT_OK(folder_remove(scene->folder, &error));
    free(scene);
    return 0;
}

/* ---- The process ----------------------------------------------------------------------------- */

static struct function_call *call_at(const struct scene *scene, uint32_t index)
{
    return &scene->tenancy->functions->calls[index];
}

static void call(struct scene *scene, uint32_t number)
{
    char json[200], key[64];
    snprintf(json, sizeof(json),
             "{\"job\":\"lease-5-6\",\"epoch\":0,\"run\":1,\"first_batch\":%u,\"batch_count\":2,"
             "\"version\":1}",
             number);
    snprintf(key, sizeof(key), "updates/lease-5-6/0-1-%u", number);
    put(scene->theirs, key); /* as the function would */
    tenancy_call_function(scene->tenancy, number, text_of(json));
}

static void step(struct scene *scene)
{
    struct error error = {0};
    ASSERT_OK(loop_step(scene->loop, 20, &error));
}

static void wait_for_asked(struct scene *scene, int count)
{
    while (scene->asked < count)
        step(scene);
    assert_int_equal(scene->asked, count);
}

static void wait_for_timer(struct scene *scene, uint32_t index)
{
    while (!loop_timer_is_running(call_at(scene, index)->timer))
        step(scene);
}

/* What the process is told next. */
static struct child_message receive(struct scene *scene)
{
    struct error error = {0};
    struct child_message message;
    bool has_ended = false;
    while (child_message_receive(scene->process_fd, scene->arena, &message, &has_ended, &error) <
           0) {
        assert_int_equal(error.code, ERROR_UNAVAILABLE);
        step(scene);
    }
    return message;
}

static void assert_called(struct scene *scene, uint32_t number, bool is_ok, const char *words)
{
    const struct child_message message = receive(scene);
    assert_int_equal(message.kind, CHILD_CALLED);
    assert_int_equal(message.called.number, number);
    assert_int_equal(message.called.is_ok, is_ok);
    if (!memmem(message.called.json.data, message.called.json.size, words, strlen(words)))
        fail_msg("\"%s\" is not in " TEXT_FORMAT, words, TEXT_ARGS(message.called.json));
    assert_false(scene->tenancy->has_failed);
}

static void on_carried(void *context, const struct error *reason)
{
    (void)reason;
    ((struct scene *)context)->carried++;
}

/* Whatever was begun before has been brought, and is under way, once this is. */
static void assert_nothing_begun(struct scene *scene)
{
    const struct work_request request = {.job = "lease-5-6", .run = 1, .version = 1};
    const int before = scene->carried;
    struct error error = {0};
    ASSERT_OK(loop_step(scene->loop, 0, &error)); /* timers that are due */
    carrier_bring(scene->tenancy->functions->carrier, &request, on_carried, scene);
    while (scene->carried == before)
        step(scene);
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        assert_int_equal(call_at(scene, i)->begun_ns, 0);
}

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
    assert_called(scene, 1, false, "for 60 s others took all of the function's calls");
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
    advance(scene, 3600 * 1000);
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
