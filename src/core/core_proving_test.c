/* Machines that are not proven: what is withheld of their earnings, and when it is released; what
 * faulty leases pay back.
 *
 * covers decide_fault.c
 */
#include "core/testing_internal.h"

#define HOUR_MS INT64_C(3600000)

enum { PROVING = 1000 };

struct proving {
    struct market market;
    uint64_t heron;
};

/* The lender's machine of one core, which is proven by PROVING microcredits. */
static void set_up(struct proving *proving)
{
    market_init(&proving->market);
    market_set_proving(&proving->market, PROVING);
    proving->heron = market_add_machine(&proving->market, "heron", 1000, MACHINE_ROLE_WORKER);
}

static const struct machine *heron(const struct proving *proving)
{
    return core_machine(proving->market.core, proving->heron);
}

static const struct ledger_account *lender(const struct proving *proving)
{
    return core_balance(proving->market.core, proving->market.lender);
}

static const struct lease *rent(struct proving *proving, uint64_t borrower)
{
    const struct command submit = {.kind = COMMAND_SUBMIT_JOB,
                                   .submit_job = {.account = borrower,
                                                  .name = "job",
                                                  .spec = TEXT("{}"),
                                                  .num_nodes = 1,
                                                  .worker = {.cores_milli = 1000},
                                                  .max_run_ms = HOUR_MS,
                                                  .tick_ms = 1000}};
    const struct job *job = core_job(proving->market.core, market_do(&proving->market, &submit));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_run_lease(&proving->market, job->leases[0]);
    return job->leases[0];
}

static void add_machine_of(struct proving *proving, uint64_t owner, const char *name)
{
    const struct command enrol =
        market_enrolment(&proving->market, owner, name, 1000, MACHINE_ROLE_WORKER);
    market_connect(&proving->market, market_do(&proving->market, &enrol));
}

/* Heron's lease in a job with workers of these two lenders, whose parameter server is on the
 * machine of that name. */
static const struct lease *rent_with_others(struct proving *proving, const char *name,
                                            uint64_t first, uint64_t second)
{
    add_machine_of(proving, first, "first");
    add_machine_of(proving, second, "second");
    const uint64_t at = market_add_machine(&proving->market, name, 500, MACHINE_ROLE_SERVER);
    const struct command submit = {.kind = COMMAND_SUBMIT_JOB,
                                   .submit_job = {.account = proving->market.borrower,
                                                  .name = "job",
                                                  .spec = TEXT("{}"),
                                                  .num_nodes = 3,
                                                  .worker = {.cores_milli = 1000},
                                                  .server = {.cores_milli = 500},
                                                  .has_replica = true,
                                                  .max_run_ms = HOUR_MS,
                                                  .tick_ms = 1000}};
    const struct job *job = core_job(proving->market.core, market_do(&proving->market, &submit));
    assert_int_equal(job_lead(job)->machine, at);
    market_run_lease(&proving->market, job_lead(job));
    const struct lease *accused = NULL;
    for (size_t i = 0; i < job->worker_count; i++) {
        market_run_lease(&proving->market, job->workers[i]);
        if (job->workers[i]->machine == proving->heron)
            accused = job->workers[i];
    }
    assert_non_null(accused);
    return accused;
}

static const struct lease *rent_with_server(struct proving *proving, const char *name)
{
    return rent_with_others(proving, name, market_open_account(&proving->market, "ann"),
                            market_open_account(&proving->market, "bob"));
}

/* As all other workers of its job agree. */
static void accuse(struct proving *proving, const struct lease *accuser,
                   const struct lease *accused)
{
    const struct job *job = core_job(proving->market.core, accused->job);
    struct command end = {.kind = COMMAND_END_LEASE,
                          .end_lease = {.lease = accused->id,
                                        .fence = accused->fence,
                                        .outcome = LEASE_OUTCOME_FAULTY,
                                        .reason = TEXT("as the others agree"),
                                        .accuser = accuser->id}};
    size_t count = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        if (job->workers[i] != accused)
            end.end_lease.agreeing[count++] = job->workers[i]->id;
    assert_int_equal(count, 2);
    market_do(&proving->market, &end);
}

static void end_as_faulty(struct proving *proving, const struct lease *accused)
{
    accuse(proving, job_lead(core_job(proving->market.core, accused->job)), accused);
}

static void work(struct proving *proving, const struct lease *lease, int64_t ms)
{
    proving->market.now_ms += ms;
    const struct command tick = market_tick(lease, lease->tick_index + 1, lease->wall_ms + ms);
    market_do(&proving->market, &tick);
}

