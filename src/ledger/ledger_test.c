/* covers plan.c, commit.c */
#include "ledger/ledger.h"
#include "testing/testing.h"

enum { MINT = 1, OPERATOR = 2, BORROWER = 3, LENDER = 4, JOB = 50, LEASE = 60 };

static void commit_plan(struct ledger *ledger, const struct ledger_plan *plan)
{
    struct error error = {0};
    for (size_t i = 0; i < plan->entry_count; i++)
        ASSERT_OK(ledger_commit(ledger, &plan->entries[i], &error));
    ASSERT_OK(ledger_check(ledger, &error));
    assert_int_equal(ledger_sum_micro(ledger), 0);
}

static void grant(struct ledger *ledger, uint64_t account, int64_t amount_micro)
{
    struct error error = {0};
    struct ledger_plan plan;
    ASSERT_OK(ledger_plan_grant(ledger, account, amount_micro, &plan, &error));
    commit_plan(ledger, &plan);
}

static void hold(struct ledger *ledger, uint64_t account, uint64_t job, int64_t amount_micro)
{
    struct error error = {0};
    struct ledger_plan plan;
    ASSERT_OK(ledger_plan_hold(ledger, account, job, amount_micro, &plan, &error));
    commit_plan(ledger, &plan);
}

static void post(struct ledger *ledger, struct ledger_post post)
{
    struct error error = {0};
    struct ledger_plan plan;
    ASSERT_OK(ledger_plan_post(ledger, &post, &plan, &error));
    commit_plan(ledger, &plan);
}

static void void_hold(struct ledger *ledger, uint64_t job, int64_t amount_micro)
{
    struct error error = {0};
    struct ledger_plan plan;
    ASSERT_OK(ledger_plan_void(ledger, job, amount_micro, &plan, &error));
    commit_plan(ledger, &plan);
}

static struct ledger *new_ledger(void)
{
    struct error error = {0};
    struct ledger *ledger = ledger_new(MINT, OPERATOR);
    ASSERT_OK(ledger_open_account(ledger, BORROWER, &error));
    ASSERT_OK(ledger_open_account(ledger, LENDER, &error));
    return ledger;
}

static void assert_parts(const struct ledger *ledger, uint64_t id, int64_t granted, int64_t earned,
                         int64_t held)
{
    const struct ledger_account *account = ledger_account(ledger, id);
    assert_int_equal(account->granted_micro, granted);
    assert_int_equal(account->earned_micro, earned);
    assert_int_equal(account->held_micro, held);
}

TEST(a_grant_makes_mint_negative_and_nobody_else)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 10000000);
    assert_parts(ledger, BORROWER, 10000000, 0, 0);
    assert_int_equal(ledger_balance_micro(ledger_account(ledger, MINT)), -10000000);
    assert_int_equal(ledger_entry_count(ledger), 1);
}

TEST(granted_credits_are_held_and_spent_first_and_come_back_where_they_were)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, LENDER, 100);
    hold(ledger, LENDER, 7, 100);
    post(ledger, (struct ledger_post){.job = 7, .payee = BORROWER, .amount_micro = 100});
    grant(ledger, BORROWER, 30);
    assert_parts(ledger, BORROWER, 30, 100, 0);

    hold(ledger, BORROWER, JOB, 70);
    assert_parts(ledger, BORROWER, 0, 60, 70);
    assert_int_equal(ledger_hold(ledger, JOB)->granted_micro, 30);

    post(ledger, (struct ledger_post){.job = JOB, .payee = LENDER, .amount_micro = 10});
    assert_int_equal(ledger_hold(ledger, JOB)->granted_micro, 20);
    assert_int_equal(ledger_hold(ledger, JOB)->earned_micro, 40);

    void_hold(ledger, JOB, 60);
    assert_parts(ledger, BORROWER, 20, 100, 0);
    assert_null(ledger_hold(ledger, JOB));
    assert_int_equal(ledger_account(ledger, BORROWER)->spent_total_micro, 10);
    assert_int_equal(ledger_account(ledger, LENDER)->earned_total_micro, 10);
}

