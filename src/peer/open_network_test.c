#include "peer/open_network.h"
#include "testing/testing.h"

TEST(an_owner_who_works_has_nine_tenths_and_one_who_pauses_has_all)
{
    struct open_terms terms;
    open_terms_init(&terms);
    assert_int_equal(open_network_rate(&terms, YIELD_FULL), 12500000);
    assert_int_equal(open_network_rate(&terms, YIELD_LOW), 1250000);
    assert_int_equal(open_network_rate(&terms, YIELD_FROZEN), 0);
}

TEST(the_slowest_line_is_not_closed_by_an_owner_who_works)
{
    const struct open_terms terms = {.kbit_per_s = 1};
    assert_int_equal(open_network_rate(&terms, YIELD_LOW), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_who_works_has_nine_tenths_and_one_who_pauses_has_all),
        cmocka_unit_test(the_slowest_line_is_not_closed_by_an_owner_who_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
