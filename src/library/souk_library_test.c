#include "testing/testing.h"

#include <souk/library.h>

TEST(every_code_has_a_name_and_others_are_unknown)
{
    assert_string_equal(souk_error_code_name(SOUK_REFUSED), "refused");
    assert_string_equal(souk_error_code_name(SOUK_STOPPED), "stopped");
    assert_string_equal(souk_error_code_name(SOUK_TIMED_OUT), "timed_out");
    assert_string_equal(souk_error_code_name(10), "unknown");
    assert_string_equal(souk_error_code_name(-1), "unknown");
}

TEST(the_library_says_which_it_is)
{
    assert_int_equal(souk_library_abi(), SOUK_ABI_VERSION);
    assert_true(souk_library_version()[0] >= '0' && souk_library_version()[0] <= '9');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_others_are_unknown),
        cmocka_unit_test(the_library_says_which_it_is),
    };
    return cmocka_run_group_tests_name("souk_library", tests, NULL, NULL);
}