TEST(a_part_of_a_hold_is_given_back_in_the_reverse_order)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, LENDER, 50);
    hold(ledger, LENDER, 7, 50);
    post(ledger, (struct ledger_post){.job = 7, .payee = BORROWER, .amount_micro = 50});
    grant(ledger, BORROWER, 50);
    hold(ledger, BORROWER, JOB, 80);
    void_hold(ledger, JOB, 40);
    assert_parts(ledger, BORROWER, 10, 50, 40);
    hold(ledger, BORROWER, JOB, 20);
    assert_parts(ledger, BORROWER, 0, 40, 60);
}

TEST(a_hold_past_the_balance_is_refused_and_changes_nothing)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 100);
    ASSERT_FAILS(ledger_plan_hold(ledger, BORROWER, JOB, 101, &plan, &error), ERROR_EXHAUSTED);
    assert_parts(ledger, BORROWER, 100, 0, 0);
    ASSERT_FAILS(ledger_plan_hold(ledger, BORROWER, JOB, 0, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_hold(ledger, 99, JOB, 1, &plan, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(ledger_plan_hold(ledger, MINT, JOB, 1, &plan, &error), ERROR_INVALID);
}

TEST(a_post_past_the_hold_is_refused)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 100);
    hold(ledger, BORROWER, JOB, 60);
    const struct ledger_post too_much = {.job = JOB, .payee = LENDER, .amount_micro = 61};
    ASSERT_FAILS(ledger_plan_post(ledger, &too_much, &plan, &error), ERROR_EXHAUSTED);
    const struct ledger_post unheld = {.job = 51, .payee = LENDER, .amount_micro = 1};
    ASSERT_FAILS(ledger_plan_post(ledger, &unheld, &plan, &error), ERROR_NOT_FOUND);
    const struct ledger_post to_mint = {.job = JOB, .payee = MINT, .amount_micro = 1};
    ASSERT_FAILS(ledger_plan_post(ledger, &to_mint, &plan, &error), ERROR_INVALID);
}

TEST(the_fee_is_taken_out_of_the_post)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 1000);
    hold(ledger, BORROWER, JOB, 1000);
    post(ledger,
         (struct ledger_post){
             .job = JOB, .lease = LEASE, .payee = LENDER, .amount_micro = 999, .fee_micro = 49});
    assert_parts(ledger, LENDER, 0, 950, 0);
    assert_parts(ledger, OPERATOR, 0, 49, 0);
    assert_parts(ledger, BORROWER, 0, 0, 1);
}

TEST(withheld_credits_are_earned_but_cannot_be_spent_until_released)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 100);
    hold(ledger, BORROWER, JOB, 100);
    post(ledger, (struct ledger_post){
                     .job = JOB, .payee = LENDER, .amount_micro = 100, .withheld_micro = 50});
    const struct ledger_account *lender = ledger_account(ledger, LENDER);
    assert_int_equal(lender->earned_micro, 100);
    assert_int_equal(ledger_available_micro(lender), 50);
    ASSERT_FAILS(ledger_plan_hold(ledger, LENDER, JOB, 51, &plan, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(ledger_plan_release(ledger, LENDER, 51, &plan, &error), ERROR_EXHAUSTED);
    ASSERT_OK(ledger_plan_release(ledger, LENDER, 20, &plan, &error));
    commit_plan(ledger, &plan);
    assert_int_equal(ledger_available_micro(lender), 70);
}

TEST(a_borrower_can_pay_for_its_own_machine)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 100);
    hold(ledger, BORROWER, JOB, 100);
    post(ledger, (struct ledger_post){.job = JOB, .payee = BORROWER, .amount_micro = 40});
    assert_parts(ledger, BORROWER, 0, 40, 60);
}

