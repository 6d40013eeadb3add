#include "base/random.h"
#include "core/timers.h"
#include "testing/testing.h"

TEST(timers_come_in_the_order_of_time_and_then_id)
{
    struct timers timers = {0};
    struct timer timer;
    struct random random;
    random_init(&random, 3);
    assert_false(timers_first(&timers, &timer));
    for (uint64_t id = 1; id <= 1000; id++)
        timers_add(&timers, (int64_t)random_below(&random, 50), id);
    struct timer last = {0};
    for (int i = 0; i < 1000; i++) {
        assert_true(timers_first(&timers, &timer));
        assert_true(timer.at_ms > last.at_ms || (timer.at_ms == last.at_ms && timer.id > last.id));
        last = timer;
        timers_pop(&timers);
        if (i % 3 == 0 && timer.at_ms < 40) {
            timers_add(&timers, 60 + i, 5000 + (uint64_t)i);
            assert_true(timers_first(&timers, &timer));
        }
    }
    timers_done(&timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_come_in_the_order_of_time_and_then_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
