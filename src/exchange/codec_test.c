/*
 * Every codec there and back, by value and by bytes, and what is refused.
 *
 * covers codec_half.c, codec_sane.c, codec_sign.c, codec_sparse.c
 */
#include "base/random.h"
#include "exchange/codec.h"
#include "testing/testing.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct run {
    float values[CODEC_RUN_MAX], told[CODEC_RUN_MAX], got[CODEC_RUN_MAX];
    uint8_t bytes[8 * CODEC_RUN_MAX];
    size_t size;
};

static struct run run;

static void there_and_back(enum codec codec, float threshold, size_t count)
{
    struct error error;
    run.size = codec_encode(codec, threshold, run.values, count, run.bytes, run.told);
    const struct text bytes = {(const char *)run.bytes, run.size};
    ASSERT_OK(codec_decode(codec, bytes, run.got, count, &error));
    for (size_t i = 0; i < count; i++)
        assert_true(run.got[i] == run.told[i]);
}

static void fill(struct random *random, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        run.values[i] = scale * (float)random_normal(random);
}

static double error_share(size_t count)
{
    double lost = 0, whole = 0;
    for (size_t i = 0; i < count; i++) {
        const double difference = (double)run.values[i] - (double)run.got[i];
        lost += difference * difference;
        whole += (double)run.values[i] * (double)run.values[i];
    }
    return sqrt(lost / whole);
}

TEST(what_arrives_is_what_was_told_and_near_what_was_sent)
{
    static const struct {
        enum codec codec;
        double error_max; /* root mean square, of the values' own */
    } expected[] = {{CODEC_F32, 0},       {CODEC_F16, 3e-4},  {CODEC_BF16, 3e-3},
                    {CODEC_INT8, 1.2e-2}, {CODEC_1BIT, 0.65}, {CODEC_TOPK, 0.9}};
    static const size_t counts[] = {1, 7, 8, 1023, 1024, 1025, 5000, CODEC_RUN_MAX};
    struct random random;
    random_init(&random, 7);
    for (size_t c = 0; c < sizeof(expected) / sizeof(*expected); c++)
        for (size_t n = 0; n < sizeof(counts) / sizeof(*counts); n++)
            for (int power = -30; power <= 10; power += 10) {
                fill(&random, counts[n], ldexpf(1, power));
                const float threshold = codec_threshold(run.values, counts[n], 0.1);
                there_and_back(expected[c].codec, threshold, counts[n]);
                assert_true(run.size <= codec_size_max(expected[c].codec, counts[n]));
                if (counts[n] > 1000)
                    assert_true(error_share(counts[n]) <= expected[c].error_max);
            }
}

TEST(halves_are_rounded_to_the_nearest_and_ties_to_even)
{
    /* The largest sets the block's exponent: 16384 stays as it is. */
    const float values[] = {16384, 2049,  2051,     -2049,      0.1F,
                            0,     -0.0F, 0x1p-24F, 0x1.8p-24F, 0x1p-26F};
    const float wanted[] = {16384, 2048, 2052, -2048, 0x1.998p-4F, 0, 0, 0x1p-24F, 0x1p-23F, 0};
    const size_t count = sizeof(values) / sizeof(*values);
    memcpy(run.values, values, sizeof(values));
    there_and_back(CODEC_F16, 0, count);
    for (size_t i = 0; i < count; i++)
        assert_true(run.got[i] == wanted[i]);
    assert_int_equal(run.size, 1 + 2 * count);
}

TEST(small_blocks_keep_their_digits_beside_large_ones)
{
    for (size_t i = 0; i < CODEC_BLOCK; i++) {
        run.values[i] = 1000 + (float)i;
        run.values[CODEC_BLOCK + i] = 1e-9F * (1 + (float)i / CODEC_BLOCK);
    }
    there_and_back(CODEC_F16, 0, (size_t)2 * CODEC_BLOCK);
    for (size_t i = CODEC_BLOCK; i < (size_t)2 * CODEC_BLOCK; i++)
        assert_true(fabsf(run.got[i] / run.values[i] - 1) < 1e-3F);
}

TEST(one_bit_keeps_signs_and_the_mean_size)
{
    const float values[] = {3, -1, 2, -2, 0.5F, -0.5F, 1, 2, -4};
    memcpy(run.values, values, sizeof(values));
    there_and_back(CODEC_1BIT, 0, 9);
    for (size_t i = 0; i < 9; i++)
        assert_true(run.got[i] == copysignf(16.0F / 9, values[i]));
    assert_int_equal(run.size, 4 + 2);
}

TEST(top_k_keeps_the_largest_at_their_places)
{
    memset(run.values, 0, sizeof(run.values));
    run.values[3] = 8;
    run.values[700] = -16;
    run.values[CODEC_RUN_MAX - 1] = 4;
    run.values[9] = 1;
    there_and_back(CODEC_TOPK, 4, CODEC_RUN_MAX);
    assert_true(run.got[3] == 8 && run.got[700] == -16 && run.got[CODEC_RUN_MAX - 1] == 4);
    assert_true(run.got[9] == 0);
    assert_int_equal(run.size, 4 + 3 * 2 + 1 + 3 * 2);
    there_and_back(CODEC_TOPK, 100, CODEC_RUN_MAX);
    assert_int_equal(run.size, 4);
}