TEST(what_an_account_pays_itself_comes_back_as_what_it_was)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    ledger_return_own(ledger);
    grant(ledger, LENDER, 50);
    hold(ledger, LENDER, JOB, 50);
    post(ledger, (struct ledger_post){.job = JOB, .payee = BORROWER, .amount_micro = 50});
    grant(ledger, BORROWER, 60);
    hold(ledger, BORROWER, JOB, 100); /* 60 of them granted */
    assert_parts(ledger, BORROWER, 0, 10, 100);
    post(ledger, (struct ledger_post){.job = JOB,
                                      .payee = BORROWER,
                                      .amount_micro = 45,
                                      .fee_micro = 5,
                                      .withheld_micro = 20});
    assert_parts(ledger, BORROWER, 40, 10, 55);
    assert_int_equal(ledger_account(ledger, BORROWER)->withheld_micro, 0);
    post(ledger, (struct ledger_post){
                     .job = JOB, .payee = BORROWER, .amount_micro = 25, .withheld_micro = 20});
    assert_parts(ledger, BORROWER, 55, 20, 30); /* 15 were left of the granted ones */
    assert_int_equal(ledger_account(ledger, BORROWER)->withheld_micro, 10);
    assert_int_equal(ledger_transferable_micro(ledger_account(ledger, BORROWER)), 10);
}

TEST(an_entry_that_does_not_fit_is_corrupt_and_changes_nothing)
{
    struct error error = {0};
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 100);
    hold(ledger, BORROWER, JOB, 60);
    const struct ledger_entry sound = {.sequence = 3,
                                       .kind = LEDGER_ENTRY_POST,
                                       .from_account = BORROWER,
                                       .to_account = LENDER,
                                       .amount_micro = 10,
                                       .granted_micro = 10,
                                       .job = JOB};
    struct ledger_entry entry = sound;
    entry.sequence = 4;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = sound;
    entry.granted_micro = 9; /* nothing of the hold was earned */
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = sound;
    entry.amount_micro = entry.granted_micro = 61;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = sound;
    entry.from_account = LENDER;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = sound;
    entry.amount_micro = INT64_MAX;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = sound;
    entry.job = 0;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = sound;
    entry.kind = LEDGER_ENTRY_GRANT;
    entry.job = 0;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    assert_parts(ledger, BORROWER, 40, 0, 60);
    ASSERT_OK(ledger_commit(ledger, &sound, &error));
}

static void commit_all(struct ledger *ledger, const struct ledger_plan *plan)
{
    struct error error = {0};
    for (size_t i = 0; i < plan->entry_count; i++)
        ASSERT_OK(ledger_commit(ledger, &plan->entries[i], &error));
}

static void pay_lender(struct ledger *ledger, int64_t fee_micro, int64_t withheld_micro)
{
    struct error error = {0};
    struct ledger_plan plan;
    grant(ledger, BORROWER, 100);
    hold(ledger, BORROWER, JOB, 100);
    const struct ledger_post post = {.job = JOB,
                                     .lease = 9,
                                     .payee = LENDER,
                                     .amount_micro = 60,
                                     .fee_micro = fee_micro,
                                     .withheld_micro = withheld_micro};
    ASSERT_OK(ledger_plan_post(ledger, &post, &plan, &error));
    commit_all(ledger, &plan);
}

static void refund_all(struct ledger *ledger, int64_t fee_micro, int64_t withheld_micro)
{
    const struct ledger_refund wanted = {.lease = 9,
                                         .payee = LENDER,
                                         .payer = BORROWER,
                                         .amount_micro = 60 - fee_micro,
                                         .fee_micro = fee_micro,
                                         .withheld_micro = withheld_micro};
    struct ledger_plan plan;
    ledger_plan_refund(ledger, &wanted, &plan);
    commit_all(ledger, &plan);
}

