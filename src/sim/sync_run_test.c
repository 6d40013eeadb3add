/*
 * covers sync_compare.c, sync_data.c, sync_engine.c
 * covers sync_run.c, sync_run_server.c, sync_run_worker.c
 *
 * Times by hand for two workers, gradients by hand for two rounds, and the same bits again.
 */
#include "base/text.h"
#include "sim/sync_compare.h"
#include "testing/testing.h"
#include "train/dataset_catalogue.h"
#include "train/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t second = 1000000000;

struct fixture {
    struct dataset *train, *test;
};

static int open_data(void **state)
{
    struct error error;
    static struct fixture fixture;
    const struct dataset_entry *entry = NULL;
    ASSERT_OK(dataset_entry_find(TEXT("fashion-mnist"), &entry, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS,
                                 &fixture.train, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TEST_IMAGES, DATASET_TEST_LABELS,
                                 &fixture.test, &error));
    *state = &fixture;
    return 0;
}

static int close_data(void **state)
{
    struct fixture *fixture = *state;
    dataset_free(fixture->train);
    dataset_free(fixture->test);
    return 0;
}

/* Two machines that take 1 s and 3 s for a step, and half a second for a push and its answer. */
struct pair {
    struct sync_machine machines[2];
    struct sync_profile profile;
    struct sync_data *data;
    struct sync_presence *presence;
    struct sync_engine *engine;
    struct sync_run_options options;
};

static struct sync_engine_options logistic(uint32_t batch)
{
    struct sync_engine_options options = {.batch = batch};
    model_spec_default(MODEL_LOGISTIC, &options.spec);
    return options;
}

static void pair_open(struct pair *pair, const struct fixture *fixture, const char *policy)
{
    struct error error;
    *pair = (struct pair){
        .machines = {{"fast", second, second / 2, 0}, {"slow", 3 * second, second / 2, 0}}};
    pair->profile = (struct sync_profile){.machine_count = 2, .machines = pair->machines};
    const struct sync_data_options data = {
        .train = fixture->train, .test = fixture->test, .shard_count = 2, .seed = 1};
    ASSERT_OK(sync_data_open(&data, &pair->data, &error));
    const struct sync_presence_options presence = {.machine_count = 2};
    ASSERT_OK(sync_presence_open(&presence, &pair->presence, &error));
    const struct sync_engine_options engine = logistic(8);
    ASSERT_OK(sync_engine_open(&engine, &pair->engine, &error));
    pair->options = (struct sync_run_options){
        .profile = &pair->profile,
        .presence = pair->presence,
        .data = pair->data,
        .policy = text_of(policy),
        .settings = {.gamma_ms = 60000, .overlap = SYNC_OVERLAP_OFF},
        .sgd = {.lr = 0.1F},
        .batch = 8,
        .seed = 1,
        .measure_ns = 1000 * second,
        .time_max_ns = 35 * second,
    };
}

static void pair_close(struct pair *pair)
{
    sync_engine_free(pair->engine);
    sync_presence_free(pair->presence);
    sync_data_free(pair->data);
}

static struct sync_run_result pair_run(struct pair *pair)
{
    struct error error;
    struct sync_run_result result;
    ASSERT_OK(sync_run(pair->engine, &pair->options, &result, &error));
    return result;
}

/* A round lasts as long as the slower step and a round trip: 3.5 s. */
static void bsp_waits_for_the_slower_one(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "bsp");
    struct sync_run_result result = pair_run(&pair);
    assert_int_equal(result.end, SYNC_RUN_TIME);
    assert_int_equal(result.steps, 20);
    assert_int_equal(result.samples, 160);
    assert_int_equal(result.commits, 20);
    assert_int_equal(result.joins, 2);
    assert_int_equal(result.leaves, 0);
    assert_true(fabs(result.waiting_share - 3.0 / 7) < 1e-9);
    /* Two models at the start; then every push and every answer. */
    assert_int_equal(result.bytes, 42 * sizeof(float) * sync_engine_parameter_count(pair.engine));
    sync_run_result_done(&result);
    pair_close(&pair);
}

