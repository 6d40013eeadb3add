/* covers decide_credit.c */
#include "core/testing_internal.h"

enum { EARNED = 607 }; /* of the demo's lender: one minute of a whole, a half and a quarter core */

/* The lender has earned; the borrower has only what mint gave. */
static void market_init_earned(struct market *market)
{
    market_init_demo(market);
    market_set_proving(market, 0);
    const struct job *job = market_submit(market);
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
    market->now_ms += 60000;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct command tick = market_tick(job->leases[i], 1, 60000);
        market_do(market, &tick);
    }
    assert_int_equal(ledger_transferable_micro(core_balance(market->core, market->lender)), EARNED);
}

static struct command transfer(uint64_t from, uint64_t to, int64_t amount_micro, const char *memo)
{
    return (struct command){
        .kind = COMMAND_TRANSFER,
        .transfer = {.from = from, .to = to, .amount_micro = amount_micro, .memo = text_of(memo)}};
}

TEST(earned_credits_are_transferred_with_a_memo)
{
    struct market market;
    market_init_earned(&market);
    const int64_t before = market_balance(&market, market.borrower);
    const struct command give = transfer(market.lender, market.borrower, 600, "for the lunch");
    const uint64_t entry = market_do(&market, &give);
    assert_int_equal(market_new_events(&market, EVENT_ENTRY_POSTED), 1);
    const struct event *event = &market.events.items[market.events.count - 1];
    assert_int_equal(event->sequence, entry);
    assert_int_equal(event->entry_posted.kind, LEDGER_ENTRY_TRANSFER);
    assert_string_equal(event->entry_posted.memo, "for the lunch");
    assert_int_equal(market_balance(&market, market.borrower), before + 600);
    /* What was received can be passed on: it was earned once. */
    const struct command back = transfer(market.borrower, market.lender, 600, "");
    market_do(&market, &back);
    market_done(&market);
}

TEST(granted_credits_cannot_be_transferred)
{
    struct market market;
    market_init_earned(&market);
    struct command give = transfer(market.borrower, market.lender, 1, "");
    market_refuses(&market, &give, ERROR_EXHAUSTED);
    give = transfer(market.lender, market.borrower, EARNED + 1, "");
    market_refuses(&market, &give, ERROR_EXHAUSTED);
    assert_non_null(strstr(market.error.message, "0.000607"));
    market_done(&market);
}

TEST(a_machine_s_bill_outside_is_in_its_owner_s_statement)
{
    struct market market;
    market_init_earned(&market);
    const int64_t before = market_balance(&market, market.lender);
    const int64_t mint_before = market_balance(&market, ACCOUNT_MINT);
    struct command bill = {.kind = COMMAND_BILL_COST,
                           .bill_cost = {.account = market.lender,
                                         .usd_micro = 96000,
                                         .amount_micro = 40000,
                                         .bill = TEXT("i-1 m5.large")}};
    market_do(&market, &bill);
    assert_int_equal(market_new_events(&market, EVENT_COST_BILLED), 1);
    assert_int_equal(market_new_events(&market, EVENT_ENTRY_POSTED), 2);
    const struct event *event = &market.events.items[market.events.count - 1];
    assert_int_equal(event->entry_posted.kind, LEDGER_ENTRY_COST);
    assert_int_equal(event->entry_posted.from_account, market.lender);
    assert_string_equal(event->entry_posted.memo, "i-1 m5.large");
    assert_int_equal(market_balance(&market, market.lender), before);
    assert_int_equal(market_balance(&market, ACCOUNT_MINT), mint_before);
    bill.bill_cost.usd_micro = 0;
    market_refuses(&market, &bill, ERROR_INVALID);
    bill.bill_cost.usd_micro = 1;
    bill.bill_cost.amount_micro = 0;
    market_refuses(&market, &bill, ERROR_INVALID);
    bill.bill_cost.amount_micro = 1;
    bill.bill_cost.machine = 999;
    market_refuses(&market, &bill, ERROR_NOT_FOUND);
    bill.bill_cost.machine = 0;
    bill.bill_cost.account = 999;
    market_refuses(&market, &bill, ERROR_NOT_FOUND);
    market_done(&market);
}