TEST(a_refund_takes_what_there_is_still_and_leaves_nobody_below_zero)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    pay_lender(ledger, /* fee_micro= */ 6, /* withheld_micro= */ 20);
    ASSERT_OK(ledger_plan_transfer(ledger, LENDER, OPERATOR, 30, &plan, &error));
    commit_all(ledger, &plan);
    refund_all(ledger, 6, 20);
    assert_parts(ledger, LENDER, 0, 0, 0);
    assert_parts(ledger, OPERATOR, 0, 30, 0);
    assert_parts(ledger, BORROWER, 0, 30, 40);
}

TEST(nothing_is_refunded_out_of_a_frozen_account)
{
    struct error error = {0};
    AUTO(ledger) struct ledger *ledger = new_ledger();
    pay_lender(ledger, 0, 0);
    ASSERT_OK(ledger_set_frozen(ledger, LENDER, true, &error));
    refund_all(ledger, 0, 0);
    assert_parts(ledger, LENDER, 0, 60, 0);
    assert_parts(ledger, BORROWER, 0, 0, 40);
}

TEST(mint_cannot_give_out_more_than_the_supply)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, LEDGER_SUPPLY_MAX - 5);
    grant(ledger, LENDER, 5);
    ASSERT_FAILS(ledger_plan_grant(ledger, LENDER, 1, &plan, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(ledger_plan_grant(ledger, LENDER, INT64_MAX, &plan, &error), ERROR_EXHAUSTED);
}

TEST(a_restored_ledger_is_checked_as_a_whole)
{
    struct error error = {0};
    AUTO(ledger) struct ledger *ledger = ledger_new(MINT, OPERATOR);
    const struct ledger_account mint = {.id = MINT, .granted_micro = -100};
    const struct ledger_account borrower = {.id = BORROWER, .granted_micro = 40, .held_micro = 60};
    const struct ledger_hold small = {.job = JOB, .account = BORROWER, .granted_micro = 59};
    const struct ledger_hold rest = {.job = 51, .account = BORROWER, .earned_micro = 1};
    ASSERT_OK(ledger_restore_account(ledger, &mint, &error));
    ASSERT_FAILS(ledger_check(ledger, &error), ERROR_CORRUPT);
    ASSERT_OK(ledger_restore_account(ledger, &borrower, &error));
    ASSERT_OK(ledger_restore_hold(ledger, &small, &error));
    ASSERT_FAILS(ledger_check(ledger, &error), ERROR_CORRUPT);
    ASSERT_OK(ledger_restore_hold(ledger, &rest, &error));
    ASSERT_OK(ledger_check(ledger, &error));
    ASSERT_FAILS(ledger_restore_hold(ledger, &rest, &error), ERROR_CORRUPT);
    const struct ledger_account negative = {.id = LENDER, .earned_micro = -1};
    ASSERT_FAILS(ledger_restore_account(ledger, &negative, &error), ERROR_CORRUPT);
}

/* BORROWER with 30 granted and 100 earned, 40 of them withheld. */
static struct ledger *new_ledger_with_parts(void)
{
    struct ledger *ledger = new_ledger();
    grant(ledger, LENDER, 100);
    hold(ledger, LENDER, 7, 100);
    post(ledger, (struct ledger_post){
                     .job = 7, .payee = BORROWER, .amount_micro = 100, .withheld_micro = 40});
    grant(ledger, BORROWER, 30);
    return ledger;
}

TEST(only_earned_credits_that_are_not_withheld_are_transferred)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, LENDER, 61, &plan, &error),
                 ERROR_EXHAUSTED);
    ASSERT_OK(ledger_plan_transfer(ledger, BORROWER, LENDER, 60, &plan, &error));
    commit_plan(ledger, &plan);
    assert_parts(ledger, BORROWER, 30, 40, 0);
    assert_parts(ledger, LENDER, 0, 60, 0);
    assert_int_equal(ledger_account(ledger, LENDER)->earned_total_micro, 0);
    assert_int_equal(ledger_account(ledger, BORROWER)->spent_total_micro, 0);
}