/* Rounds of 1.5 and 3.5 s, each for itself; with overlap no time is lost. */
static void tap_waits_for_nobody(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "tap");
    pair.options.time_max_ns = 21 * second;
    struct sync_run_result result = pair_run(&pair);
    assert_int_equal(result.steps, 14 + 6);
    assert_int_equal(result.commits, 14 + 6);
    assert_true(fabs(result.waiting_share - 10.0 / 42) < 1e-9);
    sync_run_result_done(&result);

    pair.options.settings.overlap = SYNC_OVERLAP_ON;
    result = pair_run(&pair);
    assert_int_equal(result.steps, 21 + 7);
    assert_int_equal(result.commits, 20 + 6); /* the last ones are on their way */
    assert_true(result.waiting_share == 0);
    sync_run_result_done(&result);
    pair_close(&pair);
}

/* Under adsp both make as many pushes, though one is three times as fast, and nobody waits. */
static void adsp_equalises_pushes(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "adsp");
    pair.options.settings.overlap = SYNC_OVERLAP_ON;
    pair.options.time_max_ns = 600 * second;
    struct sync_run_result result = pair_run(&pair);
    assert_int_equal(result.steps, 600 + 200);
    assert_true(result.waiting_share == 0);
    assert_true(result.commits > 60 && result.commits < 400);
    sync_run_result_done(&result);
    pair_close(&pair);
}

/* Bytes take time both ways: a second each at the model's size a second. */
static void bytes_take_time_and_compression_saves_it(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "bsp");
    const int64_t bytes = (int64_t)(sizeof(float) * sync_engine_parameter_count(pair.engine));
    pair.machines[0].bytes_per_s = pair.machines[1].bytes_per_s = bytes;
    pair.options.time_max_ns = 55 * second; /* rounds of 5.5 s */
    struct sync_run_result result = pair_run(&pair);
    assert_int_equal(result.commits, 20);
    sync_run_result_done(&result);
    pair.options.compression = 0.25;
    pair.options.time_max_ns = 40 * second; /* of 4 s */
    result = pair_run(&pair);
    assert_int_equal(result.commits, 20);
    sync_run_result_done(&result);
    pair_close(&pair);
}

static double loss_by_hand(struct pair *pair, uint32_t rounds)
{
    struct error error;
    struct sync_vectors *vectors = sync_engine_vectors(pair->engine);
    struct sync_vector *model = sync_engine_begin(pair->engine, 1);
    struct sampler samplers[2];
    for (uint32_t i = 0; i < 2; i++)
        ASSERT_OK(sampler_init(&samplers[i], pair->data->train, pair->data->shards[i].first,
                               pair->data->shards[i].count,
                               UINT64_C(1) ^ (i + UINT64_C(1)) * 0x9e3779b97f4a7c15, &error));
    float *sum = calloc(vectors->count, sizeof(float));
    for (uint32_t round = 0; round < rounds; round++) {
        memset(sum, 0, vectors->count * sizeof(float));
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t records[8];
            double loss;
            sampler_next(&samplers[i], records, 8);
            for (uint32_t n = 0; n < 8; n++)
                records[n] = pair->data->records[records[n]];
            const float *gradient =
                sync_engine_gradient(pair->engine, model, pair->data->train, records, 8, &loss);
            for (size_t n = 0; n < vectors->count; n++)
                sum[n] += gradient[n] / 2;
        }
        sync_vector_step(vectors, &model, &pair->options.sgd, NULL, sum);
    }
    struct sync_measure measure;
    ASSERT_OK(sync_engine_measure(pair->engine, model->values, pair->data->test, &pair->data->curve,
                                  &measure, &error));
    free(sum);
    sampler_done(&samplers[0]);
    sampler_done(&samplers[1]);
    sync_vector_release(vectors, &model);
    return measure.loss;
}

/* A round of bsp is a step along the mean of both gradients. */
static void bsp_steps_along_the_mean_gradient(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "bsp");
    pair.options.time_max_ns = pair.options.measure_ns = 10 * second; /* two rounds are done */
    struct sync_run_result result = pair_run(&pair);
    const double loss = result.loss;
    sync_run_result_done(&result);
    assert_true(fabs(loss - loss_by_hand(&pair, 2)) < 1e-5);
    assert_true(fabs(loss - loss_by_hand(&pair, 1)) > 1e-3);
    pair_close(&pair);
}

