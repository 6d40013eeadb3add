/* Vectors in runs, whole, by a rest and by a shadow; and what is refused. */
#include "base/random.h"
#include "exchange/compressor.h"
#include "exchange/vector.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

enum { COUNT = EXCHANGE_DATA_FLOATS + 10 };

static struct vector_scratch scratch;
static uint8_t payload[EXCHANGE_PAYLOAD_MAX];

static struct text next_payload(struct vector_sender *sender)
{
    struct vector_run run;
    vector_send_next(sender, &scratch, &run);
    assert_true(sizeof(run.head) + run.body.size <= sizeof(payload));
    memcpy(payload, run.head, sizeof(run.head));
    memcpy(payload + sizeof(run.head), run.body.data, run.body.size);
    return (struct text){(const char *)payload, sizeof(run.head) + run.body.size};
}

/* Returns the bytes that it took. */
static size_t travel(struct vector_sender *sender, struct vector_receiver *receiver)
{
    struct error error;
    size_t bytes = 0;
    receiver->codec = sender->codec;
    receiver->done = 0;
    while (sender->done < sender->count) {
        const struct text run = next_payload(sender);
        bytes += run.size;
        ASSERT_OK(vector_take(receiver, run, &scratch, &error));
        assert_int_equal(receiver->done, sender->done);
    }
    return bytes;
}

TEST(a_vector_travels_in_runs)
{
    static float sent[COUNT], got[COUNT];
    struct vector_sender sender = {0};
    struct vector_receiver receiver = {.values = got, .count = COUNT};
    for (int i = 0; i < COUNT; i++)
        sent[i] = (float)i;
    vector_send_begin(&sender, sent, COUNT, CODEC_F32, 0, &scratch);
    assert_int_equal(travel(&sender, &receiver), 16 + sizeof(sent));
    assert_memory_equal(sent, got, sizeof(sent));
}

TEST(a_vector_that_is_mostly_zeros_travels_short)
{
    static float model[COUNT], base[COUNT], got[COUNT], there[COUNT];
    for (int i = 0; i < COUNT; i++)
        model[i] = base[i] = (float)i;
    model[5] += 0.5F;
    model[COUNT - 1] -= 1;
    struct vector_sender sender = {.base = base};
    struct vector_receiver receiver = {.values = got, .count = COUNT};
    vector_send_begin(&sender, model, COUNT, CODEC_F32, 0, &scratch);
    assert_int_equal(travel(&sender, &receiver), 2 * (8 + 4 + 6));
    for (int i = 0; i < COUNT; i++)
        assert_true(got[i] == (i == 5 ? 0.5F : i == COUNT - 1 ? -1 : 0));
    /* As the values themselves, and into a shadow. */
    static float sparse[COUNT], shadow[COUNT];
    sparse[COUNT - 1] = 3;
    struct vector_sender whole = {.shadow = shadow};
    struct vector_receiver shadowed = {.values = got, .count = COUNT, .shadow = there};
    vector_send_begin(&whole, sparse, COUNT, CODEC_F32, 0, &scratch);
    assert_int_equal(travel(&whole, &shadowed), 2 * (8 + 4) + 6);
    assert_memory_equal(sparse, got, sizeof(sparse));
    assert_memory_equal(sparse, there, sizeof(sparse));
    assert_memory_equal(sparse, shadow, sizeof(sparse));
}

TEST(both_ends_of_a_shadow_stay_equal_and_come_to_the_model)
{
    static float model[COUNT], got[COUNT], here[COUNT], there[COUNT];
    for (enum codec codec = CODEC_F16; codec < CODEC_COUNT; codec++) {
        struct random random;
        random_init(&random, 9);
        struct vector_sender sender = {.shadow = here};
        struct vector_receiver receiver = {.values = got, .count = COUNT, .shadow = there};
        for (int i = 0; i < COUNT; i++)
            model[i] = (float)random_normal(&random);
        vector_send_begin(&sender, model, COUNT, CODEC_F32, 0, &scratch);
        travel(&sender, &receiver);
        assert_memory_equal(model, there, sizeof(model));
        for (int i = 0; i < COUNT; i++)
            model[i] += 0.01F * (float)random_normal(&random);
        for (int round = 0; round < 200; round++) {
            vector_send_begin(&sender, model, COUNT, codec, 0.05, &scratch);
            travel(&sender, &receiver);
            assert_memory_equal(here, there, sizeof(here));
            assert_memory_equal(got, there, sizeof(here));
        }
        double off = 0;
        for (int i = 0; i < COUNT; i++)
            off += pow((double)model[i] - (double)there[i], 2);
        assert_true(sqrt(off / COUNT) < 1e-3); /* it was 1e-2 */
    }
}

