/* covers owner_line_call.c */
#include "base/clock.h"
#include "peer/owner_line.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct world {
    char dir[200];
    struct loop *loop;
    struct owner_line *line;
    struct owner_request last;
    int request_count;
};

static void on_request(void *context, const struct owner_request *request,
                       struct json_writer *writer)
{
    struct world *world = context;
    world->last = *request;
    world->request_count++;
    json_object_begin(writer);
    json_field_string(writer, request->verb == OWNER_DRAIN ? "error" : "level", "full");
    json_object_end(writer);
    if (request->verb == OWNER_STOP)
        loop_stop(world->loop);
}

static void world_init(struct world *world)
{
    struct error error;
    *world = (struct world){0};
    /* Longer than a socket's address may be. */
    char parent[] = "/tmp/souk-line-test-XXXXXX";
    assert_non_null(mkdtemp(parent));
    snprintf(world->dir, sizeof(world->dir), "%s/%0120d", parent, 0);
    assert_int_equal(mkdir(world->dir, 0700), 0);
    ASSERT_OK(loop_open(&clock_system, &world->loop, &error));
    ASSERT_OK(owner_line_open(world->loop, world->dir, on_request, world, &world->line, &error));
}

static void world_done(struct world *world)
{
    struct error error;
    owner_line_free(world->line);
    loop_free(world->loop);
    *strrchr(world->dir, '/') = '\0';
    ASSERT_OK(folder_remove(world->dir, &error));
}

struct call {
    const struct world *world;
    struct owner_request request;
    struct buffer answer;
    int result;
    struct error error;
    atomic_bool is_over;
};

static void *run_call(void *context)
{
    struct call *call = context;
    call->result = owner_line_call(call->world->dir, &call->request, &call->answer, &call->error);
    atomic_store(&call->is_over, true);
    return NULL;
}

/* Asks from another thread while this one is the daemon. */
static void ask(struct world *world, struct call *call)
{
    struct error error;
    pthread_t thread;
    call->world = world;
    buffer_init(&call->answer, OWNER_LINE_ANSWER_MAX);
    assert_int_equal(pthread_create(&thread, NULL, run_call, call), 0);
    while (!atomic_load(&call->is_over)) {
        ASSERT_OK(loop_step(world->loop, 20, &error));
        if (loop_is_stopping(world->loop))
            owner_line_free(TAKE(world->line));
    }
    pthread_join(thread, NULL);
}

TEST(a_request_is_carried_out_and_answered)
{
    struct world world;
    world_init(&world);
    struct call call = {.request = {.verb = OWNER_PAUSE, .for_ms = 1800000}};
    ask(&world, &call);
    assert_int_equal(call.result, 0);
    assert_string_equal(buffer_string(&call.answer), "{\"level\":\"full\"}\n");
    assert_int_equal(world.last.verb, OWNER_PAUSE);
    assert_int_equal(world.last.for_ms, 1800000);
    buffer_done(&call.answer);
    world_done(&world);
}

TEST(the_daemons_refusal_is_the_callers_error)
{
    struct world world;
    world_init(&world);
    struct call call = {.request = {.verb = OWNER_DRAIN}};
    ask(&world, &call);
    assert_int_equal(call.result, -1);
    assert_int_equal(call.error.code, ERROR_REFUSED);
    assert_string_equal(call.error.message, "full");
    buffer_done(&call.answer);
    world_done(&world);
}

TEST(stop_returns_when_the_daemon_has_ended)
{
    struct world world;
    world_init(&world);
    struct call call = {.request = {.verb = OWNER_STOP}};
    ask(&world, &call);
    assert_int_equal(call.result, 0);
    assert_null(world.line);
    buffer_done(&call.answer);
    world_done(&world);
}

TEST(without_a_daemon_there_is_a_plain_error)
{
    struct world world;
    struct error error;
    world_init(&world);
    owner_line_free(TAKE(world.line));
    struct buffer answer AUTO_BUFFER;
    buffer_init(&answer, 100);
    const struct owner_request request = {.verb = OWNER_STATUS};
    ASSERT_FAILS(owner_line_call(world.dir, &request, &answer, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(owner_line_call("/nowhere/at/all", &request, &answer, &error), ERROR_NOT_FOUND);
    world_done(&world);
}

TEST(only_its_user_may_reach_it_and_a_dead_ones_socket_is_replaced)
{
    struct world world;
    struct error error;
    world_init(&world);
    char path[256];
    struct stat status;
    snprintf(path, sizeof(path), "%s/owner.socket", world.dir);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    struct owner_line *second = NULL;
    ASSERT_OK(owner_line_open(world.loop, world.dir, on_request, &world, &second, &error));
    owner_line_free(second);
    world_done(&world);
}

static int dial(const struct world *world)
{
    assert_int_equal(chdir(world->dir), 0);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "owner.socket"};
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(chdir("/"), 0);
    return fd;
}

TEST(nonsense_and_floods_are_refused)
{
    struct world world;
    struct error error;
    world_init(&world);
    AUTO_FD int fd = dial(&world);
    assert_int_equal(write(fd, "{\"do\":\"dance\"}\n", 15), 15);
    char answer[256] = "";
    while (recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT) < 0)
        ASSERT_OK(loop_step(world.loop, 10, &error));
    assert_non_null(strstr(answer, "\"error\":\"request.do"));

    AUTO_FD int flood_fd = dial(&world);
    char flood[OWNER_LINE_REQUEST_MAX + 1];
    memset(flood, 'x', sizeof(flood));
    assert_int_equal(write(flood_fd, flood, sizeof(flood)), sizeof(flood));
    while (send(flood_fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        ASSERT_OK(loop_step(world.loop, 10, &error));
    assert_int_equal(world.request_count, 0);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_carried_out_and_answered),
        cmocka_unit_test(the_daemons_refusal_is_the_callers_error),
        cmocka_unit_test(stop_returns_when_the_daemon_has_ended),
        cmocka_unit_test(without_a_daemon_there_is_a_plain_error),
        cmocka_unit_test(only_its_user_may_reach_it_and_a_dead_ones_socket_is_replaced),
        cmocka_unit_test(nonsense_and_floods_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