/* The slower one leaves when its push is under way; it arrives before the server sees it gone. */
static void a_push_under_way_counts_when_its_worker_leaves(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "bsp");
    sync_presence_add_change(pair.presence, 1, 3 * second + second / 10);
    pair.options.time_max_ns = 3 * second + second / 2 + 15 * second;
    struct sync_run_result result = pair_run(&pair);
    /* A round of two, then ten of 1.5 s alone. */
    assert_int_equal(result.commits, 2 + 10);
    assert_int_equal(result.steps, 2 + 10);
    assert_int_equal(result.leaves, 1);
    /* The one that left was there for 3.1 s and computed for 3. */
    assert_true(fabs(result.waiting_share - (1 - (1 + 10 + 3) / (18.5 + 3.1))) < 1e-9);
    sync_run_result_done(&result);
    pair_close(&pair);
}

/* Half of the bytes are sent when it leaves: the push is lost, and who waits is released. */
static void half_a_push_is_lost_with_its_worker(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "bsp");
    pair.machines[1].bytes_per_s =
        (int64_t)(sizeof(float) * sync_engine_parameter_count(pair.engine));
    sync_presence_add_change(pair.presence, 1, 3 * second + second / 2);
    sync_presence_add_change(pair.presence, 1, 20 * second);
    /* Seen at 3.75 s, told at 4 s; back at 20 s, which is known at 20.25 s. */
    pair.options.time_max_ns = 19 * second;
    struct sync_run_result result = pair_run(&pair);
    assert_int_equal(result.commits, 1 + 10);
    assert_int_equal(result.leaves, 1);
    assert_int_equal(result.joins, 2);
    sync_run_result_done(&result);
    pair.options.time_max_ns = 60 * second;
    result = pair_run(&pair);
    assert_int_equal(result.joins, 3);
    assert_true(result.commits > 11 + 2);
    sync_run_result_done(&result);
    pair_close(&pair);
}

static void the_target_is_where_the_curve_crosses_it(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "tap");
    pair.options.measure_ns = 5 * second;
    pair.options.time_max_ns = 2000 * second;
    pair.options.target_loss = 1.2;
    struct sync_run_result result = pair_run(&pair);
    assert_int_equal(result.end, SYNC_RUN_TARGET);
    assert_true(result.point_count >= 2);
    const struct sync_point *last = &result.points[result.point_count - 1];
    assert_true(last[-1].loss > 1.2 && last->loss <= 1.2);
    assert_true(last[-1].at_s < result.target_s && result.target_s <= last->at_s);
    assert_true(result.target_s < result.elapsed_s);
    sync_run_result_done(&result);

    pair.options.sgd.lr = 1e6F;
    result = pair_run(&pair);
    assert_int_equal(result.end, SYNC_RUN_DIVERGED);
    assert_true(isnan(result.target_s));
    sync_run_result_done(&result);
    pair_close(&pair);
}

static void a_batch_in_pieces_has_the_gradient_of_the_whole(void **state)
{
    const struct fixture *fixture = *state;
    struct error error;
    struct sync_engine *engines[2];
    const uint32_t batches[2] = {16, 64};
    const float *gradients[2];
    double losses[2];
    uint32_t records[50];
    for (uint32_t i = 0; i < 50; i++)
        records[i] = 997 * i;
    for (int i = 0; i < 2; i++) {
        const struct sync_engine_options options = logistic(batches[i]);
        ASSERT_OK(sync_engine_open(&options, &engines[i], &error));
        struct sync_vector *model = sync_engine_begin(engines[i], 3);
        gradients[i] =
            sync_engine_gradient(engines[i], model, fixture->train, records, 50, &losses[i]);
        sync_vector_release(sync_engine_vectors(engines[i]), &model);
    }
    assert_true(fabs(losses[0] - losses[1]) < 1e-5);
    for (size_t i = 0; i < sync_engine_parameter_count(engines[0]); i++)
        assert_true(fabsf(gradients[0][i] - gradients[1][i]) < 1e-4F);
    sync_engine_free(engines[0]);
    sync_engine_free(engines[1]);
}

