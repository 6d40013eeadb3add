#include "base/random.h"
#include "ledger/ledger.h"
#include "testing/testing.h"

#include <stdio.h>

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

TEST(the_fee_is_taken_out_of_the_post_and_rounded_down)
{
    AUTO(ledger) struct ledger *ledger = new_ledger();
    grant(ledger, BORROWER, 1000);
    hold(ledger, BORROWER, JOB, 1000);
    post(ledger, (struct ledger_post){.job = JOB,
                                      .lease = LEASE,
                                      .payee = LENDER,
                                      .amount_micro = 999,
                                      .fee_basis_points = 500});
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
    post(ledger,
         (struct ledger_post){
             .job = JOB, .payee = LENDER, .amount_micro = 100, .withheld_basis_points = 5000});
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

/* Random operations, most of them sensible: what is refused changes nothing, the rest balances. */
static void run_random(uint64_t seed)
{
    struct error error = {0};
    struct random random;
    random_init(&random, seed);
    AUTO(ledger) struct ledger *ledger = new_ledger();
    for (int step = 0; step < 2000; step++) {
        struct ledger_plan plan = {0};
        const uint64_t account = BORROWER + random_below(&random, 2);
        const uint64_t job = JOB + random_below(&random, 4);
        const int64_t amount = 1 + (int64_t)random_below(&random, 1000);
        const struct ledger_post paid = {.job = job,
                                         .payee = OPERATOR + random_below(&random, 3),
                                         .amount_micro = amount,
                                         .fee_basis_points = (int64_t)random_below(&random, 501),
                                         .withheld_basis_points =
                                             (int64_t)random_below(&random, 2) * 1000};
        int result = -1;
        switch (random_below(&random, 5)) {
        case 0:
            result = ledger_plan_grant(ledger, account, amount, &plan, &error);
            break;
        case 1:
            result = ledger_plan_hold(ledger, account, job, amount, &plan, &error);
            break;
        case 2:
            result = ledger_plan_post(ledger, &paid, &plan, &error);
            break;
        case 3:
            result = ledger_plan_void(ledger, job, amount, &plan, &error);
            break;
        default:
            result = ledger_plan_release(ledger, account, amount, &plan, &error);
        }
        if (result == 0)
            commit_plan(ledger, &plan);
    }
}

TEST(any_sequence_of_operations_keeps_the_sum_at_zero)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        print_message("seed %d\n", (int)seed);
        run_random(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_makes_mint_negative_and_nobody_else),
        cmocka_unit_test(granted_credits_are_held_and_spent_first_and_come_back_where_they_were),
        cmocka_unit_test(a_part_of_a_hold_is_given_back_in_the_reverse_order),
        cmocka_unit_test(a_hold_past_the_balance_is_refused_and_changes_nothing),
        cmocka_unit_test(a_post_past_the_hold_is_refused),
        cmocka_unit_test(the_fee_is_taken_out_of_the_post_and_rounded_down),
        cmocka_unit_test(withheld_credits_are_earned_but_cannot_be_spent_until_released),
        cmocka_unit_test(a_borrower_can_pay_for_its_own_machine),
        cmocka_unit_test(an_entry_that_does_not_fit_is_corrupt_and_changes_nothing),
        cmocka_unit_test(mint_cannot_give_out_more_than_the_supply),
        cmocka_unit_test(a_restored_ledger_is_checked_as_a_whole),
        cmocka_unit_test(any_sequence_of_operations_keeps_the_sum_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