TEST(a_bill_outside_shows_and_leaves_the_account_as_it_was)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    const struct ledger_account before = *ledger_account(ledger, BORROWER);
    const int64_t mint_micro = ledger_account(ledger, MINT)->granted_micro;
    ASSERT_OK(ledger_plan_cost(ledger, BORROWER, 500, &plan, &error));
    assert_int_equal(plan.entry_count, 2);
    assert_string_equal(ledger_entry_kind_name(plan.entries[0].kind), "fund");
    assert_string_equal(ledger_entry_kind_name(plan.entries[1].kind), "cost");
    commit_plan(ledger, &plan);
    assert_parts(ledger, BORROWER, before.granted_micro, before.earned_micro, before.held_micro);
    assert_int_equal(ledger_account(ledger, BORROWER)->withheld_micro, before.withheld_micro);
    assert_int_equal(ledger_account(ledger, MINT)->granted_micro, mint_micro);
    ASSERT_FAILS(ledger_plan_cost(ledger, BORROWER, 0, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_cost(ledger, MINT, 1, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_cost(ledger, 99, 1, &plan, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(ledger_plan_cost(ledger, BORROWER, INT64_MAX, &plan, &error), ERROR_EXHAUSTED);
}

TEST(a_replayed_bill_between_members_is_corrupt)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    ASSERT_OK(ledger_plan_cost(ledger, BORROWER, 5, &plan, &error));
    struct ledger_entry entry = plan.entries[0];
    entry.from_account = LENDER;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = plan.entries[0];
    entry.granted_micro = 1;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = plan.entries[1];
    entry.sequence = plan.entries[0].sequence;
    entry.to_account = LENDER;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
}

TEST(a_transfer_needs_two_members)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, BORROWER, 1, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, MINT, 1, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_transfer(ledger, MINT, BORROWER, 1, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, 99, 1, &plan, &error), ERROR_NOT_FOUND);
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, LENDER, 0, &plan, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, LENDER, INT64_MAX, &plan, &error),
                 ERROR_EXHAUSTED);
}

TEST(a_replayed_transfer_of_granted_or_withheld_credits_is_corrupt)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    ASSERT_OK(ledger_plan_transfer(ledger, BORROWER, LENDER, 10, &plan, &error));
    struct ledger_entry entry = plan.entries[0];
    entry.granted_micro = 1;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = plan.entries[0];
    entry.amount_micro = 61;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    entry = plan.entries[0];
    entry.to_account = MINT;
    ASSERT_FAILS(ledger_commit(ledger, &entry, &error), ERROR_CORRUPT);
    assert_parts(ledger, BORROWER, 30, 100, 0);
}