static void shards_hold_every_record_once_and_skew_parts_labels(void **state)
{
    const struct fixture *fixture = *state;
    const uint32_t count = dataset_shape(fixture->test)->count;
    const double skews[] = {0, 0.5, 1};
    uint32_t most[3] = {0}; /* records of one label in the shard that has most of it */
    for (int s = 0; s < 3; s++) {
        struct error error;
        struct sync_data *data = NULL;
        const struct sync_data_options options = {.train = fixture->test,
                                                  .test = fixture->test,
                                                  .shard_count = 18,
                                                  .seed = 4,
                                                  .skew = skews[s]};
        ASSERT_OK(sync_data_open(&options, &data, &error));
        bool *seen = calloc(count, sizeof(*seen));
        float *image = calloc((size_t)28 * 28, sizeof(*image));
        uint32_t all = 0;
        for (uint32_t i = 0; i < 18; i++) {
            uint32_t labels[10] = {0};
            assert_true(data->shards[i].count >= count / 18 - 1);
            for (uint32_t n = 0; n < data->shards[i].count; n++, all++) {
                const uint32_t record = data->records[data->shards[i].first + n];
                int32_t label;
                assert_false(seen[record]);
                seen[record] = true;
                dataset_gather(fixture->test, &record, 1, image, &label);
                if (++labels[label] > most[s])
                    most[s] = labels[label];
            }
        }
        assert_int_equal(all, count);
        free(seen);
        free(image);
        sync_data_free(data);
    }
    assert_true(most[0] < 100 && most[1] > 250 && most[1] < 370 && most[2] > 500);
}

static void the_same_seed_gives_the_same_bits_on_any_number_of_threads(void **state)
{
    const struct fixture *fixture = *state;
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct sync_profile profile;
    AUTO(sync_data) struct sync_data *data = NULL;
    AUTO(sync_presence) struct sync_presence *presence = NULL;
    ASSERT_OK(sync_profile_find(arena, "testbed-h2.6", &profile, &error));
    const struct sync_data_options sharing = {
        .train = fixture->train, .test = fixture->test, .shard_count = 18, .seed = 5, .skew = 0.3};
    const struct sync_presence_options coming = {.machine_count = 18,
                                                 .seed = 5,
                                                 .end_ns = 40 * second,
                                                 .stay_ms = 20000,
                                                 .absence_ms = 5000};
    ASSERT_OK(sync_data_open(&sharing, &data, &error));
    ASSERT_OK(sync_presence_open(&coming, &presence, &error));
    enum { RUNS = 16 };
    struct sync_run_options runs[RUNS];
    uint32_t count = 0;
    const char *name;
    for (; count < RUNS - 1 && (name = sync_policy_name_at(count)); count++)
        runs[count] = (struct sync_run_options){
            .profile = &profile,
            .presence = presence,
            .data = data,
            .policy = text_of(name),
            .settings = {.gamma_ms = 10000, .batch = 8},
            .sgd = {.lr = 0.05F, .momentum = 0.5F},
            .batch = 8,
            .seed = 5,
            .jitter = 0.3,
            .measure_ns = 9 * second,
            .time_max_ns = 40 * second,
        };
    runs[count] = runs[0];
    runs[count++].seed = 6;
    struct sync_run_result first[RUNS], again[RUNS];
    struct sync_compare_options options = {
        .engine = logistic(8), .runs = runs, .run_count = count, .thread_count = 1};
    ASSERT_OK(sync_compare(&options, first, &error));
    options.thread_count = 3;
    ASSERT_OK(sync_compare(&options, again, &error));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(first[i].fingerprint == again[i].fingerprint);
        assert_int_equal(first[i].steps, again[i].steps);
        assert_int_equal(first[i].bytes, again[i].bytes);
        assert_int_equal(first[i].point_count, again[i].point_count);
        assert_memory_equal(first[i].points, again[i].points,
                            first[i].point_count * sizeof(struct sync_point));
        assert_true(first[i].leaves > 0 && first[i].joins > 18);
        assert_true(isfinite(first[i].loss));
        assert_true(first[i].waiting_share >= 0 && first[i].waiting_share < 1);
    }
    assert_true(first[0].loss < first[0].points[0].loss); /* bsp learns in that time */
    assert_true(first[0].fingerprint != first[count - 1].fingerprint);
    runs[1].policy = TEXT("no-such-policy");
    struct sync_run_result none[RUNS];
    ASSERT_FAILS(sync_compare(&options, none, &error), ERROR_NOT_FOUND);
    for (uint32_t i = 0; i < count; i++) {
        sync_run_result_done(&first[i]);
        sync_run_result_done(&again[i]);
    }
}

