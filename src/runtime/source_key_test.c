#include "runtime/source_key.h"
#include "testing/testing.h"

static void each_lease_and_each_secret_has_a_key_of_its_own(void **state)
{
    (void)state;
    uint8_t secret[SOURCE_SECRET_SIZE] = {1}, other[SOURCE_SECRET_SIZE] = {2};
    uint8_t first[SOURCE_KEY_SIZE], again[SOURCE_KEY_SIZE], second[SOURCE_KEY_SIZE];
    source_key(secret, 7, first);
    source_key(secret, 7, again);
    assert_memory_equal(first, again, SOURCE_KEY_SIZE);
    source_key(secret, 8, second);
    assert_memory_not_equal(first, second, SOURCE_KEY_SIZE);
    source_key(secret, UINT64_C(7) << 32, second);
    assert_memory_not_equal(first, second, SOURCE_KEY_SIZE);
    source_key(other, 7, second);
    assert_memory_not_equal(first, second, SOURCE_KEY_SIZE);
    assert_memory_not_equal(first, secret, SOURCE_KEY_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lease_and_each_secret_has_a_key_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
