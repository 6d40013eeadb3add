/* Nothing is lost for good, and momentum stops where it was sent. */
#include "base/random.h"
#include "exchange/compressor.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

enum { COUNT = 3 * CODEC_BLOCK + 100 };

static uint8_t bytes[8 * CODEC_RUN_MAX];

/* Sends the vector in two runs and adds what arrives. */
static void send_vector(struct compressor *compressor, enum codec wanted, double density,
                        float *vector, double arrived[COUNT])
{
    static float got[COUNT];
    struct error error;
    const size_t first = (size_t)2 * CODEC_BLOCK;
    const enum codec codec = compressor_load(compressor, vector, wanted, density);
    size_t size = compressor_next(compressor, 0, first, bytes);
    ASSERT_OK(codec_decode(codec, (struct text){(const char *)bytes, size}, got, first, &error));
    size = compressor_next(compressor, first, COUNT - first, bytes);
    ASSERT_OK(codec_decode(codec, (struct text){(const char *)bytes, size}, got + first,
                           COUNT - first, &error));
    for (size_t i = 0; i < COUNT; i++)
        arrived[i] += (double)got[i];
}

TEST(what_one_vector_cannot_carry_comes_with_a_later_one)
{
    struct error error;
    for (enum codec codec = 0; codec < CODEC_COUNT; codec++) {
        static double arrived[COUNT], sent[COUNT];
        static float vector[COUNT];
        struct random random;
        random_init(&random, 3);
        memset(arrived, 0, sizeof(arrived));
        memset(sent, 0, sizeof(sent));
        AUTO(compressor) struct compressor *compressor = NULL;
        const struct compressor_options options = {.count = COUNT};
        ASSERT_OK(compressor_open(&options, &compressor, &error));
        for (int round = 0; round < 400; round++) {
            for (size_t i = 0; i < COUNT; i++) {
                vector[i] = 0.01F * (float)random_normal(&random) + (i % 3 ? 0.001F : -0.002F);
                sent[i] += (double)vector[i];
            }
            send_vector(compressor, codec, 0.05, vector, arrived);
        }
        double off = 0, whole = 0;
        for (size_t i = 0; i < COUNT; i++) {
            off += (arrived[i] - sent[i]) * (arrived[i] - sent[i]);
            whole += sent[i] * sent[i];
        }
        /* Each value is about 0.6 by now; what is held back is a few updates' worth. */
        assert_true(sqrt(off / whole) < 0.25);
    }
}

/* Gradient descent on a bowl whose axes differ tenfold, through the codec. */
TEST(descent_arrives_by_every_codec)
{
    struct error error;
    for (enum codec codec = 0; codec < CODEC_COUNT; codec++) {
        static double position[COUNT];
        static float step[COUNT];
        for (size_t i = 0; i < COUNT; i++)
            position[i] = i % 2 ? 1 : -1;
        AUTO(compressor) struct compressor *compressor = NULL;
        const struct compressor_options options = {.count = COUNT};
        ASSERT_OK(compressor_open(&options, &compressor, &error));
        for (int round = 0; round < 2000; round++) {
            for (size_t i = 0; i < COUNT; i++)
                step[i] = (float)(-0.02 * (1 + (double)(i % 10)) / 10 * position[i]);
            send_vector(compressor, codec, 0.1, step, position);
        }
        double largest = 0;
        for (size_t i = 0; i < COUNT; i++)
            largest = fmax(largest, fabs(position[i]));
        assert_true(largest < 0.1);
    }
}

TEST(momentum_gathers_while_it_waits_and_stops_where_it_was_sent)
{
    struct error error;
    static double arrived[COUNT];
    static float vector[COUNT];
    AUTO(compressor) struct compressor *compressor = NULL;
    const struct compressor_options options = {.momentum = 0.5, .count = COUNT};
    ASSERT_OK(compressor_open(&options, &compressor, &error));
    memset(arrived, 0, sizeof(arrived));
    /* The first takes all the room; the second waits: 1, then 1 + 1.5, then 1 + 1.5 + 1.75. */
    for (int round = 0; round < 3; round++) {
        memset(vector, 0, sizeof(vector));
        vector[0] = 64;
        vector[1] = 1;
        send_vector(compressor, CODEC_TOPK, 1.0 / COUNT, vector, arrived);
        assert_true(arrived[1] == 0);
        assert_true(arrived[0] == 64.0 * (round + 1)); /* no momentum is left of what was sent */
    }
    memset(vector, 0, sizeof(vector));
    send_vector(compressor, CODEC_TOPK, 1.0 / COUNT, vector, arrived);
    assert_true(arrived[1] == 1 + 1.5 + 1.75 + 0.875);
}

TEST(what_is_not_finite_is_sent_as_it_is)
{
    struct error error;
    static float vector[COUNT];
    AUTO(compressor) struct compressor *compressor = NULL;
    const struct compressor_options options = {.count = COUNT};
    ASSERT_OK(compressor_open(&options, &compressor, &error));
    for (size_t i = 0; i < COUNT; i++)
        vector[i] = 1;
    assert_int_equal(compressor_load(compressor, vector, CODEC_INT8, 0), CODEC_INT8);
    vector[5] = NAN;
    assert_int_equal(compressor_load(compressor, vector, CODEC_INT8, 0), CODEC_F32);
}

TEST(what_is_mostly_zeros_is_sent_without_loss_where_that_is_no_longer)
{
    struct error error;
    static float vector[COUNT];
    static double arrived[COUNT];
    AUTO(compressor) struct compressor *compressor = NULL;
    const struct compressor_options options = {.count = COUNT};
    ASSERT_OK(compressor_open(&options, &compressor, &error));
    memset(vector, 0, sizeof(vector));
    memset(arrived, 0, sizeof(arrived));
    for (size_t i = 0; i < COUNT; i += 7)
        vector[i] = 0.1F * (float)(i + 1);
    send_vector(compressor, CODEC_INT8, 1, vector, arrived);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(arrived[i] == (double)vector[i]);
    for (size_t i = 0; i < COUNT; i += 5)
        vector[i] = 0.1F; /* now more than a sixth are not 0 */
    assert_int_equal(compressor_load(compressor, vector, CODEC_INT8, 1), CODEC_INT8);
    assert_int_equal(compressor_load(compressor, vector, CODEC_F16, 1), CODEC_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_vector_cannot_carry_comes_with_a_later_one),
        cmocka_unit_test(descent_arrives_by_every_codec),
        cmocka_unit_test(momentum_gathers_while_it_waits_and_stops_where_it_was_sent),
        cmocka_unit_test(what_is_not_finite_is_sent_as_it_is),
        cmocka_unit_test(what_is_mostly_zeros_is_sent_without_loss_where_that_is_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