TEST(f32_of_which_most_are_zero_travels_by_places_without_loss)
{
    struct error error;
    static const size_t counts[] = {7, 1024, CODEC_RUN_MAX};
    for (size_t n = 0; n < sizeof(counts) / sizeof(*counts); n++) {
        const size_t count = counts[n];
        memset(run.values, 0, sizeof(run.values));
        run.values[0] = -0.0F; /* not the bits of 0 */
        run.values[count - 1] = 0.1F;
        there_and_back(CODEC_F32, 0, count);
        assert_int_equal(run.size, count == 7 ? 28 : 4 + 2 * 6);
        assert_memory_equal(run.got, run.values, count * sizeof(float));
    }
    memset(run.values, 0, sizeof(run.values));
    there_and_back(CODEC_F32, 0, CODEC_RUN_MAX);
    assert_int_equal(run.size, 4);
    for (size_t i = 0; i < 1200; i += 3)
        run.values[i] = 1; /* a third: it would take more than half */
    there_and_back(CODEC_F32, 0, 1200);
    assert_int_equal(run.size, 4 * 1200);
    for (size_t i = 0; i < 1200; i += 6)
        run.values[i] = 0;
    there_and_back(CODEC_F32, 0, 1200);
    assert_int_equal(run.size, 4 + 200 * 6);
    assert_int_equal(codec_sparse_bytes(run.values, 1200), 200 * 6);
    /* One place too far, two the same, a byte too few or too many. */
    const uint16_t last = 1200, same = 3;
    uint8_t *last_place = run.bytes + sizeof(uint32_t) + sizeof(uint16_t[199]);
    const struct text bytes = {(const char *)run.bytes, run.size};
    for (int off = -1; off <= 1; off += 2)
        ASSERT_FAILS(codec_decode(CODEC_F32, (struct text){bytes.data, bytes.size + (size_t)off},
                                  run.got, 1200, &error),
                     ERROR_CORRUPT);
    memcpy(last_place, &last, 2);
    ASSERT_FAILS(codec_decode(CODEC_F32, bytes, run.got, 1200, &error), ERROR_CORRUPT);
    memcpy(last_place, &same, 2);
    ASSERT_FAILS(codec_decode(CODEC_F32, bytes, run.got, 1200, &error), ERROR_CORRUPT);
}

TEST(a_threshold_keeps_about_the_density)
{
    struct random random;
    random_init(&random, 11);
    fill(&random, CODEC_RUN_MAX, 0.01F);
    const float threshold = codec_threshold(run.values, CODEC_RUN_MAX, 0.01);
    size_t kept = 0;
    for (size_t i = 0; i < CODEC_RUN_MAX; i++)
        kept += fabsf(run.values[i]) >= threshold;
    assert_in_range(kept, CODEC_RUN_MAX / 200, CODEC_RUN_MAX / 60);
    memset(run.values, 0, sizeof(run.values));
    assert_true(codec_threshold(run.values, 100, 0.5) > 0);
    there_and_back(CODEC_TOPK, codec_threshold(run.values, 100, 0.5), 100);
    assert_int_equal(run.size, 4);
}

TEST(zeros_and_the_smallest_numbers_do_no_harm)
{
    for (enum codec codec = 0; codec < CODEC_COUNT; codec++) {
        memset(run.values, 0, 2000 * sizeof(float));
        there_and_back(codec, 1, 2000);
        for (size_t i = 0; i < 2000; i++)
            assert_true(run.got[i] == 0);
        for (size_t i = 0; i < 2000; i++)
            run.values[i] = i % 2 ? FLT_TRUE_MIN : -FLT_MIN;
        there_and_back(codec, FLT_TRUE_MIN, 2000);
        for (size_t i = 0; i < 2000; i++)
            assert_true(fabsf(run.got[i]) <= 2 * FLT_MIN);
    }
}

TEST(bytes_that_are_no_run_are_refused)
{
    struct error error;
    struct random random;
    random_init(&random, 5);
    fill(&random, 3000, 1);
    for (enum codec codec = 0; codec < CODEC_COUNT; codec++) {
        there_and_back(codec, 0.5F, 3000);
        const struct text less = {(const char *)run.bytes, run.size - 1};
        const struct text more = {(const char *)run.bytes, run.size + 1};
        const struct text none = {"", 0};
        ASSERT_FAILS(codec_decode(codec, less, run.got, 3000, &error), ERROR_CORRUPT);
        ASSERT_FAILS(codec_decode(codec, more, run.got, 3000, &error), ERROR_CORRUPT);
        ASSERT_FAILS(codec_decode(codec, none, run.got, 3000, &error), ERROR_CORRUPT);
    }
    /* Places of top-k: past the end, and not ascending. */
    const uint8_t past[] = {1, 0, 0, 0, 10, 0, 0, 0, 0};
    const uint8_t twice[] = {2, 0, 0, 0, 3, 0, 3, 0, 0, 0, 0, 0, 0};
    const uint8_t many[] = {11, 0, 0, 0};
    const struct text places[] = {{(const char *)past, sizeof(past)},
                                  {(const char *)twice, sizeof(twice)},
                                  {(const char *)many, sizeof(many)}};
    for (size_t i = 0; i < 3; i++)
        ASSERT_FAILS(codec_decode(CODEC_TOPK, places[i], run.got, 10, &error), ERROR_CORRUPT);
}