TEST(a_part_of_a_newcomers_earnings_is_withheld_until_it_is_proven)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    work(&proving, lease, 90000); /* 500 microcredits at 20000 an hour */
    assert_int_equal(lender(&proving)->earned_micro, 500);
    assert_int_equal(lender(&proving)->withheld_micro, 125);
    assert_int_equal(heron(&proving)->withheld_micro, 125);
    assert_int_equal(heron(&proving)->reputation.earned_micro, 500);
    work(&proving, lease, 89000);
    assert_true(heron(&proving)->is_unproven);
    assert_int_equal(lender(&proving)->withheld_micro, 248); /* a quarter of 994, rounded down */

    work(&proving, lease, 1000); /* 1000 */
    assert_int_equal(market_new_events(&proving.market, EVENT_MACHINE_PROVEN), 1);
    assert_false(heron(&proving)->is_unproven);
    assert_int_equal(heron(&proving)->withheld_micro, 0);
    assert_int_equal(lender(&proving)->withheld_micro, 0);
    assert_int_equal(ledger_transferable_micro(lender(&proving)), 1000);
    const struct event *release = &proving.market.events.items[proving.market.events.count - 1];
    assert_int_equal(release->entry_posted.kind, LEDGER_ENTRY_RELEASE);
    assert_int_equal(release->entry_posted.amount_micro, 250);

    work(&proving, lease, 90000);
    assert_int_equal(lender(&proving)->withheld_micro, 0);
    assert_int_equal(lender(&proving)->earned_micro, 1500);
    market_done(&proving.market);
}

TEST(what_a_faulty_lease_was_paid_goes_back_withheld_or_not)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent_with_server(&proving, "market");
    const int64_t before_micro = reputation_reliability_milli(&heron(&proving)->reputation);
    work(&proving, lease, 90000);
    assert_int_equal(lender(&proving)->earned_micro, 500);
    end_as_faulty(&proving, lease);
    assert_int_equal(lease->outcome, LEASE_OUTCOME_FAULTY);
    assert_int_equal(lender(&proving)->earned_micro, 0);
    assert_int_equal(lender(&proving)->withheld_micro, 0);
    assert_int_equal(heron(&proving)->withheld_micro, 0);
    const struct ledger_account *borrower =
        core_balance(proving.market.core, proving.market.borrower);
    assert_int_equal(borrower->earned_micro, 500);
    assert_true(reputation_reliability_milli(&heron(&proving)->reputation) < before_micro / 5);
    /* It is not paid twice, and no other machine of that lender is taken for the job. */
    assert_true(
        job_avoids(core_job(proving.market.core, lease->job), LEASE_ROLE_WORKER, heron(&proving)));
    market_done(&proving.market);
}

TEST(what_a_faulty_lender_has_spent_stays_spent)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent_with_server(&proving, "market");
    work(&proving, lease, 90000);
    const struct command give = {
        .kind = COMMAND_TRANSFER,
        .transfer = {.from = proving.market.lender, .to = ACCOUNT_OPERATOR, .amount_micro = 375}};
    market_do(&proving.market, &give);
    end_as_faulty(&proving, lease);
    assert_int_equal(lender(&proving)->earned_micro, 0);
    assert_int_equal(core_balance(proving.market.core, proving.market.borrower)->earned_micro, 125);
    market_done(&proving.market);
}

static void assert_nobody_pays_back(struct proving *proving, const struct lease *accused)
{
    work(proving, accused, 90000);
    const int64_t earned_micro = lender(proving)->earned_micro;
    const int64_t lost = heron(proving)->reputation.lost;
    end_as_faulty(proving, accused);
    assert_int_equal(accused->outcome, LEASE_OUTCOME_FAILED);
    assert_true(earned_micro > 0);
    assert_int_equal(lender(proving)->earned_micro, earned_micro);
    assert_int_equal(heron(proving)->reputation.lost, lost);
    market_done(&proving->market);
}

TEST(by_the_word_of_two_workers_of_one_lender_nobody_pays_back)
{
    struct proving proving;
    set_up(&proving);
    const uint64_t mallory = market_open_account(&proving.market, "mallory");
    assert_nobody_pays_back(&proving, rent_with_others(&proving, "market", mallory, mallory));
}

/* One lender with two machines of three would otherwise be told by its own word. */
TEST(by_the_word_of_its_own_lenders_worker_nobody_pays_back)
{
    struct proving proving;
    set_up(&proving);
    const uint64_t other = market_open_account(&proving.market, "other");
    assert_nobody_pays_back(&proving,
                            rent_with_others(&proving, "market", proving.market.lender, other));
}