TEST(a_rest_goes_with_the_next_vector)
{
    struct error error;
    static float update[COUNT], got[COUNT];
    const struct compressor_options options = {.count = COUNT};
    AUTO(compressor) struct compressor *compressor = NULL;
    ASSERT_OK(compressor_open(&options, &compressor, &error));
    struct vector_sender sender = {.compressor = compressor};
    struct vector_receiver receiver = {.values = got, .count = COUNT};
    memset(update, 0, sizeof(update));
    update[0] = 8;
    update[COUNT - 1] = 1;
    const enum codec codec = compressor_load(compressor, update, CODEC_TOPK, 1e-9);
    vector_send_begin(&sender, update, COUNT, codec, 0, &scratch);
    assert_true(travel(&sender, &receiver) < 64);
    assert_true(got[0] == 8 && got[COUNT - 1] == 0);
    memset(update, 0, sizeof(update));
    vector_send_begin(&sender, update, COUNT, compressor_load(compressor, update, CODEC_F32, 0), 0,
                      &scratch);
    travel(&sender, &receiver);
    assert_true(got[0] == 0 && got[COUNT - 1] == 1);
}

TEST(runs_out_of_place_or_not_finite_are_refused)
{
    struct error error;
    float values[4] = {1, 2, 3, 4}, got[4];
    struct vector_sender sender = {0};
    struct vector_receiver receiver = {.values = got, .count = 4};
    vector_send_begin(&sender, values, 4, CODEC_F32, 0, &scratch);
    const struct text run = next_payload(&sender);
    static const size_t sizes[] = {0, 7, 8, 11, 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        ASSERT_FAILS(vector_take(&receiver, (struct text){run.data, sizes[i]}, &scratch, &error),
                     ERROR_CORRUPT);
    struct vector_receiver small = {.values = got, .count = 3};
    ASSERT_FAILS(vector_take(&small, run, &scratch, &error), ERROR_CORRUPT);
    struct vector_receiver begun = {.values = got, .count = 4, .done = 1};
    ASSERT_FAILS(vector_take(&begun, run, &scratch, &error), ERROR_CORRUPT);
    struct vector_receiver full = {.values = got, .count = 4, .done = 4};
    ASSERT_FAILS(vector_take(&full, run, &scratch, &error), ERROR_CORRUPT);
    const float specials[] = {NAN, INFINITY, -INFINITY, 2e6F};
    for (int i = 0; i < 4; i++) {
        values[3] = specials[i];
        vector_send_begin(&sender, values, 4, CODEC_F32, 0, &scratch);
        receiver.done = 0;
        ASSERT_FAILS(vector_take(&receiver, next_payload(&sender), &scratch, &error),
                     ERROR_INVALID);
    }
}

TEST(what_is_above_a_base_is_sent_as_it_is_and_neither_is_changed)
{
    static float values[COUNT], base[COUNT], got[COUNT];
    struct error error;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = (float)(i % 100);
        base[i] = (float)(i % 7);
    }
    struct vector_sender sender = {.base = base};
    struct vector_receiver receiver = {.values = got, .count = COUNT};
    vector_send_begin(&sender, values, COUNT, CODEC_F32, 0, &scratch);
    while (sender.done < sender.count) {
        struct vector_run run;
        vector_send_next(&sender, &scratch, &run);
        memcpy(payload, run.head, sizeof run.head);
        memcpy(payload + sizeof run.head, run.body.data, run.body.size);
        const struct text frame = {(const char *)payload, sizeof run.head + run.body.size};
        ASSERT_OK(vector_take(&receiver, frame, &scratch, &error));
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_true(got[i] == (float)(i % 100) - (float)(i % 7) && base[i] == (float)(i % 7));
}

TEST(a_digest_tells_vectors_apart)
{
    enum { SIZE = 21 };
    float values[SIZE];
    for (int i = 0; i < SIZE; i++)
        values[i] = 0.5F * (float)i;
    const uint64_t digest = vector_digest(values, SIZE);
    assert_true(vector_digest(values, SIZE) == digest);
    assert_true(vector_digest(values, SIZE - 1) != digest);
    for (int i = 0; i < SIZE; i++) {
        const float kept = values[i];
        values[i] = nextafterf(kept, 100);
        assert_true(vector_digest(values, SIZE) != digest);
        values[i] = kept;
    }
    values[0] = 0.5F; /* two that change places */
    values[1] = 0;
    assert_true(vector_digest(values, SIZE) != digest);
}

/* As a link does it: the bytes are in the vector before anybody has looked at them. */
TEST(a_run_in_its_place_is_looked_at_and_copied)
{
    static float values[COUNT], came[COUNT], copy[COUNT];
    struct vector_sender sender = {0};
    struct vector_receiver receiver = {.values = came, .count = COUNT};
    struct vector_run run;
    struct error error;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 0.5F + (float)i;
    vector_send_begin(&sender, values, COUNT, CODEC_F32, 1, &scratch);
    while (sender.done < COUNT) {
        vector_send_next(&sender, &scratch, &run);
        assert_null(vector_place(&receiver, run.body.size + 4));
        assert_null(vector_place(&receiver, run.body.size - 4));
        void *place = vector_place(&receiver, run.body.size);
        assert_ptr_equal(place, came + receiver.done);
        memcpy(place, run.body.data, run.body.size);
        const struct text head = {(const char *)run.head, sizeof(run.head)};
        ASSERT_OK(vector_take_placed(&receiver, head, run.body.size, copy, &error));
        assert_int_equal(receiver.done, sender.done);
    }
    assert_memory_equal(came, values, sizeof(values));
    assert_memory_equal(copy, values, sizeof(values));
    assert_null(vector_place(&receiver, 0));
    receiver.done = 0;
    receiver.codec = CODEC_F16;
    assert_null(vector_place(&receiver, 4UL * EXCHANGE_DATA_FLOATS));
}

TEST(a_run_in_its_place_is_refused_out_of_turn_or_with_numbers_that_are_none)
{
    static float came[COUNT], copy[COUNT];
    struct vector_receiver receiver = {.values = came, .count = COUNT};
    struct error error;
    const size_t size = 4UL * EXCHANGE_DATA_FLOATS, at = 5000;
    const uint8_t later[8] = {1}, first[8] = {0};
    assert_int_equal(
        vector_take_placed(&receiver, (struct text){(const char *)later, 8}, size, NULL, &error),
        -1);
    assert_int_equal(error.code, ERROR_CORRUPT);
    came[at] = NAN;
    copy[at] = 3;
    assert_int_equal(
        vector_take_placed(&receiver, (struct text){(const char *)first, 8}, size, copy, &error),
        -1);
    assert_int_equal(error.code, ERROR_INVALID);
    assert_true(copy[at] == 3);
    assert_int_equal(receiver.done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_travels_in_runs),
        cmocka_unit_test(a_vector_that_is_mostly_zeros_travels_short),
        cmocka_unit_test(both_ends_of_a_shadow_stay_equal_and_come_to_the_model),
        cmocka_unit_test(a_rest_goes_with_the_next_vector),
        cmocka_unit_test(runs_out_of_place_or_not_finite_are_refused),
        cmocka_unit_test(what_is_above_a_base_is_sent_as_it_is_and_neither_is_changed),
        cmocka_unit_test(a_digest_tells_vectors_apart),
        cmocka_unit_test(a_run_in_its_place_is_looked_at_and_copied),
        cmocka_unit_test(a_run_in_its_place_is_refused_out_of_turn_or_with_numbers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