/* Momentum 0.5 at half the rate comes to the same, bit for bit, once it is left to the server. */
static void under_pace_the_momentum_of_workers_is_the_servers(void **state)
{
    const struct fixture *fixture = *state;
    struct error error;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct sync_profile profile;
    AUTO(sync_data) struct sync_data *data = NULL;
    AUTO(sync_presence) struct sync_presence *presence = NULL;
    ASSERT_OK(sync_profile_find(arena, "testbed-h2.0", &profile, &error));
    const struct sync_data_options sharing = {
        .train = fixture->train, .test = fixture->test, .shard_count = 18, .seed = 5};
    const struct sync_presence_options staying = {
        .machine_count = 18, .seed = 5, .end_ns = 40 * second};
    ASSERT_OK(sync_data_open(&sharing, &data, &error));
    ASSERT_OK(sync_presence_open(&staying, &presence, &error));
    struct sync_run_options runs[3];
    for (size_t i = 0; i < 3; i++)
        runs[i] = (struct sync_run_options){
            .profile = &profile,
            .presence = presence,
            .data = data,
            .policy = TEXT("pace"),
            .settings = {.gamma_ms = 10000, .batch = 8, .momentum = i > 0 ? 0.5 : 0},
            .sgd = {.lr = i > 0 ? 0.05F : 0.1F, .momentum = i > 0 ? 0.5F : 0},
            .batch = 8,
            .seed = 5,
            .measure_ns = 9 * second,
            .time_max_ns = 40 * second,
        };
    runs[2].settings.keeps_momentum = true;
    struct sync_run_result results[3];
    const struct sync_compare_options options = {
        .engine = logistic(8), .runs = runs, .run_count = 3, .thread_count = 1};
    ASSERT_OK(sync_compare(&options, results, &error));
    assert_true(results[0].commits > 18);
    assert_true(results[0].fingerprint == results[1].fingerprint);
    assert_true(results[0].fingerprint != results[2].fingerprint);
    for (size_t i = 0; i < 3; i++)
        sync_run_result_done(&results[i]);
}

/* The fast one makes three pushes while the slow one makes one: with a bound of 1 it waits for it.
 */
static void hsp_keeps_its_bound_in_simulated_runs(void **state)
{
    struct pair pair;
    pair_open(&pair, *state, "hsp");
    pair.options.settings.staleness = 1;
    pair.options.settings.epoch_steps = 40;
    pair.options.time_max_ns = 200 * second;
    struct sync_run_result bound = pair_run(&pair);
    pair.options.settings.staleness = 100;
    struct sync_run_result loose = pair_run(&pair);
    assert_int_equal(bound.status.staleness, 1);
    assert_true(loose.status.staleness > 1);
    assert_true(bound.status.round > 0 && loose.status.round > 0);
    assert_true(bound.commits < loose.commits);
    sync_run_result_done(&bound);
    sync_run_result_done(&loose);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bsp_waits_for_the_slower_one),
        cmocka_unit_test(hsp_keeps_its_bound_in_simulated_runs),
        cmocka_unit_test(tap_waits_for_nobody),
        cmocka_unit_test(adsp_equalises_pushes),
        cmocka_unit_test(bytes_take_time_and_compression_saves_it),
        cmocka_unit_test(bsp_steps_along_the_mean_gradient),
        cmocka_unit_test(a_push_under_way_counts_when_its_worker_leaves),
        cmocka_unit_test(half_a_push_is_lost_with_its_worker),
        cmocka_unit_test(the_target_is_where_the_curve_crosses_it),
        cmocka_unit_test(a_batch_in_pieces_has_the_gradient_of_the_whole),
        cmocka_unit_test(shards_hold_every_record_once_and_skew_parts_labels),
        cmocka_unit_test(under_pace_the_momentum_of_workers_is_the_servers),
        cmocka_unit_test(the_same_seed_gives_the_same_bits_on_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
