#include "net/loop.h"
#include "testing/testing.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct loop *loop;
    int pair[2];
    struct loop_watch *watches[2];
    struct loop_timer *timers[3];
    int calls;
    char order[16];
    uint32_t events;
};

static void fixture_open(struct fixture *fixture, const struct clock *clock)
{
    struct error error = {0};
    *fixture = (struct fixture){0};
    ASSERT_OK(loop_open(clock, &fixture->loop, &error));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fixture->pair), 0);
}

static void fixture_close(struct fixture *fixture)
{
    for (int i = 0; i < 2; i++)
        loop_watch_free(fixture->watches[i]);
    for (int i = 0; i < 3; i++)
        loop_timer_free(fixture->timers[i]);
    loop_free(fixture->loop);
    close(fixture->pair[0]);
    close(fixture->pair[1]);
}

static void note_events(void *context, uint32_t events)
{
    struct fixture *fixture = context;
    fixture->calls++;
    fixture->events = events;
}

TEST(a_readable_descriptor_is_reported_until_interest_is_dropped)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    ASSERT_OK(loop_watch_open(fixture.loop, fixture.pair[0], LOOP_READ, note_events, &fixture,
                              &fixture.watches[0], &error));
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_int_equal(fixture.calls, 0);
    assert_int_equal(write(fixture.pair[1], "x", 1), 1);
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_int_equal(fixture.calls, 2);
    assert_int_equal(fixture.events, LOOP_READ);

    loop_watch_set(fixture.watches[0], LOOP_WRITE);
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_int_equal(fixture.events, LOOP_WRITE);

    loop_watch_set(fixture.watches[0], 0);
    fixture.calls = 0;
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_int_equal(fixture.calls, 0);
    fixture_close(&fixture);
}

static void free_both(void *context, uint32_t events __attribute__((unused)))
{
    struct fixture *fixture = context;
    fixture->calls++;
    for (int i = 0; i < 2; i++) {
        loop_watch_free(fixture->watches[i]);
        fixture->watches[i] = NULL;
    }
}

TEST(a_watch_released_in_a_callback_gets_no_event_that_was_waiting)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    for (int i = 0; i < 2; i++)
        ASSERT_OK(loop_watch_open(fixture.loop, fixture.pair[i], LOOP_WRITE, free_both, &fixture,
                                  &fixture.watches[i], &error));
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_int_equal(fixture.calls, 1);
    fixture_close(&fixture);
}

TEST(a_closed_peer_is_a_hangup)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    ASSERT_OK(loop_watch_open(fixture.loop, fixture.pair[0], LOOP_READ, note_events, &fixture,
                              &fixture.watches[0], &error));
    close(fixture.pair[1]);
    fixture.pair[1] = dup(fixture.pair[0]);
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_int_equal(fixture.events, LOOP_READ | LOOP_HANGUP);
    fixture_close(&fixture);
}

struct named_timer {
    struct fixture *fixture;
    char name;
    bool starts_again;
};

static void note_timer(void *context)
{
    struct named_timer *named = context;
    struct fixture *fixture = named->fixture;
    fixture->order[fixture->calls++] = named->name;
    if (named->starts_again)
        loop_timer_start(fixture->timers[named->name - 'a'], 0);
}

TEST(timers_are_called_in_the_order_they_fall_due)
{
    struct error error = {0};
    struct virtual_clock clock;
    virtual_clock_init(&clock, 0);
    struct fixture fixture;
    fixture_open(&fixture, &clock.clock);
    struct named_timer named[3];
    const int64_t delays_ms[3] = {30, 10, 20};
    for (int i = 0; i < 3; i++) {
        named[i] = (struct named_timer){&fixture, (char)('a' + i), false};
        fixture.timers[i] = loop_timer_new(fixture.loop, note_timer, &named[i]);
        loop_timer_start(fixture.timers[i], delays_ms[i]);
    }
    virtual_clock_advance(&clock, 9000000);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_int_equal(fixture.calls, 0);
    virtual_clock_advance(&clock, 21000000);
    loop_timer_stop(fixture.timers[2]);
    assert_false(loop_timer_is_running(fixture.timers[2]));
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_string_equal(fixture.order, "ba");
    fixture_close(&fixture);
}

TEST(a_timer_started_in_a_callback_waits_for_the_next_turn)
{
    struct error error = {0};
    struct virtual_clock clock;
    virtual_clock_init(&clock, 0);
    struct fixture fixture;
    fixture_open(&fixture, &clock.clock);
    struct named_timer named = {&fixture, 'a', true};
    fixture.timers[0] = loop_timer_new(fixture.loop, note_timer, &named);
    loop_timer_start(fixture.timers[0], 0);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_int_equal(fixture.calls, 1);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    assert_int_equal(fixture.calls, 2);
    fixture_close(&fixture);
}