TEST(without_two_workers_of_its_job_nobody_pays_back)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *accused = rent_with_server(&proving, "market");
    market_end_lease(&proving.market, accused, LEASE_OUTCOME_FAULTY, "as leases 7 and 8 agree");
    assert_int_equal(accused->outcome, LEASE_OUTCOME_FAILED);
    market_done(&proving.market);
}

/* It may be the borrower's own machine that says so. */
TEST(by_the_word_of_a_lenders_parameter_server_nobody_pays_back)
{
    struct proving proving;
    set_up(&proving);
    assert_nobody_pays_back(&proving, rent_with_server(&proving, "wren"));
}

/* One that dies right after its word, so that the market's own leads when it is heard. */
TEST(whose_word_it_was_counts_not_who_leads_by_now)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *accused = rent_with_server(&proving, "wren");
    const struct job *job = core_job(proving.market.core, accused->job);
    const struct lease *liar = job_lead(job);
    market_add_machine(&proving.market, "market", 500, MACHINE_ROLE_SERVER);
    market_run_lease(&proving.market, job->servers[1]);
    market_end_lease(&proving.market, liar, LEASE_OUTCOME_LOST, "gone");
    assert_int_equal(job_lead(job)->payee, ACCOUNT_OPERATOR);
    work(&proving, accused, 90000);
    accuse(&proving, liar, accused);
    assert_int_equal(accused->outcome, LEASE_OUTCOME_FAILED);
    assert_int_equal(lender(&proving)->earned_micro, 500);
    market_done(&proving.market);
}

TEST(many_small_ticks_are_withheld_of_as_one)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    for (int i = 0; i < 500; i++)
        work(&proving, lease, 200); /* a microcredit and a ninth each */
    assert_int_equal(lender(&proving)->earned_micro, 555);
    assert_int_equal(lender(&proving)->withheld_micro, 138);
    market_done(&proving.market);
}

TEST(withheld_credits_are_neither_spent_nor_transferred)
{
    struct proving proving;
    set_up(&proving);
    work(&proving, rent(&proving, proving.market.borrower), 90000);
    struct command give = {.kind = COMMAND_TRANSFER,
                           .transfer = {.from = proving.market.lender,
                                        .to = proving.market.borrower,
                                        .amount_micro = 376}};
    market_refuses(&proving.market, &give, ERROR_EXHAUSTED);
    give.transfer.amount_micro = 375;
    market_do(&proving.market, &give);
    assert_int_equal(lender(&proving)->withheld_micro, 125);
    market_done(&proving.market);
}

TEST(a_frozen_lender_loses_nothing_that_was_withheld)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    work(&proving, lease, 90000);
    market_do(&proving.market,
              &(struct command){.kind = COMMAND_FREEZE_ACCOUNT,
                                .freeze_account = {proving.market.lender, TEXT("looked into")}});
    work(&proving, lease, 90000);
    assert_int_equal(market_new_events(&proving.market, EVENT_MACHINE_PROVEN), 1);
    assert_int_equal(lender(&proving)->earned_micro, 1000);
    assert_int_equal(lender(&proving)->withheld_micro, 0);
    market_done(&proving.market);
}

TEST(a_deleted_lenders_withheld_credits_go_back_to_mint_with_the_rest)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    work(&proving, lease, 90000);
    market_end_lease(&proving.market, lease, LEASE_OUTCOME_SUCCEEDED, "");
    market_do(&proving.market,
              &(struct command){.kind = COMMAND_MACHINE_GONE, .machine_gone = {proving.heron}});
    market_do(&proving.market, &(struct command){.kind = COMMAND_DELETE_ACCOUNT,
                                                 .delete_account = {proving.market.lender}});
    assert_int_equal(heron(&proving)->withheld_micro, 0);
    assert_int_equal(core_balance(proving.market.core, ACCOUNT_MINT)->granted_micro,
                     -(10000000 - 500));
    market_done(&proving.market);
}

TEST(a_lost_lease_keeps_what_was_verified_and_what_is_withheld_of_it)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    work(&proving, lease, 90000);
    market_do(&proving.market,
              &(struct command){.kind = COMMAND_MACHINE_SILENT, .machine_silent = {proving.heron}});
    market_pass_time(&proving.market, HOUR_MS);
    assert_int_equal(lease->outcome, LEASE_OUTCOME_LOST);
    assert_int_equal(lender(&proving)->earned_micro, 500); /* nothing after its last tick */
    assert_int_equal(lender(&proving)->withheld_micro, 125);
    assert_true(heron(&proving)->is_unproven);
    market_done(&proving.market);
}

