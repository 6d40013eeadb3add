#include "server/background.h"
#include "testing/testing.h"

#include <pthread.h>

struct task {
    struct background_task task; /* first */
    pthread_t worked_on;
    int worked, done;
    pthread_mutex_t *gate; /* held until it may go on; may be NULL */
};

static void work(struct background_task *task)
{
    struct task *own = (struct task *)task;
    if (own->gate) {
        pthread_mutex_lock(own->gate);
        pthread_mutex_unlock(own->gate);
    }
    own->worked_on = pthread_self();
    own->worked++;
}

static void done(struct background_task *task)
{
    ((struct task *)task)->done++;
}

static struct task task_of(pthread_mutex_t *gate)
{
    return (struct task){.task = {.work = work, .done = done}, .gate = gate};
}

TEST(work_is_done_elsewhere_and_told_on_the_loop)
{
    struct loop *loop;
    struct background *background;
    struct task task = task_of(NULL);
    struct error error;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    ASSERT_OK(background_open(loop, 2, &background, &error));
    ASSERT_OK(background_submit(background, &task.task, &error));
    while (!task.done)
        ASSERT_OK(loop_step(loop, 1000, &error));
    assert_int_equal(task.worked, 1);
    assert_false(task.task.is_dropped);
    assert_false(pthread_equal(task.worked_on, pthread_self()));
    background_free(background);
    loop_free(loop);
}

TEST(too_many_are_refused_and_what_waits_at_the_end_is_dropped)
{
    struct loop *loop;
    struct background *background;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    struct task first = task_of(&gate), second = task_of(NULL), third = task_of(NULL);
    struct error error;
    ASSERT_OK(loop_open(&clock_system, &loop, &error));
    ASSERT_OK(background_open(loop, 2, &background, &error));
    pthread_mutex_lock(&gate);
    ASSERT_OK(background_submit(background, &first.task, &error));
    ASSERT_OK(background_submit(background, &second.task, &error));
    ASSERT_FAILS(background_submit(background, &third.task, &error), ERROR_UNAVAILABLE);
    pthread_mutex_unlock(&gate);
    background_free(background);
    while (!second.done)
        ASSERT_OK(loop_step(loop, 1000, &error));
    assert_int_equal(first.done, 1);
    assert_int_equal(second.worked + second.task.is_dropped, 1);
    assert_int_equal(third.done, 0);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_done_elsewhere_and_told_on_the_loop),
        cmocka_unit_test(too_many_are_refused_and_what_waits_at_the_end_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
