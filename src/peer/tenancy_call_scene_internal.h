/*
 * Scene of calls: a lease whose functions are those of a host elsewhere, which answers as the test
 * says; time passes as it says, too. The test is the lease's process.
 */
#pragma once

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

static inline void advance(struct scene *scene, int64_t ms)
{
    virtual_clock_advance(&scene->clock, ms * 1000000);
}

static inline void report(struct scene *scene, struct http_request *request)
{
    struct error error = {0};
    char line[128], encoded[256];
    snprintf(line, sizeof(line), "REPORT RequestId: 1\tDuration: 1.0 ms\tBilled Duration: %d ms\t",
             (int)scene->billed_ms);
    sodium_bin2base64(encoded, sizeof(encoded), (const uint8_t *)line, strlen(line),
                      sodium_base64_VARIANT_ORIGINAL);
    ASSERT_OK(http_reply_header(request, "X-Amz-Log-Result", encoded, &error));
}

static inline void answer(struct scene *scene, struct http_request *request)
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

static inline void on_invocation(struct http_request *request, void *context)
{
    struct scene *scene = context;
    scene->waiting[scene->asked++ % FUNCTIONS] = http_request_id(request);
    if (!scene->is_deaf)
        answer(scene, request);
}

static const struct http_route routes[] = {
    {"POST", "/2015-03-31/functions/train/invocations", 1 << 16, on_invocation, 0},
};

static inline void open_host(struct scene *scene)
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

static inline void put(struct object_store *store, const char *key)
{
    struct error error = {0};
    ASSERT_OK(object_store_put(store, key, TEXT("bytes"), false, &error));
}

static inline void open_tenancy(struct scene *scene)
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

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

static inline struct function_call *call_at(const struct scene *scene, uint32_t index)
{
    return &scene->tenancy->functions->calls[index];
}

static inline void call(struct scene *scene, uint32_t number)
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

static inline void step(struct scene *scene)
{
    struct error error = {0};
    ASSERT_OK(loop_step(scene->loop, 20, &error));
}

static inline void wait_for_asked(struct scene *scene, int count)
{
    while (scene->asked < count)
        step(scene);
    assert_int_equal(scene->asked, count);
}

static inline void wait_for_timer(struct scene *scene, uint32_t index)
{
    while (!loop_timer_is_running(call_at(scene, index)->timer))
        step(scene);
}

/* What the process is told next. */
static inline struct child_message receive(struct scene *scene)
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

static inline void assert_called(struct scene *scene, uint32_t number, bool is_ok,
                                 const char *words)
{
    const struct child_message message = receive(scene);
    assert_int_equal(message.kind, CHILD_CALLED);
    assert_int_equal(message.called.number, number);
    assert_int_equal(message.called.is_ok, is_ok);
    if (!memmem(message.called.json.data, message.called.json.size, words, strlen(words)))
        fail_msg("\"%s\" is not in " TEXT_FORMAT, words, TEXT_ARGS(message.called.json));
    assert_false(scene->tenancy->has_failed);
}

static inline void on_carried(void *context, const struct error *reason)
{
    (void)reason;
    ((struct scene *)context)->carried++;
}

/* Whatever was begun before has been brought, and is under way, once this is. */
static inline void assert_nothing_begun(struct scene *scene)
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
