/*
 * What counts as wanted and as lent towards prices.
 *
 * covers price_count.c
 */
#include "core/testing_price_internal.h"

TEST(what_runs_and_what_waits_is_wanted)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct command command = one_core_job(market.borrower);
    const struct job *running = submit(&market, &command);
    assert_int_equal(running->state, JOB_STATE_STARTING);
    market_run_lease(&market, running->leases[0]);
    market.now_ms += HOUR_MS / 2;
    submit(&market, &command); /* waits half an hour, then takes the first one's place */
    market.now_ms += HOUR_MS / 2;
    market_end_lease(&market, running->leases[0], LEASE_OUTCOME_SUCCEEDED, "done");
    const struct job *cancelled = submit(&market, &command);
    market.now_ms += HOUR_MS / 4;
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.borrower, cancelled->id}});
    market_pass_time(&market, 0); /* the second has not started: its lease is lost */
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(wanted_core_ms(&market), HOUR_MS + HOUR_MS / 2 + HOUR_MS / 4);
    assert_int_equal(offered_core_ms(&market), HOUR_MS); /* before it did not take the second */
    assert_int_equal(last_inputs(&market)[PRICE_CORE].borrower_count, 1);
    market_done(&market);
}

TEST(a_job_that_waits_over_a_slot_s_end_counts_in_both)
{
    struct market market;
    market_init(&market);
    const struct command command = one_core_job(market.borrower);
    submit(&market, &command);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(wanted_core_ms(&market), 4 * HOUR_MS);
    assert_int_equal(offered_core_ms(&market), 0);
    pass_to(&market, SLOT_ENDS_MS + SLOT_MS);
    assert_int_equal(wanted_core_ms(&market), 6 * HOUR_MS);
    market_done(&market);
}

TEST(who_would_not_pay_the_price_does_not_count)
{
    struct market market;
    market_init(&market);
    struct command command = one_core_job(market.borrower);
    command.submit_job.max_hourly_micro = 20000;
    submit(&market, &command);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(wanted_core_ms(&market), 4 * HOUR_MS);
    assert_true(core_price(market.core).core_micro > 20000);
    pass_to(&market, SLOT_ENDS_MS + SLOT_MS);
    assert_int_equal(wanted_core_ms(&market), 0);
    market_done(&market);
}

TEST(an_owner_s_own_machine_counts_nowhere)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 4000, MACHINE_ROLE_WORKER);
    const struct command command = one_core_job(market.lender);
    const struct job *job = submit(&market, &command);
    market_run_lease(&market, job->leases[0]);
    market.now_ms += HOUR_MS;
    market_end_lease(&market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "done");
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(wanted_core_ms(&market), 0);
    assert_int_equal(offered_core_ms(&market), 16 * HOUR_MS - HOUR_MS);
    market_done(&market);
}

TEST(only_open_offers_of_machines_that_are_there_count)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const uint64_t offer = core_machine(market.core, id)->offers[0]->id;
    market.now_ms += HOUR_MS;
    market_do(&market,
              &(struct command){.kind = COMMAND_PAUSE_OFFER,
                                .pause_offer = {market.lender, offer, market.now_ms + HOUR_MS}});
    market.now_ms += HOUR_MS + HOUR_MS / 2;
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_SILENT, .machine_silent = {id}});
    market.now_ms += HOUR_MS / 4;
    market_connect(&market, id);
    pass_to(&market, SLOT_ENDS_MS);
    /* One hour, half an hour after the pause, and the last 75 minutes. */
    assert_int_equal(offered_core_ms(&market), HOUR_MS + HOUR_MS / 2 + HOUR_MS * 5 / 4);
    market_done(&market);
}

TEST(a_job_for_the_cheapest_slot_counts_evenly_over_all)
{
    struct market market;
    market_init(&market);
    struct command command = one_core_job(market.borrower);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = SLOT_ENDS_MS + 3 * SLOT_MS - 1;
    submit(&market, &command);
    const struct job *cancelled = submit(&market, &command);
    for (int slot = 0; slot < 4; slot++) {
        pass_to(&market, SLOT_ENDS_MS + slot * SLOT_MS);
        assert_int_equal(wanted_core_ms(&market), slot == 0 ? HOUR_MS / 2 : HOUR_MS / 4);
        if (slot == 0)
            market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                                 .cancel_job = {market.borrower, cancelled->id}});
    }
    pass_to(&market, SLOT_ENDS_MS + 4 * SLOT_MS);
    assert_int_equal(wanted_core_ms(&market), 0);
    market_done(&market);
}

TEST(a_slot_too_dear_for_a_job_that_may_choose_does_not_count_it)
{
    struct market market;
    market_init(&market);
    const struct command waiting = one_core_job(market.lender);
    submit(&market, &waiting); /* so that the price rises */
    struct command command = one_core_job(market.borrower);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = SLOT_ENDS_MS + SLOT_MS - 1;
    command.submit_job.max_hourly_micro = 19999;
    const struct job *too_dear = submit(&market, &command);
    assert_int_equal(too_dear->state, JOB_STATE_PENDING);
    command.submit_job.max_hourly_micro = 20000;
    submit(&market, &command);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(wanted_core_ms(&market), 4 * HOUR_MS + HOUR_MS / 2);
    assert_true(core_price(market.core).core_micro > 20000);
    pass_to(&market, SLOT_ENDS_MS + SLOT_MS);
    assert_int_equal(wanted_core_ms(&market), 6 * HOUR_MS);
    market_done(&market);
}

