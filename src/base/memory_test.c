#include "base/memory.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>

TEST(resident_bytes_follow_what_is_touched)
{
    enum { SIZE = 32 << 20 };
    const long long before = memory_resident_bytes();
    assert_true(before > 0);
    char *block = malloc(SIZE);
    assert_non_null(block);
    memset(block, 1, SIZE);
    assert_true(memory_resident_bytes() > before + SIZE / 2);
    free(block);
}

TEST(a_trimmed_process_goes_on_and_is_no_larger)
{
    const long long before = memory_resident_bytes();
    memory_trim();
    /* What the trim itself and this comparison run is back already. */
    assert_true(memory_resident_bytes() <= before + (1 << 20));
    char text[32];
    assert_int_equal(snprintf(text, sizeof(text), "%d", 42), 2);
    assert_string_equal(text, "42");
}

TEST(memory_is_zeroed_also_for_no_items)
{
    static const char zeroes[64];
    char *items = memory_zeroed(8, 8);
    assert_memory_equal(items, zeroes, sizeof(zeroes));
    free(items);
    char *none = memory_zeroed(0, 8);
    assert_memory_equal(none, zeroes, 8);
    free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_also_for_no_items),
        cmocka_unit_test(resident_bytes_follow_what_is_touched),
        cmocka_unit_test(a_trimmed_process_goes_on_and_is_no_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