TEST(a_reclaim_takes_granted_credits_first_and_withheld_ones_last)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    const struct ledger_account *borrower = ledger_account(ledger, BORROWER);
    ASSERT_OK(ledger_plan_reclaim(ledger, BORROWER, 50, &plan, &error));
    commit_plan(ledger, &plan);
    assert_parts(ledger, BORROWER, 0, 80, 0);
    assert_int_equal(borrower->withheld_micro, 40);
    ASSERT_OK(ledger_plan_reclaim(ledger, BORROWER, 50, &plan, &error));
    commit_plan(ledger, &plan);
    assert_parts(ledger, BORROWER, 0, 30, 0);
    assert_int_equal(borrower->withheld_micro, 30);
    ASSERT_FAILS(ledger_plan_reclaim(ledger, BORROWER, 31, &plan, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(ledger_plan_reclaim(ledger, OPERATOR, 0, &plan, &error), ERROR_INVALID);
    assert_int_equal(ledger_balance_micro(ledger_account(ledger, MINT)), -30);
}

TEST(a_frozen_account_keeps_its_credits_and_its_holds_go_on)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    hold(ledger, BORROWER, JOB, 50);
    ASSERT_OK(ledger_set_frozen(ledger, BORROWER, true, &error));
    ASSERT_FAILS(ledger_set_frozen(ledger, BORROWER, true, &error), ERROR_CONFLICT);
    ASSERT_FAILS(ledger_plan_hold(ledger, BORROWER, JOB, 1, &plan, &error), ERROR_REFUSED);
    ASSERT_FAILS(ledger_plan_transfer(ledger, BORROWER, LENDER, 1, &plan, &error), ERROR_REFUSED);
    ASSERT_FAILS(ledger_plan_reclaim(ledger, BORROWER, 0, &plan, &error), ERROR_REFUSED);
    assert_int_equal(ledger_holdable_micro(ledger_account(ledger, BORROWER)), 0);
    assert_int_equal(ledger_transferable_micro(ledger_account(ledger, BORROWER)), 0);

    post(ledger, (struct ledger_post){.job = JOB, .payee = LENDER, .amount_micro = 20});
    void_hold(ledger, JOB, 30);
    grant(ledger, BORROWER, 5);
    ASSERT_OK(ledger_plan_transfer(ledger, LENDER, BORROWER, 3, &plan, &error));
    commit_plan(ledger, &plan);
    assert_int_equal(ledger_balance_micro(ledger_account(ledger, BORROWER)), 130 - 20 + 5 + 3);

    ASSERT_OK(ledger_set_frozen(ledger, BORROWER, false, &error));
    hold(ledger, BORROWER, JOB, 1);
    ASSERT_FAILS(ledger_set_frozen(ledger, MINT, true, &error), ERROR_INVALID);
    ASSERT_FAILS(ledger_set_frozen(ledger, 99, true, &error), ERROR_NOT_FOUND);
}

TEST(a_replayed_hold_or_transfer_out_of_a_frozen_account_is_corrupt)
{
    struct error error = {0};
    struct ledger_plan hold_plan, transfer_plan, reclaim_plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    ASSERT_OK(ledger_plan_hold(ledger, BORROWER, JOB, 1, &hold_plan, &error));
    ASSERT_OK(ledger_plan_transfer(ledger, BORROWER, LENDER, 1, &transfer_plan, &error));
    ASSERT_OK(ledger_plan_reclaim(ledger, BORROWER, 1, &reclaim_plan, &error));
    ASSERT_OK(ledger_set_frozen(ledger, BORROWER, true, &error));
    ASSERT_FAILS(ledger_commit(ledger, &hold_plan.entries[0], &error), ERROR_CORRUPT);
    ASSERT_FAILS(ledger_commit(ledger, &transfer_plan.entries[0], &error), ERROR_CORRUPT);
    ASSERT_FAILS(ledger_commit(ledger, &reclaim_plan.entries[0], &error), ERROR_CORRUPT);
}

TEST(an_account_is_closed_once_its_credits_went_back_to_mint)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger_with_parts();
    hold(ledger, BORROWER, JOB, 10);
    ASSERT_OK(ledger_plan_reclaim(ledger, BORROWER, 0, &plan, &error));
    commit_plan(ledger, &plan);
    ASSERT_FAILS(ledger_close_account(ledger, BORROWER, &error), ERROR_CONFLICT);
    void_hold(ledger, JOB, 10);
    ASSERT_FAILS(ledger_close_account(ledger, BORROWER, &error), ERROR_CONFLICT);
    ASSERT_OK(ledger_plan_reclaim(ledger, BORROWER, 0, &plan, &error));
    commit_plan(ledger, &plan);
    ASSERT_OK(ledger_plan_reclaim(ledger, BORROWER, 0, &plan, &error));
    assert_int_equal(plan.entry_count, 0);
    ASSERT_OK(ledger_close_account(ledger, BORROWER, &error));
    ASSERT_OK(ledger_check(ledger, &error));

    ASSERT_FAILS(ledger_close_account(ledger, BORROWER, &error), ERROR_CONFLICT);
    ASSERT_FAILS(ledger_open_account(ledger, BORROWER, &error), ERROR_CONFLICT);
    ASSERT_FAILS(ledger_set_frozen(ledger, BORROWER, true, &error), ERROR_CONFLICT);
    ASSERT_FAILS(ledger_plan_grant(ledger, BORROWER, 1, &plan, &error), ERROR_CONFLICT);
    ASSERT_FAILS(ledger_close_account(ledger, OPERATOR, &error), ERROR_INVALID);
}