TEST(a_job_for_the_cheapest_slot_counts_over_no_more_than_it_can_choose)
{
    struct market market;
    market_init(&market);
    struct command command = one_core_job(market.borrower);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = SLOT_ENDS_MS + 40 * SLOT_MS;
    submit(&market, &command);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(wanted_core_ms(&market), HOUR_MS / PRICE_LOCK_SLOTS);
    market_done(&market);
}

TEST(a_long_job_for_the_cheapest_slot_counts_over_the_slots_it_would_run_in)
{
    struct market market;
    market_init(&market);
    struct command command = one_core_job(market.borrower);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = SLOT_ENDS_MS + SLOT_MS - 1; /* two slots to start in */
    command.submit_job.max_run_ms = command.submit_job.expected_run_ms = 12 * HOUR_MS;
    submit(&market, &command);
    for (int slot = 0; slot < 3; slot++) {
        pass_to(&market, SLOT_ENDS_MS + slot * SLOT_MS);
        assert_int_equal(wanted_core_ms(&market), 4 * HOUR_MS);
    }
    market_done(&market);
}

TEST(a_job_that_missed_its_deadline_has_waited_for_it)
{
    struct market market;
    market_init(&market);
    struct command command = one_core_job(market.borrower);
    command.submit_job.start = JOB_START_DEADLINE;
    command.submit_job.deadline_ms = TEST_NOW + HOUR_MS;
    const struct job *missed = submit(&market, &command);
    command.submit_job.deadline_ms = TEST_NOW + 3 * HOUR_MS;
    const struct job *cancelled = submit(&market, &command);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = TEST_NOW + 2 * HOUR_MS;
    const struct job *missed_cheapest = submit(&market, &command);
    pass_to(&market, TEST_NOW + 2 * HOUR_MS + 2);
    assert_int_equal(missed->state, JOB_STATE_CANCELLED);
    assert_int_equal(missed_cheapest->state, JOB_STATE_CANCELLED);
    market_do(&market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                         .cancel_job = {market.borrower, cancelled->id}});
    pass_to(&market, SLOT_ENDS_MS);
    /* An hour of waiting, and the hour that the other would have run. */
    assert_int_equal(wanted_core_ms(&market), HOUR_MS + HOUR_MS);
    market_done(&market);
}

TEST(a_frozen_lender_lends_nothing)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    market.now_ms += HOUR_MS;
    market_do(&market,
              &(struct command){.kind = COMMAND_FREEZE_ACCOUNT,
                                .freeze_account = {.account = market.lender, .reason = TEXT("?")}});
    market.now_ms += HOUR_MS;
    market_do(&market, &(struct command){.kind = COMMAND_UNFREEZE_ACCOUNT,
                                         .unfreeze_account = {.account = market.lender}});
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(offered_core_ms(&market), 3 * HOUR_MS);
    market_done(&market);
}

static void refuse(struct market *market, const struct lease *lease)
{
    market_do(market,
              &(struct command){.kind = COMMAND_RECLAIM_LEASES,
                                .reclaim_leases = {.account = market->lender, .lease = lease->id}});
    market_end_lease(market, lease, LEASE_OUTCOME_RECLAIMED, "no");
}

TEST(who_refuses_lends_nothing_until_it_takes_a_lease)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const uint64_t offer = core_machine(market.core, id)->offers[0]->id;
    market.now_ms += HOUR_MS;
    const struct command command = one_core_job(market.borrower);
    const struct job *job = submit(&market, &command);
    refuse(&market, job->leases[0]);
    /* Whatever it does besides does not help. */
    market.now_ms += HOUR_MS / 2;
    market_do(&market, &(struct command){.kind = COMMAND_PAUSE_OFFER,
                                         .pause_offer = {market.lender, offer, market.now_ms + 1}});
    market_pass_time(&market, HOUR_MS / 2);
    job = submit(&market, &command);
    market_run_lease(&market, job->leases[0]);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(offered_core_ms(&market), 2 * HOUR_MS);
    market_done(&market);
}

TEST(who_refused_counts_again_with_the_next_slot)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct command command = one_core_job(market.borrower);
    const struct job *job = submit(&market, &command);
    refuse(&market, job->leases[0]);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(offered_core_ms(&market), 0);
    pass_to(&market, SLOT_ENDS_MS + SLOT_MS);
    assert_int_equal(offered_core_ms(&market), 6 * HOUR_MS);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_and_what_waits_is_wanted),
        cmocka_unit_test(a_job_that_waits_over_a_slot_s_end_counts_in_both),
        cmocka_unit_test(who_would_not_pay_the_price_does_not_count),
        cmocka_unit_test(an_owner_s_own_machine_counts_nowhere),
        cmocka_unit_test(only_open_offers_of_machines_that_are_there_count),
        cmocka_unit_test(a_job_for_the_cheapest_slot_counts_evenly_over_all),
        cmocka_unit_test(a_slot_too_dear_for_a_job_that_may_choose_does_not_count_it),
        cmocka_unit_test(a_job_for_the_cheapest_slot_counts_over_no_more_than_it_can_choose),
        cmocka_unit_test(a_long_job_for_the_cheapest_slot_counts_over_the_slots_it_would_run_in),
        cmocka_unit_test(a_frozen_lender_lends_nothing),
        cmocka_unit_test(who_refuses_lends_nothing_until_it_takes_a_lease),
        cmocka_unit_test(who_refused_counts_again_with_the_next_slot),
        cmocka_unit_test(a_job_that_missed_its_deadline_has_waited_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
