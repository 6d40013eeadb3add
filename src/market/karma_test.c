#include "market/karma.h"
#include "testing/testing.h"

TEST(a_reference_core_hour_costs_one_credit)
{
    const struct price_vector price = karma_price();
    assert_int_equal(price.core_micro, 1000000);
    assert_int_equal(price.ram_micro, 100000);
    assert_int_equal(price.gpu_micro, 9000000);
    assert_int_equal(price.disk_micro, 3000);
}

TEST(half_of_the_share_is_free_and_the_other_half_comes_as_credits)
{
    struct karma_dues dues = karma_dues(4000000, 1, 1500000, 5000);
    assert_int_equal(dues.income_micro, 2000000);
    assert_int_equal(dues.guaranteed_micro, 1500000);
    dues = karma_dues(4000000, 1, 9000000, 5000);
    assert_int_equal(dues.guaranteed_micro, 2000000);
    dues = karma_dues(4000000, 3, 9000000, 5000);
    assert_int_equal(dues.income_micro, 6000000);
    assert_int_equal(dues.guaranteed_micro, 6000000);
    dues = karma_dues(0, 5, 100, 5000);
    assert_int_equal(dues.income_micro + dues.guaranteed_micro, 0);
}

TEST(centuries_of_a_large_share_do_not_wrap_around)
{
    const struct karma_dues dues = karma_dues(PRICE_MICRO_MAX, 1000000, 0, 0);
    assert_true(dues.income_micro == PRICE_MICRO_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_core_hour_costs_one_credit),
        cmocka_unit_test(half_of_the_share_is_free_and_the_other_half_comes_as_credits),
        cmocka_unit_test(centuries_of_a_large_share_do_not_wrap_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
