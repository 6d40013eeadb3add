/* A market without money; covers decide_karma.c. */
#include "core/testing_internal.h"
#include "market/karma.h"

#define HOUR_MS INT64_C(3600000)

/* Two members, and a machine of the lender's with two cores and nothing else worth a credit. */
static void set_up(struct market *market)
{
    *market = (struct market){.core = core_new(), .now_ms = TEST_NOW / HOUR_MS * HOUR_MS};
    event_list_init(&market->events);
    struct core_settings settings = core_default_settings();
    settings.economy = ECONOMY_KARMA;
    settings.grant_micro = KARMA_START_MICRO;
    settings.grant_daily_micro = LEDGER_SUPPLY_MAX;
    market_do(market,
              &(struct command){.kind = COMMAND_CHANGE_SETTINGS, .change_settings = settings});
    market->borrower = market_open_account(market, "borrower");
    market->lender = market_open_account(market, "lender");
}

TEST(a_core_hour_costs_one_credit_at_any_time)
{
    struct market market;
    set_up(&market);
    assert_int_equal(core_price(market.core).core_micro, 1000000);
    market_add_machine(&market, "heron", 2000, MACHINE_ROLE_ALL);
    for (int i = 0; i < 8; i++)
        market_pass_time(&market, 6 * HOUR_MS);
    assert_int_equal(core_price(market.core).core_micro, 1000000);
    const struct price_lock lock =
        core_price_lock(market.core, market.now_ms, market.now_ms + 100 * HOUR_MS);
    for (int64_t i = 0; i < lock.slot_count; i++)
        assert_int_equal(lock.slots[i].core_micro, 1000000);
    market_done(&market);
}

TEST(each_hour_every_member_gets_its_share)
{
    struct market market;
    set_up(&market);
    market_add_machine(&market, "heron", 2000, MACHINE_ROLE_ALL);
    const struct core_karma karma = core_karma(market.core);
    assert_int_equal(karma.member_count, 2);
    assert_int_equal(karma.share_micro, 1215000); /* 2 cores, 4 GiB, 10 GiB of disk, by two */
    market_pass_time(&market, HOUR_MS - 1);
    assert_int_equal(market_new_events(&market, EVENT_KARMA_SHARED), 0);
    market_pass_time(&market, 1);
    assert_int_equal(market_new_events(&market, EVENT_KARMA_SHARED), 1);
    assert_int_equal(market_balance(&market, market.borrower), KARMA_START_MICRO + 607500);
    assert_int_equal(market_balance(&market, market.lender), KARMA_START_MICRO + 607500);
    market_pass_time(&market, 3 * HOUR_MS); /* the server was away */
    assert_int_equal(market_balance(&market, market.lender), KARMA_START_MICRO + INT64_C(2430000));
    market_done(&market);
}

TEST(what_is_used_within_the_guarantee_is_given_back)
{
    struct market market;
    set_up(&market);
    market_add_machine(&market, "heron", 2000, MACHINE_ROLE_ALL);
    struct command submit = market_job(&market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.takes_more_cores = false;
    submit.submit_job.max_total_micro = 0;
    const struct job *job = core_job(market.core, market_do(&market, &submit));
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(&market, job->leases[i]);
    market.now_ms += 60000;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct command tick = market_tick(job->leases[i], 1, 60000);
        market_do(&market, &tick);
    }
    const int64_t spent_micro = core_balance(market.core, market.borrower)->spent_total_micro;
    assert_true(spent_micro > 0);
    market_pass_time(&market, HOUR_MS);
    assert_int_equal(market_balance(&market, market.borrower), KARMA_START_MICRO + 607500);
    assert_int_equal(market_balance(&market, market.lender),
                     KARMA_START_MICRO + 607500 + spent_micro);
    market_done(&market);
}

TEST(who_has_most_credits_goes_first)
{
    struct market market;
    set_up(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_ALL);
    const uint64_t rich = market_open_account(&market, "rich");
    struct command submit = market_job(&market);
    submit.submit_job.num_nodes = 1;
    submit.submit_job.takes_more_cores = false;
    submit.submit_job.worker.cores_milli = 500;
    submit.submit_job.max_total_micro = 0;
    const struct job *first = core_job(market.core, market_do(&market, &submit));
    assert_int_equal(first->state, JOB_STATE_STARTING);
    for (size_t i = 0; i < first->lease_count; i++)
        market_run_lease(&market, first->leases[i]);
    market.now_ms += 60000;
    for (size_t i = 0; i < first->lease_count; i++) {
        const struct command tick = market_tick(first->leases[i], 1, 60000);
        market_do(&market, &tick);
    }
    const struct job *poor = core_job(market.core, market_do(&market, &submit));
    submit.submit_job.account = rich;
    const struct job *richer = core_job(market.core, market_do(&market, &submit));
    for (size_t i = 0; i < first->lease_count; i++)
        market_end_lease(&market, first->leases[i], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(richer->state, JOB_STATE_STARTING);
    assert_int_equal(poor->state, JOB_STATE_PENDING);
    market_done(&market);
}

TEST(the_economy_is_chosen_before_the_first_credit)
{
    struct market market;
    market_init(&market);
    struct core_settings settings = core_default_settings();
    settings.economy = ECONOMY_KARMA;
    const struct command change = {.kind = COMMAND_CHANGE_SETTINGS, .change_settings = settings};
    market_refuses(&market, &change, ERROR_CONFLICT);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_hour_costs_one_credit_at_any_time),
        cmocka_unit_test(each_hour_every_member_gets_its_share),
        cmocka_unit_test(what_is_used_within_the_guarantee_is_given_back),
        cmocka_unit_test(who_has_most_credits_goes_first),
        cmocka_unit_test(the_economy_is_chosen_before_the_first_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
