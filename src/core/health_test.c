#include "core/health.h"
#include "core/testing_internal.h"

enum { DAY_MS = 24 * 3600 * 1000 };

/* One worker of a whole core for an hour, run to its end: 20 000 microcredits. */
static void run_job(struct market *market)
{
    struct command submit = market_job(market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.takes_more_cores = false;
    submit.submit_job.worker = (struct resources){.cores_milli = 1000};
    submit.submit_job.server = (struct resources){0};
    submit.submit_job.max_run_ms = 3600000;
    const struct job *job = core_job(market->core, market_do(market, &submit));
    market_run_lease(market, job->leases[0]);
    market->now_ms += 3600000;
    const struct command tick = market_tick(job->leases[0], 1, 3600000);
    market_do(market, &tick);
    market_end_lease(market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
}

TEST(credits_are_compared_with_what_members_spend_in_a_week)
{
    struct market market;
    struct core_health health;
    market_init(&market);
    core_health(market.core, &health);
    assert_int_equal(health.member_count, 2);
    assert_int_equal(health.active_count, 2);
    assert_int_equal(health.credits_micro, 20000000);
    assert_int_equal(health.weeks_of_spend_milli, 0);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    run_job(&market);
    core_health(market.core, &health);
    const int64_t spent_micro = core_balance(market.core, market.borrower)->spent_total_micro;
    assert_int_equal(health.weekly_spend_micro, spent_micro / 4);
    assert_true(health.weeks_of_spend_milli > 1000000);
    assert_int_equal(health.poor_count, 0);
    for (int i = 0; i < 5 * 7; i++) /* five weeks on nothing of it is recent */
        market_pass_time(&market, DAY_MS);
    core_health(market.core, &health);
    assert_int_equal(health.weekly_spend_micro, 0);
    assert_int_equal(health.active_count, 0);
    market_done(&market);
}

TEST(the_largest_lender_is_named_by_its_part)
{
    struct market market;
    struct core_health health;
    market_init(&market);
    market_add_machine(&market, "heron", 3000, MACHINE_ROLE_WORKER);
    const uint64_t lender = market.lender;
    market.lender = market.borrower;
    market_add_machine(&market, "wren", 1000, MACHINE_ROLE_WORKER);
    market.lender = lender;
    core_health(market.core, &health);
    assert_int_equal(health.resources[PRICE_CORE].lent_milli, 4000);
    assert_int_equal(health.resources[PRICE_CORE].largest_lender_basis_points, 7500);
    assert_int_equal(health.resources[PRICE_RAM].largest_lender_basis_points, 5000);
    assert_int_equal(health.resources[PRICE_GPU].largest_lender_basis_points, 0);
    assert_int_equal(health.price_index_milli, 1000);
    market_done(&market);
}

TEST(machines_that_paying_jobs_lack_are_counted)
{
    struct market market;
    struct core_health health;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command submit = market_job(&market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.worker = (struct resources){.cores_milli = 1000};
    submit.submit_job.server = (struct resources){0};
    market_do(&market, &submit); /* has the machine */
    core_health(market.core, &health);
    assert_int_equal(health.waiting_machines, 0);
    submit.submit_job.num_nodes = 3;
    const uint64_t waiting = market_do(&market, &submit);
    assert_int_equal(core_job(market.core, waiting)->state, JOB_STATE_PENDING);
    core_health(market.core, &health);
    assert_int_equal(health.waiting_machines, 3);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credits_are_compared_with_what_members_spend_in_a_week),
        cmocka_unit_test(the_largest_lender_is_named_by_its_part),
        cmocka_unit_test(machines_that_paying_jobs_lack_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
