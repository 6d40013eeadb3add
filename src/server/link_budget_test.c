#include "runtime/lease_message.h"
#include "server/link_budget.h"
#include "testing/testing.h"

#define SECOND_NS INT64_C(1000000000)

enum { BURST = LINK_BUDGET_BASE * LINK_BUDGET_BURST_S };

/* How many of a message pass in `seconds` if each is said as soon as it may be. */
static int64_t passed(uint16_t type, size_t lease_count, int64_t seconds)
{
    struct link_budget budget = {0};
    int64_t now_ns = SECOND_NS, count = 0;
    while (now_ns < (1 + seconds) * SECOND_NS) {
        now_ns += link_budget_take(&budget, link_budget_cost(type, 1), lease_count, now_ns);
        count++;
    }
    return count;
}

TEST(a_burst_passes_and_then_the_rate_is_kept)
{
    const int64_t cost = link_budget_cost(LEASE_MESSAGE_YIELD, 1);
    const int64_t count = passed(LEASE_MESSAGE_YIELD, 0, 100);
    assert_in_range(count, INT64_C(100) * LINK_BUDGET_BASE / cost,
                    (INT64_C(100) + LINK_BUDGET_BURST_S) * LINK_BUDGET_BASE / cost + 2);
}

TEST(what_costs_the_market_more_passes_less_often)
{
    assert_true(passed(LEASE_MESSAGE_HELLO, 0, 60) < INT64_C(60) * 8);
    assert_true(passed(LEASE_MESSAGE_PROBE, 0, 60) < INT64_C(60) * 32);
    assert_true(passed(LEASE_MESSAGE_HEARTBEAT, 0, 60) > INT64_C(60) * 1000);
}

TEST(what_a_machine_with_many_leases_says_does_not_wait)
{
    /* Sixteen leases that print as much as their daemon lets them, for an hour, and are metered. */
    enum { LEASES = 16, PIECES = 256 };
    struct link_budget budget = {0};
    int64_t now_ns = SECOND_NS;
    for (int second = 0; second < 3600; second++) {
        for (int i = 0; i < LEASES; i++) {
            for (int k = 0; k < PIECES; k++)
                assert_int_equal(link_budget_take(&budget,
                                                  link_budget_cost(LEASE_MESSAGE_LOG, 4 << 10),
                                                  LEASES, now_ns),
                                 0);
            assert_int_equal(link_budget_take(&budget, link_budget_cost(LEASE_MESSAGE_METER, 200),
                                              LEASES, now_ns),
                             0);
        }
        now_ns += SECOND_NS;
    }
}

TEST(a_debt_is_waited_for_and_no_longer)
{
    struct link_budget budget = {0};
    assert_int_equal(link_budget_take(&budget, BURST, 0, SECOND_NS), 0);
    assert_int_equal(link_budget_take(&budget, LINK_BUDGET_BASE / 2, 0, SECOND_NS), SECOND_NS / 2);
    /* Half of it is paid, and one more unit is asked for. */
    const int64_t later_ns = SECOND_NS + SECOND_NS / 4;
    assert_in_range(link_budget_take(&budget, 1, 0, later_ns), SECOND_NS / 4, SECOND_NS / 3);
    assert_int_equal(link_budget_take(&budget, 1, 0, 2 * SECOND_NS), 0);
}

TEST(pieces_of_time_that_bring_no_unit_add_up)
{
    struct link_budget budget = {0};
    link_budget_take(&budget, BURST, 0, SECOND_NS);
    int64_t wait_ns = 0, now_ns = SECOND_NS;
    for (int i = 0; i < 2000; i++) { /* each a tenth of a unit's time */
        now_ns += SECOND_NS / LINK_BUDGET_BASE / 10;
        if (i % 20 == 19)
            wait_ns = link_budget_take(&budget, 2, 0, now_ns);
    }
    assert_in_range(wait_ns, 0, 2 * SECOND_NS / LINK_BUDGET_BASE);
}

TEST(silence_fills_it_up_and_no_further)
{
    struct link_budget budget = {0};
    link_budget_take(&budget, BURST, 0, SECOND_NS);
    assert_int_equal(link_budget_take(&budget, BURST, 0, 1000000 * SECOND_NS), 0);
    assert_true(link_budget_take(&budget, 1, 0, 1000000 * SECOND_NS) > 0);
    /* A clock that stands still or goes back brings nothing. */
    assert_true(link_budget_take(&budget, 1, 0, 999999 * SECOND_NS) > 0);
}

TEST(no_debt_lasts_longer_than_a_burst)
{
    struct link_budget budget = {0};
    for (int i = 0; i < 10000; i++)
        link_budget_take(&budget, link_budget_cost(LEASE_MESSAGE_HELLO, 512 << 10), 0, SECOND_NS);
    assert_true(link_budget_take(&budget, 1, 0, SECOND_NS) <= LINK_BUDGET_BURST_S * SECOND_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_passes_and_then_the_rate_is_kept),
        cmocka_unit_test(what_costs_the_market_more_passes_less_often),
        cmocka_unit_test(what_a_machine_with_many_leases_says_does_not_wait),
        cmocka_unit_test(a_debt_is_waited_for_and_no_longer),
        cmocka_unit_test(pieces_of_time_that_bring_no_unit_add_up),
        cmocka_unit_test(silence_fills_it_up_and_no_further),
        cmocka_unit_test(no_debt_lasts_longer_than_a_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
