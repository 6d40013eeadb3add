#include "function/bill.h"
#include "testing/testing.h"

TEST(a_core_and_its_memory_for_an_hour_cost_their_prices)
{
    const struct bill_price core = {.core_micro_per_hour = 1000000};
    const struct bill_price ram = {.ram_micro_per_hour = 250000};
    assert_int_equal(bill_call_micro(&core, 1769, 3600000), 1000000);
    assert_int_equal(bill_call_micro(&core, 3538, 1800000), 1000000);
    assert_int_equal(bill_call_micro(&ram, 1024, 3600000), 250000);
    const struct bill_price both = {1000000, 250000};
    assert_int_equal(bill_call_micro(&both, 1769, 3600000), 1000000 + 431885); /* 1.7275 GiB */
}

TEST(what_is_begun_is_rounded_up_and_nothing_is_free)
{
    const struct bill_price price = {1000000, 250000};
    assert_int_equal(bill_call_micro(&price, 128, 0), 0);
    assert_int_equal(bill_call_micro(&price, 128, 1), 1);
    int64_t sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += bill_call_micro(&price, 128, 100);
    assert_true(sum >= bill_call_micro(&price, 128, 100000));
    assert_true(bill_call_micro(&price, 10240, 86400000) > 0);
}

TEST(a_least_price_of_a_gib_is_that_of_its_parts)
{
    const struct bill_price usual = {20000, 2500};
    const struct bill_price least = bill_least(&usual, 60000);
    const int64_t hour = bill_call_micro(&least, 1024, 3600000);
    assert_true(hour >= 60000 && hour <= 60002);
    /* In their proportion, so that whoever is paid more than the usual for both is content. */
    assert_true(least.core_micro_per_hour >= 8 * (least.ram_micro_per_hour - 1));
    assert_true(least.core_micro_per_hour <= 8 * least.ram_micro_per_hour);
    assert_int_equal(bill_least(&usual, 0).core_micro_per_hour, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_and_its_memory_for_an_hour_cost_their_prices),
        cmocka_unit_test(what_is_begun_is_rounded_up_and_nothing_is_free),
        cmocka_unit_test(a_least_price_of_a_gib_is_that_of_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
