#include "function/purse.h"
#include "testing/testing.h"

static const struct bill_price price = {.core_micro_per_hour = 20000000,
                                        .ram_micro_per_hour = 2000000};
static const struct purse_call call = {.memory_mb = 128, .time_ms = 5000, .passed_ms = 700};

static struct purse_paid pay(struct invoke_result result, struct purse *purse)
{
    struct purse_call made = call;
    made.held_micro = purse_most(purse, call.memory_mb, call.time_ms);
    purse_hold(purse, made.held_micro);
    return purse_pay(purse, &made, &result);
}

TEST(a_call_costs_what_it_was_billed_for)
{
    struct purse purse = {price};
    const struct purse_paid paid = pay((struct invoke_result){.billed_ms = 40}, &purse);
    assert_int_equal(paid.cost_micro, bill_call_micro(&price, 128, 40));
    assert_int_equal(paid.billed_ms, 40);
    assert_int_equal(purse.spent_micro, paid.cost_micro);
    assert_int_equal(purse.held_micro, 0);
}

TEST(a_call_costs_by_the_memory_it_had)
{
    struct purse less = {price}, more = {price};
    assert_int_equal(
        pay((struct invoke_result){.billed_ms = 40, .memory_mb = 64}, &less).cost_micro,
        bill_call_micro(&price, 64, 40));
    assert_int_equal(
        pay((struct invoke_result){.billed_ms = 40, .memory_mb = 1024}, &more).cost_micro,
        bill_call_micro(&price, 1024, 40));
}

TEST(many_short_calls_are_rounded_up_once)
{
    const struct bill_price low = {.core_micro_per_hour = 20000, .ram_micro_per_hour = 2000};
    struct purse purse = purse_begin(low, 0, 7);
    int64_t sum = 0;
    for (int i = 0; i < 528; i++)
        sum += pay((struct invoke_result){.billed_ms = 38}, &purse).cost_micro;
    assert_int_equal(sum, bill_call_micro(&low, 128, INT64_C(528) * 38));
    assert_true(sum < 528 / 20);
    assert_int_equal(purse.spent_micro, 7 + sum);
}

TEST(no_call_costs_more_than_was_held_for_it)
{
    struct purse purse = {price};
    const int64_t most = purse_most(&purse, 128, 5000);
    const struct invoke_result dear[] = {{.billed_ms = 10000000},
                                         {.billed_ms = 15001},
                                         {.billed_ms = 9000, .memory_mb = 10240},
                                         {.billed_ms = INT64_MAX}};
    for (int i = 0; i < 4; i++) {
        struct purse fresh = {price};
        assert_int_equal(pay(dear[i], &fresh).cost_micro, most);
        assert_true(pay(dear[i], &purse).cost_micro <= most);
    }
    assert_true(purse.spent_micro > 4 * most - 4 && purse.spent_micro <= 4 * most);
}

TEST(a_call_of_which_nothing_is_known_costs_all_that_was_held)
{
    struct purse purse = {price};
    const struct purse_paid paid =
        pay((struct invoke_result){.outcome = INVOKE_LOST, .billed_ms = -1}, &purse);
    assert_int_equal(paid.cost_micro, purse_most(&purse, 128, 5000));
    assert_int_equal(paid.billed_ms, 5000);
}

TEST(an_answer_without_a_bill_costs_the_time_it_took)
{
    struct purse purse = {price};
    const struct purse_paid paid =
        pay((struct invoke_result){.outcome = INVOKE_ANSWERED, .billed_ms = -1}, &purse);
    assert_int_equal(paid.cost_micro, bill_call_micro(&price, 128, 700));
}

TEST(what_is_left_is_neither_spent_nor_held)
{
    struct purse purse = {price, .budget_micro = 1000000};
    assert_int_equal(purse_left(&purse), 1000000);
    purse_hold(&purse, 400000);
    purse_hold(&purse, 600000);
    assert_int_equal(purse_left(&purse), 0);
    purse_release(&purse, 600000);
    assert_int_equal(purse_left(&purse), 600000);
    const struct purse none = {price};
    assert_true(purse_left(&none) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_costs_what_it_was_billed_for),
        cmocka_unit_test(a_call_costs_by_the_memory_it_had),
        cmocka_unit_test(many_short_calls_are_rounded_up_once),
        cmocka_unit_test(no_call_costs_more_than_was_held_for_it),
        cmocka_unit_test(a_call_of_which_nothing_is_known_costs_all_that_was_held),
        cmocka_unit_test(an_answer_without_a_bill_costs_the_time_it_took),
        cmocka_unit_test(what_is_left_is_neither_spent_nor_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
