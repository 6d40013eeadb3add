#include "market/pair.h"
#include "testing/testing.h"

enum { MANY = 3 * MACHINE_PAIRS_MAX };

static struct machine machine_at(uint64_t id, int64_t rtt_us)
{
    return (struct machine){.id = id, .probe = {.rtt_us = rtt_us}};
}

TEST(both_ends_know_the_smaller_of_a_direct_path_and_the_market)
{
    struct machine a = machine_at(1, 30000), b = machine_at(2, 40000), unknown = machine_at(3, 0);
    assert_int_equal(pair_rtt_us(&a, &b, 0), 70000);
    assert_int_equal(pair_rtt_us(&a, &unknown, 0), 0);
    pair_put(&b, &a, 900, 5);
    assert_int_equal(pair_rtt_us(&a, &b, 5), 900);
    assert_int_equal(pair_rtt_us(&b, &a, 5), 900);
    assert_int_equal(pair_nearest_us(&a, 5), 900);
    pair_put(&a, &b, 80000, 6);
    assert_int_equal(pair_rtt_us(&a, &b, 6), 70000);
    assert_int_equal(pair_direct_us(&a, &b, 6), 80000);
    pair_put(&a, &unknown, 1500, 6);
    assert_int_equal(pair_rtt_us(&unknown, &a, 6), 1500);
    assert_int_equal(pair_nearness_us(&a), 1500);
    pair_free(&a);
    pair_free(&b);
    pair_free(&unknown);
}

TEST(what_is_old_says_nothing)
{
    struct machine a = machine_at(1, 30000), b = machine_at(2, 40000);
    pair_put(&a, &b, 900, 1000);
    assert_int_equal(pair_direct_us(&a, &b, 1000 + PAIR_FRESH_MS - 1), 900);
    assert_int_equal(pair_direct_us(&a, &b, 1000 + PAIR_FRESH_MS), 0);
    assert_int_equal(pair_rtt_us(&a, &b, 1000 + PAIR_FRESH_MS), 70000);
    assert_int_equal(pair_nearest_us(&a, 1000 + PAIR_FRESH_MS), 0);
    pair_free(&a);
    pair_free(&b);
}

TEST(the_table_is_bounded_and_the_oldest_goes_at_both_ends)
{
    static struct machine machines[MANY];
    for (uint64_t i = 0; i < MANY; i++)
        machines[i] = machine_at(i + 1, 0);
    for (int64_t i = 1; i < MANY; i++)
        pair_put(&machines[0], &machines[i], i, i);
    assert_int_equal(machines[0].pairs->count, MACHINE_PAIRS_MAX);
    assert_false(pair_is_known(&machines[0], &machines[1]));
    assert_false(pair_is_known(&machines[1], &machines[0]));
    assert_int_equal(machines[1].pairs->count, 0);
    assert_int_equal(pair_direct_us(&machines[MANY - 1], &machines[0], MANY), MANY - 1);
    pair_forget_machine(&machines[0]);
    assert_null(machines[0].pairs);
    assert_false(pair_is_known(&machines[MANY - 1], &machines[0]));
    for (size_t i = 0; i < MANY; i++)
        pair_free(&machines[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_know_the_smaller_of_a_direct_path_and_the_market),
        cmocka_unit_test(what_is_old_says_nothing),
        cmocka_unit_test(the_table_is_bounded_and_the_oldest_goes_at_both_ends),
    };
    return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
