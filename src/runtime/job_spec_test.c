/* covers job_field_script.c, job_runtime.c, job_spec_work.c, job_field_write.c */
#include "runtime/job_spec.h"
#include "testing/testing.h"

#include <string.h>

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char whole[] =
    "{\"name\":\"j\",\"num_nodes\":3,\"num_nodes_max\":5,\"resources\":{\"cpus\":\"0.25+\","
    "\"memory\":\"256MiB+\",\"disk_size\":\"1024MiB\",\"bandwidth\":\"100Mbit\",\"labels\":["
    "\"avx2\",\"cuda-12\"],\"network\":\"job\",\"install\":"
    "\"none\"},\"runtime\":\"native\",\"train\":{\"model\":\"lenet5\",\"data\":"
    "\"mnist\",\"shards\":\"even\",\"predict\":\"class\",\"loss\":\"cross_entropy\",\"optimizer\":{"
    "\"name\":\"sgd\","
    "\"lr\":0.02,\"momentum\":"
    "0.9,\"weight_decay\":0},\"batch\":32,\"epochs\":5,\"target\":{\"accuracy\":0.885,\"min_time\":"
    "\"30s\"},\"seed\":1},\"sync\":{\"policy\":\"adsp\",\"tick\":\"2500ms\","
    "\"checkpoint_interval\":\"30s\",\"search\":\"auto\","
    "\"local_steps\":4,\"outer_rate\":0.5,\"outer_momentum\":0.25,\"overlap\":\"off\",\"compress\":"
    "\"topk\",\"density\":0.05,\"compress_momentum\":0.5,\"robust\":\"trimmed\",\"trim\":0.3,"
    "\"verify\":0,\"servers\":1,\"replica\":false},"
    "\"market\":{"
    "\"max_total_cost\":\"1.5\",\"max_run_time\":\"180s\",\"start\":"
    "\"by "
    "2026-11-20T18:00:00Z\",\"rush\":true,\"replace_lost\":true,\"spare\":false,\"max_rtt\":"
    "\"50ms\","
    "\"min_reliability\":0.9,\"min_speed\":0.5},\"inputs\":[{\"name\":\"train-images\",\"split\":"
    "\"train\",\"manifest\":\"" HASH "\",\"records\":60000}]}";

TEST(canonical_json_reads_back_to_equal_bytes)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_spec_read(arena, text_of(whole), &spec, &error));
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &out);
    assert_string_equal(buffer_string(&out), whole);
    assert_int_equal(spec.inputs[0].split, JOB_SPLIT_TRAIN);
    assert_int_equal(spec.inputs[0].manifest[1], 0x11);
}

TEST(order_and_spelling_of_the_source_do_not_matter)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec left, right;
    ASSERT_OK(job_spec_read(arena,
                            TEXT("{\"train\":{\"data\":\"mnist\",\"model\":\"mlp\"},"
                                 "\"market\":{\"max_run_time\":\"1m30s\"},\"name\":\"j\"}"),
                            &left, &error));
    ASSERT_OK(job_spec_read(arena,
                            TEXT("{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\","
                                 "\"batch\":32},\"market\":{\"max_run_time\":90}}"),
                            &right, &error));
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, JOB_SPEC_SIZE_MAX);
    buffer_init(&second, JOB_SPEC_SIZE_MAX);
    job_spec_write(&left, &first);
    job_spec_write(&right, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
}

static void assert_refused(const char *json, const char *message)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_FAILS(job_spec_read(arena, text_of(json), &spec, &error), ERROR_INVALID);
    assert_string_equal(error.message, message);
}

TEST(wrong_json_is_refused_by_field)
{
    assert_refused("", "job spec: JSON ends too early, at byte 0");
    assert_refused("{\"name\":", "job spec: JSON ends too early, at byte 8");
    assert_refused("{\"name\":\"j\"} x", "job spec: JSON is wrong at byte 13: unexpected "
                                         "character");
    assert_refused("{\"name\":\"\xe0\x80\xa8\"}", "job spec: JSON is not valid UTF-8 text");
    assert_refused("{\"name\":\"j\",\"run\":\"\"}", "run: is missing");
    assert_refused("[]", "must be a mapping of fields to values");
    assert_refused("{\"name\":null}", "name: has no value");
    assert_refused("{\"name\":\"j\",\"name\":\"k\"}", "job spec: field \"name\" is there twice");
    assert_refused("{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\",\"batch\":-1}}",
                   "train.batch: must be a whole number from 1 to 65536");
    assert_refused(
        "{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\"},\"runn\":\"x\"}",
        "unknown field \"runn\"; did you mean \"run\"?");
    assert_refused("{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\"},\"inputs\":["
                   "{\"name\":\"a\",\"split\":\"test\",\"manifest\":\"" HASH
                   "\",\"records\":1},{\"name\":\"a\",\"split\":\"test\",\"manifest\":\"" HASH
                   "\",\"records\":1}]}",
                   "inputs[1].name: \"a\" is there twice");
}

