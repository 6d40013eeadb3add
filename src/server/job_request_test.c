#include "runtime/job_file.h"
#include "server/job_request.h"
#include "testing/testing.h"

#define MINIMAL "name: j\ntrain: {model: mlp, data: mnist}\n"
#define NOW_MS  INT64_C(1795197600000) /* 2026-11-20T18:00Z */

static int ask(const char *yaml, struct job_request *out, struct error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_file_parse(arena, text_of(yaml), "job.yaml", &spec, NULL, &error));
    return job_request_of_spec(&spec, TEXT("{}"), 7, NOW_MS, out, out_error);
}

TEST(every_wish_of_the_file_reaches_the_core)
{
    struct error error;
    struct job_request request = {0};
    ASSERT_OK(ask(MINIMAL
                  "num_nodes: 2..8\n"
                  "resources: {cpus: 2+, memory: 1, bandwidth: 20,\n"
                  "  labels: [avx2, cuda-12], network: job, install: index}\n"
                  "market: {start: by 6h, rush: true, max_rtt: 50ms, min_reliability: 0.9,\n"
                  "  min_speed: 0.5, replace_lost: false, max_run_time: 2h, max_total_cost: 3}\n"
                  "sync: {servers: 4, replica: true}\n",
                  &request, &error));
    assert_int_equal(request.account, 7);
    assert_string_equal(request.name, "j");
    assert_int_equal(request.num_nodes, 2);
    assert_int_equal(request.num_nodes_max, 8);
    assert_int_equal(request.server_count, 4);
    assert_true(request.has_replica);
    assert_int_equal(request.worker.cores_milli, 2000);
    assert_true(request.takes_more_cores);
    assert_int_equal(request.worker.bandwidth_kbit, 20000);
    assert_string_equal(request.wishes.labels, "avx2,cuda-12");
    assert_int_equal(request.wishes.network, OFFER_NETWORK_JOB);
    assert_int_equal(request.wishes.install, OFFER_INSTALL_INDEX);
    assert_int_equal(request.wishes.max_rtt_us, 50000);
    assert_int_equal(request.wishes.min_reliability_milli, 900);
    assert_int_equal(request.wishes.min_speed_milli, 500);
    assert_int_equal(request.start, JOB_START_DEADLINE);
    assert_int_equal(request.deadline_ms, NOW_MS + INT64_C(6) * 3600000);
    assert_true(request.is_rush);
    assert_false(request.replaces_lost);
    assert_false(request.is_spare);
    assert_int_equal(request.max_run_ms, 7200000);
    assert_int_equal(request.max_total_micro, 3000000);
}

TEST(gpus_of_a_program_reach_the_core)
{
    struct error error;
    struct job_request request = {0};
    ASSERT_OK(ask("name: j\nruntime: torch\nrun: b\nresources: {accelerators: 'T4:16GiB+:2'}\n",
                  &request, &error));
    assert_int_equal(request.worker.gpus_milli, 2000);
    assert_string_equal(request.wishes.gpu_model, "T4");
    assert_int_equal(request.wishes.gpu_ram_bytes, INT64_C(16) << 30);
}

TEST(a_large_model_has_a_parameter_server_with_more_memory)
{
    struct error error;
    struct job_request request = {0};
    ASSERT_OK(ask("name: j\nresources: {memory: 4}\ntrain: {data: mnist, layers: [{type: dense, "
                  "outputs: 20000}, {type: relu}, {type: dense}]}\n",
                  &request, &error));
    /* 15.9 million parameters: 13 vectors of them with one worker, and 128 MiB. */
    assert_in_range(request.server.ram_bytes >> 20, 890, 930);
    ASSERT_OK(ask("name: j\nresources: {memory: 4}\nsync: {robust: median}\ntrain: {data: mnist, "
                  "layers: [{type: dense, outputs: 20000}, {type: relu}, {type: dense}]}\n",
                  &request, &error));
    assert_in_range(request.server.ram_bytes >> 20, 950, 990); /* the rounds' pushes, too */
    ASSERT_OK(
        ask("name: j\nnum_nodes: 3\nresources: {memory: 4}\nsync: {policy: bsp, verify: 0.1}\n"
            "train: {data: mnist, layers: [{type: dense, outputs: 20000}, {type: relu}, "
            "{type: dense}]}\n",
            &request, &error));
    /* 17 vectors with three workers, and 16 of checks. */
    assert_in_range(request.server.ram_bytes >> 20, 2110, 2160);
    ASSERT_OK(ask("name: j\nresources: {memory: 4}\nsync: {servers: 2}\ntrain: {data: mnist, "
                  "layers: [{type: dense, outputs: 20000}, {type: relu}, {type: dense}]}\n",
                  &request, &error));
    assert_in_range(request.server.ram_bytes >> 20, 1130, 1175); /* 17 vectors */
    ASSERT_OK(ask("name: j\nresources: {memory: 4}\nsync: {replica: true}\ntrain: {data: mnist, "
                  "layers: [{type: dense, outputs: 20000}, {type: relu}, {type: dense}]}\n",
                  &request, &error));
    assert_in_range(request.server.ram_bytes >> 20, 1250, 1300); /* 19 */
    ASSERT_OK(ask(MINIMAL, &request, &error));
    assert_int_equal(request.server.ram_bytes >> 20, 512);
}

