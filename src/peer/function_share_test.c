#include "function/host.h"
#include "peer/function_share.h"
#include "testing/testing.h"

static int64_t cores_of(int64_t memory_mb)
{
    return (memory_mb * 1000 + HOST_MB_PER_CORE - 1) / HOST_MB_PER_CORE;
}

static struct function_share share_of(int64_t ram_mb, uint32_t memory_mb, bool is_elsewhere)
{
    return function_share(&(struct function_share_wish){.ram_bytes = ram_mb << 20,
                                                        .cores_milli = cores_of(ram_mb),
                                                        .memory_mb = memory_mb,
                                                        .is_elsewhere = is_elsewhere,
                                                        .room_bytes = INT64_C(2) << 30});
}

TEST(what_is_lent_has_as_many_functions_as_were_said_and_is_not_exceeded)
{
    static const uint32_t sizes[] = {128, 256, 512, 1769, 10240};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (uint32_t count = 1; count <= 100; count++) {
            const int64_t lent_mb = function_share_lent_mb(count, sizes[i]);
            const struct function_share share = share_of(lent_mb, sizes[i], false);
            assert_int_equal(share.count, count);
            assert_int_equal(share.memory_mb, sizes[i]);
            assert_true(share.own_bytes + ((int64_t)count * sizes[i] << 20) <= lent_mb << 20);
            assert_true(share.own_bytes >= INT64_C(128) << 20 && share.own_milli <= 1000);
        }
}

TEST(a_part_of_it_has_those_that_fit_beside_the_process)
{
    const struct function_share share = share_of(2048, 512, false);
    assert_int_equal(share.own_bytes, INT64_C(512) << 20);
    assert_int_equal(share.count, 3);
    const struct function_share small = share_of(400, 512, false);
    assert_int_equal(small.count, 1);
    assert_int_equal(small.memory_mb, 272); /* what the process leaves */
    const struct function_share smallest = share_of(100, 512, false);
    assert_int_equal(smallest.count, 1);
    assert_int_equal(smallest.memory_mb, HOST_MEMORY_MB_MIN);
}

TEST(functions_elsewhere_have_the_lease_and_the_process_a_part_of_its_machine)
{
    const struct function_share share = share_of(176900, 1769, true);
    assert_int_equal(share.count, 100);
    assert_int_equal(share.memory_mb, 1769);
    assert_int_equal(share.own_bytes, INT64_C(1) << 30); /* half of the room */
    assert_int_equal(share.own_milli, 1000);
    assert_int_equal(share_of(512, 256, true).own_bytes, INT64_C(128) << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_has_as_many_functions_as_were_said_and_is_not_exceeded),
        cmocka_unit_test(a_part_of_it_has_those_that_fit_beside_the_process),
        cmocka_unit_test(functions_elsewhere_have_the_lease_and_the_process_a_part_of_its_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