TEST(a_setting_that_the_policy_does_not_have_is_refused)
{
#define SYNC_JOB(sync_)                                                                            \
    "{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\"},\"sync\":{" sync_ "}}"
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    assert_refused(SYNC_JOB("\"policy\":\"bsp\",\"slack\":3"),
                   "sync.slack: policy bsp has no such setting");
    assert_refused(SYNC_JOB("\"policy\":\"pace\",\"taus\":[\"1\",\"2\"]"),
                   "sync.taus: policy pace has no such setting");
    assert_refused(SYNC_JOB("\"policy\":\"bsp\",\"outer_momentum\":0"),
                   "sync.outer_momentum: policy bsp has no such setting");
    assert_refused(SYNC_JOB("\"policy\":\"diloco\",\"outer_momentum\":1"),
                   "sync.outer_momentum: must be below 1");
    assert_refused(SYNC_JOB("\"policy\":\"adacomm\",\"taus\":[\"1\",\"0\"]"),
                   "sync.taus: must be at most 16 whole numbers from 1 to 1000000");
    ASSERT_OK(job_spec_read(
        arena, text_of(SYNC_JOB("\"policy\":\"adacomm\",\"taus\":[\"1\",\"20\"]")), &spec, &error));
    uint32_t taus[JOB_TAUS_MAX];
    assert_int_equal(job_sync_taus(&spec.sync, taus), 2);
    assert_int_equal(taus[0], 1);
    assert_int_equal(taus[1], 20);
}

#define ROWS_JOB(more)                                                                             \
    "{\"name\":\"j\",\"train\":{\"model\":\"logistic\",\"data\":\"a/rows.csv.gz\"" more            \
    "},\"inputs\":[{\"name\":\"a\",\"split\":\"test\",\"manifest\":\"" HASH "\",\"records\":1}]}"

TEST(rows_of_a_file_come_with_their_shape)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, again;
    ASSERT_OK(job_spec_read(arena,
                            TEXT(ROWS_JOB(",\"label\":\"it's, so\",\"features\":10,\"classes\":2")),
                            &spec, &error));
    assert_true(job_train_is_file(&spec.train));
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &out);
    ASSERT_OK(job_spec_read(arena, buffer_text(&out), &again, &error));
    assert_true(text_is(again.train.data, "a/rows.csv.gz"));
    assert_true(text_is(again.train.label, "it's, so"));
    assert_int_equal(again.train.features, 10);
    assert_refused(ROWS_JOB(",\"classes\":2"), "train.features: is missing");
    assert_refused(ROWS_JOB(",\"features\":2"), "train.classes: is missing");
    assert_refused(ROWS_JOB(",\"features\":65537"), "train.features: must be from 1 to 65536");
}

TEST(gamma_and_tick_follow_the_expected_run)
{
    struct job_spec spec = {.market = {.max_run_time_ms = 3600000}};
    assert_int_equal(job_spec_gamma_ms(&spec), 60000);
    assert_int_equal(job_spec_tick_ms(&spec), 10000);
    spec.market.expected_run_time_ms = 60000;
    assert_int_equal(job_spec_gamma_ms(&spec), 3000);
    assert_int_equal(job_spec_tick_ms(&spec), 3000);
    spec.market.expected_run_time_ms = 5000;
    assert_int_equal(job_spec_gamma_ms(&spec), 1000);
    spec.sync = (struct job_sync){.gamma_ms = 4000, .tick_ms = 500};
    assert_int_equal(job_spec_gamma_ms(&spec), 4000);
    assert_int_equal(job_spec_tick_ms(&spec), 500);
}