TEST(nothing_is_committed_to_a_closed_account)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    ASSERT_OK(ledger_plan_grant(ledger, BORROWER, 1, &plan, &error));
    ASSERT_OK(ledger_close_account(ledger, BORROWER, &error));
    ASSERT_FAILS(ledger_commit(ledger, &plan.entries[0], &error), ERROR_CORRUPT);
    const struct ledger_account rich = {.id = LENDER, .granted_micro = 1, .is_closed = true};
    ASSERT_FAILS(ledger_restore_account(ledger, &rich, &error), ERROR_CORRUPT);
}

TEST(a_post_says_what_it_was_for)
{
    struct error error = {0};
    struct ledger_plan plan;
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 100);
    hold(ledger, BORROWER, JOB, 100);
    const struct ledger_post fee = {
        .job = JOB, .payee = LENDER, .amount_micro = 10, .memo = "cancelled late"};
    ASSERT_OK(ledger_plan_post(ledger, &fee, &plan, &error));
    assert_string_equal(plan.entries[0].memo, "cancelled late");
    assert_int_equal(plan.entries[0].lease, 0);
    commit_plan(ledger, &plan);
    assert_parts(ledger, LENDER, 0, 10, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_makes_mint_negative_and_nobody_else),
        cmocka_unit_test(granted_credits_are_held_and_spent_first_and_come_back_where_they_were),
        cmocka_unit_test(a_part_of_a_hold_is_given_back_in_the_reverse_order),
        cmocka_unit_test(a_hold_past_the_balance_is_refused_and_changes_nothing),
        cmocka_unit_test(a_post_past_the_hold_is_refused),
        cmocka_unit_test(the_fee_is_taken_out_of_the_post),
        cmocka_unit_test(withheld_credits_are_earned_but_cannot_be_spent_until_released),
        cmocka_unit_test(a_borrower_can_pay_for_its_own_machine),
        cmocka_unit_test(what_an_account_pays_itself_comes_back_as_what_it_was),
        cmocka_unit_test(an_entry_that_does_not_fit_is_corrupt_and_changes_nothing),
        cmocka_unit_test(a_refund_takes_what_there_is_still_and_leaves_nobody_below_zero),
        cmocka_unit_test(nothing_is_refunded_out_of_a_frozen_account),
        cmocka_unit_test(mint_cannot_give_out_more_than_the_supply),
        cmocka_unit_test(a_restored_ledger_is_checked_as_a_whole),
        cmocka_unit_test(only_earned_credits_that_are_not_withheld_are_transferred),
        cmocka_unit_test(a_transfer_needs_two_members),
        cmocka_unit_test(a_replayed_transfer_of_granted_or_withheld_credits_is_corrupt),
        cmocka_unit_test(a_reclaim_takes_granted_credits_first_and_withheld_ones_last),
        cmocka_unit_test(a_frozen_account_keeps_its_credits_and_its_holds_go_on),
        cmocka_unit_test(a_replayed_hold_or_transfer_out_of_a_frozen_account_is_corrupt),
        cmocka_unit_test(an_account_is_closed_once_its_credits_went_back_to_mint),
        cmocka_unit_test(a_bill_outside_shows_and_leaves_the_account_as_it_was),
        cmocka_unit_test(a_replayed_bill_between_members_is_corrupt),
        cmocka_unit_test(nothing_is_committed_to_a_closed_account),
        cmocka_unit_test(a_post_says_what_it_was_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
