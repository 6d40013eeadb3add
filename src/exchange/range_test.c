/* How a model is split among its servers. */
#include "exchange/message.h"
#include "exchange/range.h"
#include "testing/testing.h"

TEST(ranges_cover_the_model_without_gaps_and_are_nearly_equal)
{
    static const size_t counts[] = {8, 9, 20, 61706, 32768 * 127 + 1, 10 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (uint32_t servers = 1; servers <= EXCHANGE_SERVERS_MAX; servers++) {
            size_t end = 0;
            for (uint32_t rank = 0; rank < servers; rank++) {
                const struct range range = range_of(counts[i], servers, rank);
                assert_int_equal(range.first, end);
                end = range.first + range.count;
                const double share = (double)range.count * servers / (double)counts[i];
                assert_true(range.count > 0);
                if (counts[i] > 1000)
                    assert_true(share > 0.9 && share < 1.1);
            }
            assert_int_equal(end, counts[i]);
        }
}

TEST(large_ranges_begin_with_a_whole_run)
{
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(range_of(10 << 20, 3, rank).first % EXCHANGE_DATA_FLOATS, 0);
    assert_int_equal(range_of(20, 3, 1).first, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_cover_the_model_without_gaps_and_are_nearly_equal),
        cmocka_unit_test(large_ranges_begin_with_a_whole_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
