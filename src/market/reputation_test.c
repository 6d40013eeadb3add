#include "market/reputation.h"
#include "testing/testing.h"

static void count(struct reputation *reputation, enum lease_outcome outcome, int times)
{
    for (int i = 0; i < times; i++)
        reputation_count(reputation, &(struct reputation_lease){.outcome = outcome,
                                                                .has_started = true,
                                                                .leased_ms = 10000,
                                                                .delivered_ms = 9000,
                                                                .ticks = 9});
}

TEST(a_machine_without_a_past_is_half_reliable)
{
    const struct reputation nothing = {0};
    assert_int_equal(reputation_reliability_milli(&nothing), 500);
    assert_int_equal(reputation_delivered_milli(&nothing), 1000);
}

TEST(the_arithmetic_can_be_done_by_hand)
{
    struct reputation reputation = {0};
    count(&reputation, LEASE_OUTCOME_SUCCEEDED, 1);
    assert_int_equal(reputation_reliability_milli(&reputation), 666); /* 2 / 3 */
    count(&reputation, LEASE_OUTCOME_LOST, 1);
    /* 985 thousandths of a lease are left of the first: 1.985 / (2.985 + 2). */
    assert_int_equal(reputation.completed_milli, 985);
    assert_int_equal(reputation_reliability_milli(&reputation), 398);
    count(&reputation, LEASE_OUTCOME_RECLAIMED, 1);
    /* 1.970 / (2.970 + 2 x 0.985 + 0.5) */
    assert_int_equal(reputation_reliability_milli(&reputation), 362);
    assert_int_equal(reputation.completed, 1);
    assert_int_equal(reputation.lost, 1);
    assert_int_equal(reputation.reclaimed, 1);
    assert_int_equal(reputation.ticks, 27);
    reputation_earn(&reputation, 15);
    assert_int_equal(reputation.earned_micro, 15);
    assert_int_equal(reputation_delivered_milli(&reputation), 900);
}

TEST(losses_fade_as_leases_are_completed)
{
    struct reputation reputation = {0};
    count(&reputation, LEASE_OUTCOME_SUCCEEDED, 500);
    const int64_t best = reputation_reliability_milli(&reputation);
    assert_in_range(best, 980, 990);
    count(&reputation, LEASE_OUTCOME_LOST, 1);
    const int64_t after = reputation_reliability_milli(&reputation);
    assert_in_range(after, best - 35, best - 25);
    count(&reputation, LEASE_OUTCOME_SUCCEEDED, 300);
    assert_in_range(reputation_reliability_milli(&reputation), best - 2, best);
    assert_int_equal(reputation.lost, 1); /* the count itself does not fade */
}

TEST(what_says_nothing_of_the_machine_changes_no_reliability)
{
    struct reputation reputation = {0};
    count(&reputation, LEASE_OUTCOME_FAILED, 10);
    reputation_count(&reputation, &(struct reputation_lease){.outcome = LEASE_OUTCOME_STOPPED});
    assert_int_equal(reputation_reliability_milli(&reputation), 500);
    assert_int_equal(reputation.failed, 10);
    assert_int_equal(reputation.completed, 0);
}

TEST(whoever_is_lost_always_is_not_reliable)
{
    struct reputation reputation = {0};
    count(&reputation, LEASE_OUTCOME_LOST, 1000);
    assert_in_range(reputation_reliability_milli(&reputation), 0, 10);
    struct reputation owner = {0};
    count(&owner, LEASE_OUTCOME_RECLAIMED, 1000);
    assert_in_range(reputation_reliability_milli(&owner), 20, 40); /* a quarter of the weight */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_a_past_is_half_reliable),
        cmocka_unit_test(the_arithmetic_can_be_done_by_hand),
        cmocka_unit_test(losses_fade_as_leases_are_completed),
        cmocka_unit_test(what_says_nothing_of_the_machine_changes_no_reliability),
        cmocka_unit_test(whoever_is_lost_always_is_not_reliable),
    };
    return cmocka_run_group_tests_name("reputation", tests, NULL, NULL);
}