TEST(the_work_part_carries_gamma_and_tick)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, back;
    ASSERT_OK(job_spec_read(arena, text_of(whole), &spec, &error));
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JOB_SPEC_SIZE_MAX);
    job_spec_write_work(&spec, &out);
    ASSERT_OK(job_spec_read_work(arena, TEXT("native"), buffer_text(&out), &back, &error));
    assert_int_equal(back.sync.gamma_ms, 9000);
    assert_int_equal(back.sync.tick_ms, 2500);
    assert_int_equal(back.train.epochs, 5);
    assert_true(back.train.target.accuracy == 0.885);
}

static const char command[] =
    "{\"name\":\"j\",\"num_nodes\":2,\"resources\":{\"cpus\":\"1+\",\"memory\":\"256MiB+\","
    "\"disk_size\":\"1024MiB\",\"accelerators\":\"T4:16384MiB+:2\",\"network\":\"none\","
    "\"install\":\"none\"},\"envs\":{\"A\":\"1\","
    "\"AB\":\"x y\",\"B\":\"\"},\"setup\":\"true\",\"run\":\"echo \\\"$A\\\"\\nexit "
    "3\",\"runtime\":"
    "\"command\",\"market\":{\"max_run_time\":\"60s\",\"start\":\"now\",\"rush\":false,"
    "\"replace_lost\":true,\"spare\":false},\"inputs\":[{\"name\":\"files\",\"split\":\"files\","
    "\"manifest\":"
    "\"" HASH "\",\"records\":10}]}";

TEST(a_command_has_no_training)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, back;
    ASSERT_OK(job_spec_read(arena, text_of(command), &spec, &error));
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &out);
    assert_string_equal(buffer_string(&out), command);
    assert_int_equal(job_spec_tick_ms(&spec), 3000);

    buffer_clear(&out);
    job_spec_write_work(&spec, &out);
    assert_string_equal(buffer_string(&out),
                        "{\"envs\":{\"A\":\"1\",\"AB\":\"x y\",\"B\":\"\"},\"setup\":\"true\","
                        "\"run\":\"echo \\\"$A\\\"\\nexit 3\"}");
    ASSERT_OK(job_spec_read_work(arena, TEXT("command"), buffer_text(&out), &back, &error));
    assert_int_equal(back.env_count, 3);
    assert_true(text_equal(back.envs[1].value, TEXT("x y")));
    assert_true(text_equal(back.run, spec.run));
}

TEST(a_framework_is_a_command_with_a_network)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, back;
    ASSERT_OK(job_spec_read(arena,
                            TEXT("{\"name\":\"j\",\"num_nodes\":4,\"run\":\"x\",\"runtime\":"
                                 "\"tensorflow\",\"tensorflow\":{\"parameter_servers\":2}}"),
                            &spec, &error));
    assert_true(job_spec_is_command(&spec));
    assert_true(text_equal(spec.resources.network, TEXT("job")));
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JOB_SPEC_SIZE_MAX);
    job_spec_write_work(&spec, &out);
    ASSERT_OK(job_spec_read_work(arena, spec.runtime, buffer_text(&out), &back, &error));
    assert_int_equal(back.tensorflow.parameter_servers, 2);
    ASSERT_OK(job_spec_read(arena,
                            TEXT("{\"name\":\"j\",\"run\":\"x\",\"runtime\":\"torch\","
                                 "\"resources\":{\"accelerators\":2},"
                                 "\"torch\":{\"processes\":\"per_gpu\"}}"),
                            &spec, &error));
    assert_true(spec.torch.processes == JOB_PROCESSES_PER_GPU);
    buffer_clear(&out);
    job_spec_write_work(&spec, &out);
    ASSERT_OK(job_spec_read_work(arena, spec.runtime, buffer_text(&out), &back, &error));
    assert_true(back.torch.processes == JOB_PROCESSES_PER_GPU);
    ASSERT_OK(job_spec_read(arena,
                            TEXT("{\"name\":\"j\",\"run\":\"x\",\"runtime\":\"torch\","
                                 "\"resources\":{\"network\":\"open\"}}"),
                            &spec, &error));
    assert_true(text_equal(spec.resources.network, TEXT("open")));
    assert_true(job_spec_is_gathered(&spec));
    assert_int_equal(job_spec_restart(&spec), MUSTER_RESTART_JOB);
    ASSERT_OK(job_spec_read(
        arena, TEXT("{\"name\":\"j\",\"run\":\"x\",\"restart\":\"job\",\"max_restarts\":2}"), &spec,
        &error));
    assert_true(job_spec_is_gathered(&spec));
    assert_true(text_equal(spec.resources.network, TEXT("job")));
    assert_int_equal(spec.max_restarts, 2);
    ASSERT_OK(job_spec_read(arena, TEXT("{\"name\":\"j\",\"run\":\"x\",\"restart\":\"never\"}"),
                            &spec, &error));
    assert_false(job_spec_is_gathered(&spec));
    assert_false(spec.market.replace_lost);
}