TEST(a_claimed_speed_counts_once_a_machine_is_proven)
{
    struct proving proving;
    set_up(&proving);
    struct command report = {.kind = COMMAND_REPORT_PROBE,
                             .report_probe = {proving.heron, heron(&proving)->probe}};
    report.report_probe.probe.speed_weight_milli = 3000;
    market_do(&proving.market, &report);
    assert_int_equal(machine_speed_milli(heron(&proving)), 1000);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    assert_int_equal(lease->units.core_milli, 1000);
    work(&proving, lease, 180000);
    market_end_lease(&proving.market, lease, LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(machine_speed_milli(heron(&proving)), 3000);
    assert_int_equal(rent(&proving, proving.market.borrower)->units.core_milli, 3000);
    market_done(&proving.market);
}

TEST(a_slow_machine_counts_as_slow_from_the_start)
{
    struct proving proving;
    set_up(&proving);
    struct command report = {.kind = COMMAND_REPORT_PROBE,
                             .report_probe = {proving.heron, heron(&proving)->probe}};
    report.report_probe.probe.speed_weight_milli = 300;
    market_do(&proving.market, &report);
    assert_int_equal(machine_speed_milli(heron(&proving)), 300);
    market_done(&proving.market);
}

TEST(renting_from_oneself_proves_nothing_and_withholds_nothing)
{
    struct proving proving;
    set_up(&proving);
    work(&proving, rent(&proving, proving.market.lender), 360000);
    assert_int_equal(lender(&proving)->earned_total_micro, 2000);
    assert_int_equal(lender(&proving)->withheld_micro, 0);
    assert_int_equal(heron(&proving)->reputation.earned_micro, 0);
    assert_true(heron(&proving)->is_unproven);
    market_done(&proving.market);
}

TEST(the_markets_own_machine_is_proven)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "market", 1000, MACHINE_ROLE_ALL);
    assert_false(core_machine(market.core, id)->is_unproven);
    market_done(&market);
}

TEST(a_lower_threshold_proves_machines_at_once_and_a_higher_one_unproves_none)
{
    struct proving proving;
    set_up(&proving);
    work(&proving, rent(&proving, proving.market.borrower), 90000);
    market_set_proving(&proving.market, 501);
    assert_true(heron(&proving)->is_unproven);
    market_set_proving(&proving.market, 500);
    assert_false(heron(&proving)->is_unproven);
    assert_int_equal(lender(&proving)->withheld_micro, 0);
    market_set_proving(&proving.market, 1000000);
    assert_false(heron(&proving)->is_unproven);
    market_done(&proving.market);
}

TEST(a_lease_keeps_the_part_it_was_made_with)
{
    struct proving proving;
    set_up(&proving);
    const struct lease *lease = rent(&proving, proving.market.borrower);
    work(&proving, lease, 45000);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(proving.market.core)};
    change.change_settings.withheld_basis_points = 0;
    market_do(&proving.market, &change);
    work(&proving, lease, 45000);
    assert_int_equal(lender(&proving)->withheld_micro, 125);
    market_done(&proving.market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_a_newcomers_earnings_is_withheld_until_it_is_proven),
        cmocka_unit_test(what_a_faulty_lease_was_paid_goes_back_withheld_or_not),
        cmocka_unit_test(what_a_faulty_lender_has_spent_stays_spent),
        cmocka_unit_test(by_the_word_of_two_workers_of_one_lender_nobody_pays_back),
        cmocka_unit_test(by_the_word_of_its_own_lenders_worker_nobody_pays_back),
        cmocka_unit_test(without_two_workers_of_its_job_nobody_pays_back),
        cmocka_unit_test(by_the_word_of_a_lenders_parameter_server_nobody_pays_back),
        cmocka_unit_test(whose_word_it_was_counts_not_who_leads_by_now),
        cmocka_unit_test(many_small_ticks_are_withheld_of_as_one),
        cmocka_unit_test(withheld_credits_are_neither_spent_nor_transferred),
        cmocka_unit_test(a_frozen_lender_loses_nothing_that_was_withheld),
        cmocka_unit_test(a_deleted_lenders_withheld_credits_go_back_to_mint_with_the_rest),
        cmocka_unit_test(a_lost_lease_keeps_what_was_verified_and_what_is_withheld_of_it),
        cmocka_unit_test(a_claimed_speed_counts_once_a_machine_is_proven),
        cmocka_unit_test(a_slow_machine_counts_as_slow_from_the_start),
        cmocka_unit_test(renting_from_oneself_proves_nothing_and_withholds_nothing),
        cmocka_unit_test(the_markets_own_machine_is_proven),
        cmocka_unit_test(a_lower_threshold_proves_machines_at_once_and_a_higher_one_unproves_none),
        cmocka_unit_test(a_lease_keeps_the_part_it_was_made_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