struct due_timer {
    int64_t due_ms;
    int64_t *last_ms;
    int calls;
};

static void note_due(void *context)
{
    struct due_timer *due = context;
    assert_true(due->due_ms >= *due->last_ms);
    *due->last_ms = due->due_ms;
    due->calls++;
}

TEST(many_timers_keep_their_order_when_some_are_stopped)
{
    enum { COUNT = 200 };
    struct error error = {0};
    struct virtual_clock clock;
    virtual_clock_init(&clock, 0);
    struct fixture fixture;
    fixture_open(&fixture, &clock.clock);
    struct due_timer dues[COUNT];
    struct loop_timer *timers[COUNT];
    int64_t last_ms = -1;
    for (int i = 0; i < COUNT; i++) {
        dues[i] = (struct due_timer){.due_ms = (i * 7919) % 1000, .last_ms = &last_ms};
        timers[i] = loop_timer_new(fixture.loop, note_due, &dues[i]);
        loop_timer_start(timers[i], dues[i].due_ms);
    }
    for (int i = 0; i < COUNT; i += 3)
        loop_timer_stop(timers[i]);
    virtual_clock_advance(&clock, 1000000000);
    ASSERT_OK(loop_step(fixture.loop, 0, &error));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(dues[i].calls, i % 3 == 0 ? 0 : 1);
        loop_timer_free(timers[i]);
    }
    fixture_close(&fixture);
}

static void stop_after_two(void *context)
{
    struct fixture *fixture = context;
    if (++fixture->calls == 2)
        loop_stop(fixture->loop);
}

static void *post_from_thread(void *context)
{
    struct fixture *fixture = context;
    loop_post(fixture->loop, stop_after_two, fixture);
    return NULL;
}

TEST(work_posted_by_other_threads_runs_on_the_loop)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_from_thread, &fixture), 0);
    ASSERT_OK(loop_run(fixture.loop, &error));
    assert_int_equal(fixture.calls, 2);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    fixture_close(&fixture);
}

TEST(work_still_posted_when_the_loop_is_released_is_run)
{
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    loop_post(fixture.loop, stop_after_two, &fixture);
    struct loop *loop = fixture.loop;
    loop_free(loop);
    fixture.loop = NULL;
    assert_int_equal(fixture.calls, 1);
    fixture_close(&fixture);
}

static void note_signal(void *context)
{
    struct fixture *fixture = context;
    fixture->calls++;
}

TEST(a_signal_is_an_event)
{
    struct error error = {0};
    struct fixture fixture;
    fixture_open(&fixture, &clock_system);
    struct loop_signal *signal = NULL;
    ASSERT_OK(loop_signal_open(fixture.loop, SIGUSR1, note_signal, &fixture, &signal, &error));
    kill(getpid(), SIGUSR1);
    ASSERT_OK(loop_step(fixture.loop, -1, &error));
    assert_int_equal(fixture.calls, 1);
    loop_signal_free(signal);
    fixture_close(&fixture);
}

static void note_exit(void *context, const struct child_exit *child_exit)
{
    *(struct child_exit *)context = *child_exit;
}

static struct child_exit exit_of(pid_t pid)
{
    struct error error = {0};
    AUTO(loop) struct loop *loop = NULL;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    struct loop_child *child = NULL;
    struct child_exit seen = {0};
    ASSERT_OK(loop_child_open(loop, pid, note_exit, &seen, &child, &error));
    while (seen.pid == 0)
        ASSERT_OK(loop_step(loop, -1, &error));
    loop_child_free(child);
    return seen;
}

TEST(a_child_is_reaped_with_its_status_or_signal)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    struct child_exit seen = exit_of(pid);
    assert_int_equal(seen.status, 7);
    assert_int_equal(seen.signal, 0);

    pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    kill(pid, SIGKILL);
    seen = exit_of(pid);
    assert_int_equal(seen.signal, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_readable_descriptor_is_reported_until_interest_is_dropped),
        cmocka_unit_test(a_watch_released_in_a_callback_gets_no_event_that_was_waiting),
        cmocka_unit_test(a_closed_peer_is_a_hangup),
        cmocka_unit_test(timers_are_called_in_the_order_they_fall_due),
        cmocka_unit_test(a_timer_started_in_a_callback_waits_for_the_next_turn),
        cmocka_unit_test(many_timers_keep_their_order_when_some_are_stopped),
        cmocka_unit_test(work_posted_by_other_threads_runs_on_the_loop),
        cmocka_unit_test(work_still_posted_when_the_loop_is_released_is_run),
        cmocka_unit_test(a_signal_is_an_event),
        cmocka_unit_test(a_child_is_reaped_with_its_status_or_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