TEST(what_is_not_said_wishes_nothing)
{
    struct error error;
    struct job_request request = {0};
    ASSERT_OK(ask(MINIMAL, &request, &error));
    assert_int_equal(request.num_nodes_max, 0);
    assert_int_equal(request.worker.gpus_milli, 0);
    assert_int_equal(request.start, JOB_START_NOW);
    assert_int_equal(request.deadline_ms, 0);
    assert_string_equal(request.wishes.labels, "");
    assert_int_equal(request.wishes.network, OFFER_NETWORK_NONE);
    assert_true(request.replaces_lost); /* a job with a parameter server */
    assert_false(request.wishes.has_program);
}

TEST(what_is_no_plain_training_wishes_for_machines_that_take_it)
{
    struct error error;
    struct job_request request = {0};
    ASSERT_OK(ask(MINIMAL "num_nodes: 3\nsync: {verify: 0.5}\n", &request, &error));
    assert_true(request.wishes.has_program);
    ASSERT_OK(ask("name: j\nrun: 'true'\n", &request, &error));
    assert_true(request.wishes.has_program);
}

TEST(a_start_in_the_past_is_refused_by_name)
{
    struct error error;
    struct job_request request = {.num_nodes = 5};
    ASSERT_FAILS(
        ask(MINIMAL "market: {start: cheapest before 2026-11-20T17:59Z}\n", &request, &error),
        ERROR_INVALID);
    assert_string_equal(error.message, "market.start: 2026-11-20T17:59:00Z is in the past");
    assert_int_equal(request.num_nodes, 5);
}

TEST(a_job_for_a_cloud_asks_for_its_machines)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    struct job_request request = {0};
    const struct text json = TEXT(
        "{\"name\":\"j\",\"resources\":{\"labels\":\"avx2\",\"infra\":\"aws\",\"instance_type\":"
        "\"m5.large\",\"use_spot\":true},\"market\":{\"max_total_cost\":2},\"train\":{\"model\":"
        "\"mlp\",\"data\":\"mnist\"}}");
    ASSERT_OK(job_spec_read(arena, json, &spec, &error));
    assert_true(spec.resources.use_spot);
    ASSERT_OK(job_request_of_spec(&spec, json, 7, 0, &request, &error));
    assert_string_equal(request.wishes.labels, "avx2,infra-aws");
    static const char *const wrong[] = {
        "\"infra\":\"aws\"", "\"infra\":\"aws\",\"instance_type\":\"m5.large\"",
        "\"instance_type\":\"m5.large\"", "\"use_spot\":true", "\"infra\":\"mars\""};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        const char *other = arena_format(arena,
                                         "{\"name\":\"j\",\"resources\":{%s},\"train\":{\"model\":"
                                         "\"mlp\",\"data\":\"mnist\"}}",
                                         wrong[i]);
        ASSERT_FAILS(job_spec_read(arena, text_of(other), &spec, &error), ERROR_INVALID);
        assert_non_null(strstr(error.message, "infra"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wish_of_the_file_reaches_the_core),
        cmocka_unit_test(gpus_of_a_program_reach_the_core),
        cmocka_unit_test(a_large_model_has_a_parameter_server_with_more_memory),
        cmocka_unit_test(what_is_not_said_wishes_nothing),
        cmocka_unit_test(what_is_no_plain_training_wishes_for_machines_that_take_it),
        cmocka_unit_test(a_start_in_the_past_is_refused_by_name),
        cmocka_unit_test(a_job_for_a_cloud_asks_for_its_machines),
    };
    return cmocka_run_group_tests_name("job_request", tests, NULL, NULL);
}