/* One rank for a minute, on the borrower's own machine. */
static void pay_oneself(struct market *market)
{
    market_init(market);
    market_set_proving(market, 0);
    const struct command enrol =
        market_enrolment(market, market->borrower, "heron", 1000, MACHINE_ROLE_WORKER);
    market_connect(market, market_do(market, &enrol));
    struct command command = market_job(market);
    command.submit_job.num_nodes = 1;
    command.submit_job.server = (struct resources){0};
    const struct job *job = core_job(market->core, market_do(market, &command));
    market_run_lease(market, job->leases[0]);
    market->now_ms += 60000;
    for (uint64_t tick = 1; tick <= 2; tick++) {
        const struct command command_tick =
            market_tick(job->leases[0], tick, (int64_t)tick * 30000);
        market_do(market, &command_tick);
    }
    market_end_lease(market, job->leases[0], LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_SUCCEEDED);
}

static size_t count_events(const struct market *market, enum event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < market->events.count; i++)
        count += market->events.items[i].kind == kind;
    return count;
}

TEST(a_grant_that_is_paid_to_oneself_stays_a_grant)
{
    struct market market;
    pay_oneself(&market);
    const struct ledger_account *balance = core_balance(market.core, market.borrower);
    assert_true(balance->spent_total_micro > 0 && balance->earned_total_micro > 0);
    assert_int_equal(balance->earned_micro, 0);
    assert_int_equal(ledger_transferable_micro(balance), 0);
    assert_int_equal(balance->granted_micro, market_balance(&market, market.borrower));
    assert_int_equal(count_events(&market, EVENT_RULES_CHANGED), 1);
    market_done(&market);
}

TEST(a_log_from_before_that_rule_replays_as_it_was)
{
    struct market market;
    struct error error = {0};
    pay_oneself(&market);
    AUTO(core) struct core *before = core_new();
    uint64_t sequence = 0;
    for (size_t i = 0; i < market.events.count; i++) {
        struct event event = market.events.items[i];
        if (event.kind == EVENT_RULES_CHANGED)
            continue;
        event.sequence = ++sequence;
        ASSERT_OK(core_apply(before, &event, &error));
    }
    const struct ledger_account *old = core_balance(before, market.borrower);
    const struct ledger_account *now = core_balance(market.core, market.borrower);
    assert_int_equal(ledger_balance_micro(old), ledger_balance_micro(now));
    assert_true(old->earned_micro > 0 && old->granted_micro < now->granted_micro);
    ASSERT_OK(core_check(before, &error));
    market_done(&market);
}

TEST(a_transfer_that_makes_no_sense_is_refused)
{
    struct market market;
    market_init_earned(&market);
    struct command give = transfer(market.lender, market.lender, 1, "");
    market_refuses(&market, &give, ERROR_INVALID);
    give = transfer(market.lender, ACCOUNT_MINT, 1, "");
    market_refuses(&market, &give, ERROR_NOT_FOUND);
    give = transfer(market.lender, 9999, 1, "");
    market_refuses(&market, &give, ERROR_NOT_FOUND);
    give = transfer(9999, market.lender, 1, "");
    market_refuses(&market, &give, ERROR_NOT_FOUND);
    give = transfer(market.lender, market.borrower, 0, "");
    market_refuses(&market, &give, ERROR_INVALID);
    give = transfer(market.lender, market.borrower, INT64_MIN, "");
    market_refuses(&market, &give, ERROR_INVALID);
    give = transfer(market.lender, market.borrower, INT64_MAX, "");
    market_refuses(&market, &give, ERROR_EXHAUSTED);
    give = transfer(market.lender, market.borrower, 1, "a bell\a");
    market_refuses(&market, &give, ERROR_INVALID);
    char memo[LEDGER_MEMO_SIZE + 1];
    memset(memo, 'a', sizeof(memo) - 1);
    memo[sizeof(memo) - 1] = '\0';
    give = transfer(market.lender, market.borrower, 1, memo);
    market_refuses(&market, &give, ERROR_INVALID);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earned_credits_are_transferred_with_a_memo),
        cmocka_unit_test(granted_credits_cannot_be_transferred),
        cmocka_unit_test(a_machine_s_bill_outside_is_in_its_owner_s_statement),
        cmocka_unit_test(a_grant_that_is_paid_to_oneself_stays_a_grant),
        cmocka_unit_test(a_log_from_before_that_rule_replays_as_it_was),
        cmocka_unit_test(a_transfer_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