TEST(what_belongs_to_another_runtime_is_refused)
{
    assert_refused("{\"name\":\"j\"}", "train: is missing");
    assert_refused("{\"name\":\"j\",\"runtime\":\"command\"}", "run: is missing");
    assert_refused("{\"name\":\"j\",\"run\":\"x\",\"sync\":{}}",
                   "sync: is not for runtime command; leave it out");
    assert_refused("{\"name\":\"j\",\"runtime\":\"native\",\"run\":\"x\"}",
                   "run: is for runtime command; describe the training under train");
    assert_refused("{\"name\":\"j\",\"run\":\"x\",\"envs\":{\"1A\":\"x\"}}",
                   "envs: \"1A\" is no name of a variable: letters, digits and '_', not a digit "
                   "first");
    assert_refused("{\"name\":\"j\",\"run\":\"x\",\"envs\":{\"SOUK_RANK\":\"7\"}}",
                   "envs: names that begin with SOUK_ are Souk's own");
    assert_refused("{\"name\":\"j\",\"run\":\"x\",\"envs\":{\"A\":[1]}}",
                   "envs: \"A\" must be a single value");
    assert_refused("{\"name\":\"j\",\"run\":\"\\u0000\"}", "run: must not contain a NUL character");
}

TEST(gpus_of_a_native_job_are_refused_when_it_comes_and_read_when_it_is_stored)
{
    static const char refusal[] =
        "resources.accelerators: runtime native trains on CPUs only: leave it out, or use a "
        "runtime whose program uses GPUs, like torch";
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct text json =
        TEXT("{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\"},"
             "\"resources\":{\"accelerators\":\"T4:2\"}}");
    struct error error;
    struct job_spec spec, again;
    ASSERT_FAILS(job_spec_read_new(arena, json, &spec, &error), ERROR_INVALID);
    assert_string_equal(error.message, refusal);
    ASSERT_OK(job_spec_read(arena, json, &spec, &error));
    assert_int_equal(spec.resources.accelerators.count_milli, 2000);
    struct buffer stored AUTO_BUFFER;
    buffer_init(&stored, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &stored);
    ASSERT_OK(job_spec_read(arena, buffer_text(&stored), &again, &error));
    assert_int_equal(again.resources.accelerators.count_milli, 2000);
    ASSERT_OK(job_spec_read_new(arena, text_of(whole), &spec, &error));
}

TEST(the_schema_names_every_field_and_its_limits)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 16);
    job_spec_write_schema(&out);
    const char *schema = buffer_string(&out);
    assert_non_null(strstr(schema, "\"https://json-schema.org/draft/2020-12/schema\""));
    assert_non_null(strstr(schema, "\"required\":[\"name\"]"));
    assert_non_null(strstr(schema, "\"batch\":{\"description\":\"Samples per step.\",\"type\":"
                                   "\"integer\",\"minimum\":1,\"maximum\":65536,\"default\":32}"));
    assert_non_null(strstr(schema, "\"enum\":[\"auto\",\"adsp\",\"pace\","));
    assert_non_null(strstr(schema, "\"pattern\":\"[./]\""));
    assert_non_null(strstr(schema, "\"not\":{}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_json_reads_back_to_equal_bytes),
        cmocka_unit_test(order_and_spelling_of_the_source_do_not_matter),
        cmocka_unit_test(wrong_json_is_refused_by_field),
        cmocka_unit_test(a_setting_that_the_policy_does_not_have_is_refused),
        cmocka_unit_test(rows_of_a_file_come_with_their_shape),
        cmocka_unit_test(gamma_and_tick_follow_the_expected_run),
        cmocka_unit_test(the_work_part_carries_gamma_and_tick),
        cmocka_unit_test(a_command_has_no_training),
        cmocka_unit_test(a_framework_is_a_command_with_a_network),
        cmocka_unit_test(what_belongs_to_another_runtime_is_refused),
        cmocka_unit_test(gpus_of_a_native_job_are_refused_when_it_comes_and_read_when_it_is_stored),
        cmocka_unit_test(the_schema_names_every_field_and_its_limits),
    };
    return cmocka_run_group_tests_name("job_spec", tests, NULL, NULL);
}
