/*
 * covers sync_run.c
 *
 * The server's link that all share, an end by samples, and what each machine did; times by hand.
 */
#include "base/text.h"
#include "sim/sync_run.h"
#include "testing/testing.h"
#include "train/dataset.h"

#include <math.h>
#include <stdlib.h>

enum { RECORDS = 60, WIDTH = 4 };

static const int64_t second = 1000000000;

struct fixture {
    float inputs[RECORDS * WIDTH];
    int32_t labels[RECORDS];
    struct dataset *dataset;
    struct sync_machine machines[2];
    struct sync_profile profile;
    struct sync_data *data;
    struct sync_presence *presence;
    struct sync_engine *engine;
    struct sync_run_options options;
};

/* Two machines whose steps take a second and whose own links no time. */
static void fixture_open(struct fixture *fixture, const char *policy)
{
    struct error error;
    *fixture = (struct fixture){
        .machines = {{.kind = "left", .step_ns = second}, {.kind = "right", .step_ns = second}},
    };
    for (int i = 0; i < RECORDS; i++) {
        fixture->labels[i] = i % 2;
        fixture->inputs[i * WIDTH + i % 2] = 1;
    }
    const struct dataset_shape shape = {
        .count = RECORDS, .channels = 1, .height = 1, .width = WIDTH, .classes = 2};
    const struct dataset_arrays arrays = {.inputs = fixture->inputs, .labels = fixture->labels};
    ASSERT_OK(dataset_open_arrays(&shape, &arrays, &fixture->dataset, &error));
    fixture->profile = (struct sync_profile){.machine_count = 2, .machines = fixture->machines};
    const struct sync_data_options data = {
        .train = fixture->dataset, .test = fixture->dataset, .shard_count = 2, .seed = 1};
    ASSERT_OK(sync_data_open(&data, &fixture->data, &error));
    const struct sync_presence_options presence = {.machine_count = 2};
    ASSERT_OK(sync_presence_open(&presence, &fixture->presence, &error));
    struct sync_engine_options engine = {.batch = 4};
    model_spec_default(MODEL_LOGISTIC, &engine.spec);
    engine.spec.channels = engine.spec.height = 1;
    engine.spec.width = WIDTH;
    engine.spec.classes = 2;
    ASSERT_OK(sync_engine_open(&engine, &fixture->engine, &error));
    const size_t bytes = sizeof(float) * sync_engine_parameter_count(fixture->engine);
    fixture->options = (struct sync_run_options){
        .profile = &fixture->profile,
        .presence = fixture->presence,
        .data = fixture->data,
        .policy = text_of(policy),
        .settings = {.gamma_ms = 60000, .overlap = SYNC_OVERLAP_OFF},
        .sgd = {.lr = 0.1F},
        .batch = 4,
        .seed = 1,
        .server_bytes_per_s = 4 * (int64_t)bytes, /* a model takes a quarter of a second */
        .measure_ns = second,
        .time_max_ns = 35 * second,
    };
}

static void fixture_close(struct fixture *fixture)
{
    sync_engine_free(fixture->engine);
    sync_presence_free(fixture->presence);
    sync_data_free(fixture->data);
    dataset_free(fixture->dataset);
}

/*
 * The first round ends at 1.5 s, with the second push; answers are there at 1.75 and 2.0, so that
 * the next pushes come one after the other and are there at 3.0 and 3.25: 1.75 s a round.
 */
static void the_servers_link_takes_one_message_after_the_other(void **state)
{
    (void)state;
    struct error error;
    struct fixture fixture;
    struct sync_run_result result;
    fixture_open(&fixture, "bsp");
    ASSERT_OK(sync_run(fixture.engine, &fixture.options, &result, &error));
    assert_int_equal(result.commits, 40); /* by 1.5 + 19 * 1.75 s */
    assert_int_equal(result.machines[0].commits, 20);
    assert_int_equal(result.machines[0].steps + result.machines[1].steps, result.steps);
    assert_true(fabs(result.machines[0].there_s - 35) < 1e-9);
    assert_true(result.machines[1].commit_s > 0.5 && result.machines[1].commit_s < 1);
    sync_run_result_done(&result);
    fixture.options.server_bytes_per_s = 0;
    ASSERT_OK(sync_run(fixture.engine, &fixture.options, &result, &error));
    assert_int_equal(result.commits, 70);
    sync_run_result_done(&result);
    fixture_close(&fixture);
}

/* Free workers wait in the queue: together no more than the link's four a second. */
static void a_full_link_bounds_workers_that_wait_for_nobody(void **state)
{
    (void)state;
    struct error error;
    struct fixture fixture;
    struct sync_run_result result;
    fixture_open(&fixture, "tap");
    fixture.machines[0].step_ns = fixture.machines[1].step_ns = second / 1000;
    ASSERT_OK(sync_run(fixture.engine, &fixture.options, &result, &error));
    assert_in_range(result.commits, 4 * 35 - 4, 4 * 35);
    sync_run_result_done(&result);
    fixture_close(&fixture);
}

static uint64_t commits_of(struct fixture *fixture)
{
    struct error error;
    struct sync_run_result result;
    ASSERT_OK(sync_run(fixture->engine, &fixture->options, &result, &error));
    const uint64_t commits = result.machines[0].commits;
    sync_run_result_done(&result);
    return commits;
}

/* Half a second of computing, and half a second until the answer, in which its share is not used.
 */
static void who_lends_a_share_of_a_core_makes_up_for_waiting(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, "bsp");
    fixture.options.server_bytes_per_s = 0;
    fixture.options.time_max_ns = 36 * second + 1;
    for (int i = 0; i < 2; i++)
        fixture.machines[i].commit_ns = second / 2;
    assert_int_equal(commits_of(&fixture), 24);
    for (int i = 0; i < 2; i++) {
        fixture.machines[i].cores = 0.5;
        fixture.machines[i].quota_ns = second;
    }
    assert_int_equal(commits_of(&fixture), 36);
    /* Who never waits has no more than its share. */
    for (int i = 0; i < 2; i++)
        fixture.machines[i].commit_ns = 0;
    assert_in_range(commits_of(&fixture), 36, 37);
    fixture_close(&fixture);
}

static void samples_asked_for_end_a_run(void **state)
{
    (void)state;
    struct error error;
    struct fixture fixture;
    struct sync_run_result result;
    fixture_open(&fixture, "bsp");
    fixture.options.server_bytes_per_s = 0;
    fixture.options.sample_max = 80;
    ASSERT_OK(sync_run(fixture.engine, &fixture.options, &result, &error));
    assert_int_equal(result.end, SYNC_RUN_SAMPLES);
    assert_string_equal(sync_run_end_name(result.end), "samples");
    assert_int_equal(result.samples, 80);
    assert_true(fabs(result.elapsed_s - 10) < 1e-6);
    for (size_t i = 1; i < result.point_count; i++)
        assert_true(result.points[i].samples >= result.points[i - 1].samples);
    sync_run_result_done(&result);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_servers_link_takes_one_message_after_the_other),
        cmocka_unit_test(a_full_link_bounds_workers_that_wait_for_nobody),
        cmocka_unit_test(who_lends_a_share_of_a_core_makes_up_for_waiting),
        cmocka_unit_test(samples_asked_for_end_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
