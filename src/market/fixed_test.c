/* Logarithms and powers against the C library's, and what must come out exactly. */
#include "base/random.h"
#include "market/fixed.h"
#include "testing/testing.h"

#include <math.h>

static double of_q32(int64_t value)
{
    return (double)value / (double)FIXED_Q32_ONE;
}

TEST(powers_of_two_have_whole_logarithms)
{
    for (int bit = 0; bit < 128; bit++)
        assert_int_equal(fixed_log2_q32((unsigned __int128)1 << bit), (int64_t)bit << 32);
    for (int bit = 0; bit < 63; bit++)
        assert_int_equal(fixed_exp2((int64_t)bit << 32), INT64_C(1) << bit);
}

TEST(golden_logarithms)
{
    /* log2(3) = 1.58496250072115618, log2(20000) = 14.28771237954945105, x 2^32 and rounded down.
     */
    assert_int_equal(fixed_log2_q32(3), INT64_C(6807362105));
    assert_int_equal(fixed_log2_q32(20000), INT64_C(61365257404));
}

TEST(cold_prices_come_back_from_their_logarithms)
{
    const int64_t prices[] = {20000, 2000, 180000, 60, 1, 7, 999999937};
    for (size_t i = 0; i < sizeof(prices) / sizeof(prices[0]); i++)
        assert_int_equal(fixed_exp2(fixed_log2_q32((unsigned __int128)prices[i])), prices[i]);
}

TEST(logarithms_are_right_to_the_last_bit_but_one)
{
    struct random random;
    random_init(&random, 1);
    for (int run = 0; run < 20000; run++) {
        const uint64_t value = (random_u64(&random) >> random_below(&random, 63)) | 1;
        const long double exact = log2l((long double)value) * 4294967296.0L;
        const int64_t ours = fixed_log2_q32(value);
        assert_true(fabsl((long double)ours - exact) <= 1.01L);
    }
}

TEST(powers_are_right_to_the_nearest_whole)
{
    struct random random;
    random_init(&random, 2);
    for (int run = 0; run < 20000; run++) {
        const int64_t exponent = (int64_t)random_below(&random, (uint64_t)40 << 32);
        const long double exact = exp2l((long double)exponent / 4294967296.0L);
        assert_true(fabsl((long double)fixed_exp2(exponent) - exact) <= 0.51L);
    }
}

TEST(powers_at_the_ends)
{
    assert_int_equal(fixed_exp2(-2 * FIXED_Q32_ONE), 0);
    assert_int_equal(fixed_exp2(-FIXED_Q32_ONE), 1); /* a half rounds up */
    assert_int_equal(fixed_exp2(-FIXED_Q32_ONE - 1), 0);
    assert_int_equal(fixed_exp2(INT64_MIN), 0);
    assert_true(fixed_exp2(63 * FIXED_Q32_ONE) == INT64_MAX);
    assert_true(fixed_exp2(INT64_MAX) == INT64_MAX);
    assert_true(fixed_exp2(63 * FIXED_Q32_ONE - 1) > INT64_C(9223372030000000000));
    assert_int_equal(fixed_exp2_q16(0), FIXED_Q16_ONE);
    assert_int_equal(fixed_exp2_q16(-FIXED_Q32_ONE), FIXED_Q16_ONE / 2);
}

TEST(a_sum_of_logarithms_is_a_product)
{
    const int64_t seven = fixed_log2_q32(7), eleven = fixed_log2_q32(11);
    assert_int_equal(fixed_exp2(seven + eleven), 77);
    assert_true(fabs(of_q32(seven + eleven) - log2(77)) < 1e-9);
}

TEST(scaling_truncates_towards_zero)
{
    assert_int_equal(fixed_scale(7, 3, 5), 4);
    assert_int_equal(fixed_scale(-7, 3, 5), -4);
    assert_true(fixed_scale(INT64_MAX, 10, 20) == INT64_MAX / 2);
    assert_int_equal(fixed_clamp(5, -2, 3), 3);
    assert_int_equal(fixed_clamp(-5, -2, 3), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_have_whole_logarithms),
        cmocka_unit_test(golden_logarithms),
        cmocka_unit_test(cold_prices_come_back_from_their_logarithms),
        cmocka_unit_test(logarithms_are_right_to_the_last_bit_but_one),
        cmocka_unit_test(powers_are_right_to_the_nearest_whole),
        cmocka_unit_test(powers_at_the_ends),
        cmocka_unit_test(a_sum_of_logarithms_is_a_product),
        cmocka_unit_test(scaling_truncates_towards_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