TEST(names_are_read_and_a_wrong_one_is_told_the_right_ones)
{
    struct error error;
    enum codec codec;
    for (enum codec wanted = 0; wanted < CODEC_COUNT; wanted++) {
        ASSERT_OK(codec_parse(text_of(codec_name(wanted)), &codec, &error));
        assert_int_equal(codec, wanted);
    }
    ASSERT_FAILS(codec_parse(TEXT("zip"), &codec, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "1bit or topk"));
}

TEST(values_beyond_reason_are_seen)
{
    float values[3] = {1, -1048575, 0};
    assert_true(codec_is_sane(values, 3));
    values[2] = -1048576;
    assert_false(codec_is_sane(values, 3));
    values[2] = NAN;
    assert_false(codec_is_sane(values, 3));
    values[2] = -INFINITY;
    assert_false(codec_is_sane(values, 3));
}

TEST(differences_beyond_reason_are_seen)
{
    const float values[3] = {1, -1048575, 0}, base[3] = {3, 0, -2};
    float out[3];
    assert_true(codec_subtract_sane(values, base, out, 3));
    assert_true(out[0] == -2 && out[1] == -1048575 && out[2] == 2);
    assert_false(codec_subtract_sane(values, (const float[3]){3, 1, 0}, out, 3));
    assert_false(codec_subtract_sane(values, (const float[3]){3, 0, NAN}, out, 3));
}

/* Many are looked at together, and what is left one by one. */
TEST(a_value_beyond_reason_is_seen_wherever_it_stands)
{
    enum { SIZE = 77 };
    float values[SIZE] = {0}, out[SIZE];
    const float base[SIZE] = {0};
    for (size_t count = 1; count <= SIZE; count++)
        for (size_t i = 0; i < count; i++) {
            values[i] = 1048576;
            assert_false(codec_is_sane(values, count));
            assert_false(codec_copy_sane(values, out, count));
            assert_memory_equal(out, values, count * sizeof(float));
            assert_false(codec_subtract_sane(values, base, out, count));
            assert_memory_equal(out, values, count * sizeof(float));
            values[i] = 1048575;
            assert_true(codec_is_sane(values, count));
            assert_true(codec_copy_sane(values, out, count));
            assert_true(codec_subtract_sane(values, base, out, count));
            assert_memory_equal(out, values, count * sizeof(float));
        }
}

/* Eight at a time, and what is left one by one, come to the same. */
TEST(a_float_travels_alike_wherever_it_stands)
{
    enum { SIZE = 15, ROUNDS = 2000 };
    struct random random;
    random_init(&random, 3);
    for (int round = 0; round < ROUNDS; round++) {
        float values[SIZE], decoded[SIZE], again[SIZE];
        uint8_t bytes[8 * SIZE + 64];
        struct error error;
        for (int i = 0; i < 8; i++)
            values[i] = (float)(random_normal(&random) * exp(-40 * random_unit(&random)));
        for (int i = 8; i < SIZE; i++)
            values[i] = values[i - 8];
        for (enum codec codec = CODEC_F32; codec < CODEC_COUNT; codec++) {
            const size_t size = codec_encode(codec, 0, values, SIZE, bytes, decoded);
            ASSERT_OK(
                codec_decode(codec, (struct text){(const char *)bytes, size}, again, SIZE, &error));
            assert_memory_equal(decoded, again, sizeof decoded);
            assert_memory_equal(decoded, decoded + 8, (SIZE - 8) * sizeof(float));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_arrives_is_what_was_told_and_near_what_was_sent),
        cmocka_unit_test(halves_are_rounded_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(small_blocks_keep_their_digits_beside_large_ones),
        cmocka_unit_test(one_bit_keeps_signs_and_the_mean_size),
        cmocka_unit_test(top_k_keeps_the_largest_at_their_places),
        cmocka_unit_test(f32_of_which_most_are_zero_travels_by_places_without_loss),
        cmocka_unit_test(a_threshold_keeps_about_the_density),
        cmocka_unit_test(zeros_and_the_smallest_numbers_do_no_harm),
        cmocka_unit_test(bytes_that_are_no_run_are_refused),
        cmocka_unit_test(names_are_read_and_a_wrong_one_is_told_the_right_ones),
        cmocka_unit_test(values_beyond_reason_are_seen),
        cmocka_unit_test(differences_beyond_reason_are_seen),
        cmocka_unit_test(a_value_beyond_reason_is_seen_wherever_it_stands),
        cmocka_unit_test(a_float_travels_alike_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
