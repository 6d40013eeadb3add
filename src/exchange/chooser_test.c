/* Codecs by what a link carries; and what noise, buffers and changes of a link do to the choice. */
#include "base/random.h"
#include "exchange/chooser.h"
#include "testing/testing.h"

#include <math.h>

TEST(the_choice_is_the_one_of_most_progress_or_that_is_hidden)
{
    struct chooser_link link = {.count = 10000000, .density = 0.01, .codec = CODEC_F32};
    assert_int_equal(chooser_best(&link), CODEC_F32); /* nothing is known */
    link.codec = CODEC_INT8;
    assert_int_equal(chooser_best(&link), CODEC_INT8);
    link.codec = CODEC_TOPK;
    link.interval_s = 1;
    static const struct {
        double bytes_per_second;
        enum codec waited, hidden;
    } expected[] = {
        {1e9, CODEC_F32, CODEC_F32},      {5e8, CODEC_F32, CODEC_F32},
        {2.1e8, CODEC_F32, CODEC_F16},    {1e8, CODEC_INT8, CODEC_INT8},
        {1.25e7, CODEC_1BIT, CODEC_1BIT}, {1e6, CODEC_TOPK, CODEC_TOPK},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        link.bytes_per_second = expected[i].bytes_per_second;
        link.is_hidden = false;
        assert_int_equal(chooser_best(&link), expected[i].waited);
        link.is_hidden = true;
        assert_int_equal(chooser_best(&link), expected[i].hidden);
    }
}

/* A policy that spaces pushes by how long one takes must not drive the codec on and on. */
TEST(where_computing_goes_on_a_few_steps_are_long_enough)
{
    struct chooser_link link = {.count = 10000000,
                                .bytes_per_second = 1.25e7,
                                .step_s = 0.2,
                                .density = 0.01,
                                .is_hidden = true};
    assert_int_equal(chooser_best(&link), CODEC_INT8); /* 1.6 s of 2.4 */
    link.interval_s = 2;
    assert_int_equal(chooser_best(&link), CODEC_INT8);
    link.interval_s = 30;
    assert_int_equal(chooser_best(&link), CODEC_F32);
}

/* What an interval was seen with is not taken for the worker's own time. */
TEST(the_choice_does_not_depend_on_the_codec_of_the_moment)
{
    static const enum codec codecs[] = {CODEC_F32, CODEC_F16, CODEC_INT8, CODEC_1BIT, CODEC_TOPK};
    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++) {
        struct chooser_link link = {
            .count = 1000000, .bytes_per_second = 1e8, .density = 0.01, .codec = codecs[i]};
        const double coding_s = codecs[i] == CODEC_F32 ? 0 : codecs[i] < CODEC_1BIT ? 2e-9 : 2.5e-9;
        link.interval_s = 0.02 + 2e6 * (codec_bytes_per_float(codecs[i], 0.01) / 1e8 + coding_s);
        assert_int_equal(chooser_best(&link), CODEC_INT8);
    }
}

/* Pushes of a link, some of which are held up by a busy processor or come out of a buffer. */
struct trial {
    size_t count;
    double bytes_per_second;
    double step_s;
    double stalled;  /* share of pushes */
    double stall_s;  /* mean */
    double buffered; /* share */
    bool is_hidden;
    uint64_t changes;
};

static enum codec run_trial(struct trial *trial, struct chooser *chooser, struct random *random,
                            int pushes)
{
    enum codec codec = chooser->codec;
    trial->changes = 0;
    for (int i = 0; i < pushes; i++) {
        const double bytes = (double)trial->count * codec_bytes_per_float(codec, 0.01);
        double took_s = bytes / trial->bytes_per_second;
        if (random_unit(random) < trial->stalled)
            took_s += trial->stall_s * -log(1 - random_unit(random));
        double seen_s = took_s;
        if (random_unit(random) < trial->buffered)
            seen_s = bytes / 5e9;
        const double interval_s =
            trial->is_hidden ? fmax(trial->step_s, 2 * took_s) : trial->step_s + 2 * took_s;
        const struct chooser_push push = {.bytes = (uint64_t)bytes,
                                          .took_ns = (int64_t)(1e9 * seen_s),
                                          .interval_ns = i > 0 ? (int64_t)(1e9 * interval_s) : 0,
                                          .step_ns = (int64_t)(1e9 * trial->step_s),
                                          .is_hidden = trial->is_hidden};
        const enum codec next = chooser_take(chooser, &push);
        trial->changes += next != codec;
        codec = next;
    }
    return codec;
}

TEST(a_busy_loopback_is_not_taken_for_a_slow_link)
{
    struct random random;
    random_init(&random, 5);
    for (int is_hidden = 0; is_hidden <= 1; is_hidden++)
        for (double stalled = 0; stalled < 0.8; stalled += 0.25) {
            struct trial trial = {.count = 235146,
                                  .bytes_per_second = 1.5e9,
                                  .step_s = 0.001,
                                  .stalled = stalled,
                                  .stall_s = 0.008,
                                  .is_hidden = is_hidden};
            struct chooser chooser;
            chooser_init(&chooser, trial.count, 0.01, CODEC_F32);
            assert_int_equal(run_trial(&trial, &chooser, &random, 2000), CODEC_F32);
            assert_int_equal(trial.changes, 0);
        }
}

TEST(a_slow_link_is_seen_at_once_and_stays_slow_whatever_comes_out_of_a_buffer)
{
    struct random random;
    random_init(&random, 6);
    struct trial trial = {.count = 235146, .bytes_per_second = 1.25e6, .step_s = 0.01};
    struct chooser chooser;
    chooser_init(&chooser, trial.count, 0.01, CODEC_F32);
    run_trial(&trial, &chooser, &random, CHOOSER_LOOKS);
    assert_true(chooser.codec != CODEC_F32);
    trial.buffered = 0.02;
    trial.count = 10000000;
    trial.step_s = 0.2;
    chooser_init(&chooser, trial.count, 0.01, CODEC_INT8);
    run_trial(&trial, &chooser, &random, 1);
    assert_true(chooser.codec != CODEC_INT8); /* 8 s: no processor is so busy */
    const enum codec settled = chooser.codec;
    assert_int_equal(run_trial(&trial, &chooser, &random, 2000), settled);
    assert_true(trial.changes <= 4);
}

TEST(a_link_that_becomes_fast_is_noticed_also_through_short_pushes)
{
    struct random random;
    random_init(&random, 7);
    struct trial trial = {.count = 235146, .bytes_per_second = 1e5, .step_s = 0.01};
    struct chooser chooser;
    chooser_init(&chooser, trial.count, 0.01, CODEC_F32);
    run_trial(&trial, &chooser, &random, 10);
    assert_int_equal(chooser.codec, CODEC_TOPK); /* 10 kB */
    trial.bytes_per_second = 1e9;
    trial.step_s = 0.1;
    assert_int_equal(run_trial(&trial, &chooser, &random, 80), CODEC_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_choice_is_the_one_of_most_progress_or_that_is_hidden),
        cmocka_unit_test(where_computing_goes_on_a_few_steps_are_long_enough),
        cmocka_unit_test(the_choice_does_not_depend_on_the_codec_of_the_moment),
        cmocka_unit_test(a_busy_loopback_is_not_taken_for_a_slow_link),
        cmocka_unit_test(a_slow_link_is_seen_at_once_and_stays_slow_whatever_comes_out_of_a_buffer),
        cmocka_unit_test(a_link_that_becomes_fast_is_noticed_also_through_short_pushes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
