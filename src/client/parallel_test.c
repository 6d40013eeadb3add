#include "client/parallel.h"
#include "testing/testing.h"

#include <stdatomic.h>

enum { ITEMS = 1000 };

struct tally {
    atomic_int done[ITEMS];
    atomic_size_t worker_max;
    size_t failing; /* ITEMS: none */
};

static int count_one(void *context, size_t worker, size_t index, struct error *error)
{
    struct tally *tally = context;
    if (index >= tally->failing)
        return error_set(error, ERROR_CONFLICT, "item %zu", index);
    atomic_fetch_add(&tally->done[index], 1);
    if (worker > atomic_load(&tally->worker_max))
        atomic_store(&tally->worker_max, worker);
    return 0;
}

static void each_is_done_once_by_a_worker_of_the_count(void **state)
{
    (void)state;
    for (size_t workers = 1; workers <= PARALLEL_WORKERS_MAX; workers++) {
        struct error error;
        struct tally tally = {.failing = ITEMS};
        ASSERT_OK(parallel_each(workers, ITEMS, count_one, &tally, &error));
        for (size_t i = 0; i < ITEMS; i++)
            assert_int_equal(atomic_load(&tally.done[i]), 1);
        assert_true(atomic_load(&tally.worker_max) < workers);
    }
}

static void nothing_to_do_is_done(void **state)
{
    (void)state;
    struct error error;
    struct tally tally = {.failing = 0};
    ASSERT_OK(parallel_each(4, 0, count_one, &tally, &error));
}

static void a_failure_ends_it_and_is_told(void **state)
{
    (void)state;
    struct error error;
    struct tally tally = {.failing = 100};
    ASSERT_FAILS(parallel_each(4, ITEMS, count_one, &tally, &error), ERROR_CONFLICT);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(atomic_load(&tally.done[i]), 1);
    for (size_t i = 100; i < ITEMS; i++)
        assert_int_equal(atomic_load(&tally.done[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_done_once_by_a_worker_of_the_count),
        cmocka_unit_test(nothing_to_do_is_done),
        cmocka_unit_test(a_failure_ends_it_and_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
