/* covers launch.c, mpi.c, spark.c, tensorflow.c, torch.c */
#include "runtime/launch.h"
#include "testing/testing.h"

#include <string.h>

static const struct launch_member members[] = {
    {.rank = 0, .address = 0x0a4d0001, .cores_milli = 2500},
    {.rank = 2, .address = 0x0a4d0003, .cores_milli = 500},
    {.rank = 3, .address = 0x0a4d0004, .cores_milli = 4000},
};

static const struct launch_round example = {
    .job = 7,
    .index = 4,
    .max_restarts = 3,
    .members = members,
    .member_count = 3,
    .own = 1,
    .ram_bytes = INT64_C(2) << 30,
    .folder = "/lease/launch",
    .secret = "00ff",
    .program = "/souk",
};

static const char *value_of(const struct launch *launch, const char *name)
{
    const size_t size = strlen(name);
    for (size_t i = 0; i < launch->variable_count; i++)
        if (strncmp(launch->variables[i], name, size) == 0 && launch->variables[i][size] == '=')
            return launch->variables[i] + size + 1;
    return "(unset)";
}

TEST(torch_gets_the_environment_of_torchrun)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch launch;
    launch_write(launch_find(TEXT("torch")), arena, &example, &launch);
    static const char *const expected[][2] = {
        {"MASTER_ADDR", "10.77.0.1"},
        {"MASTER_PORT", "29504"},
        {"RANK", "1"},
        {"WORLD_SIZE", "3"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "1"},
        {"GROUP_RANK", "1"},
        {"GROUP_WORLD_SIZE", "3"},
        {"ROLE_RANK", "1"},
        {"ROLE_WORLD_SIZE", "3"},
        {"ROLE_NAME", "default"},
        {"TORCHELASTIC_RESTART_COUNT", "4"},
        {"TORCHELASTIC_MAX_RESTARTS", "3"},
        {"TORCHELASTIC_RUN_ID", "souk-7"},
        {"GLOO_SOCKET_IFNAME", "souk0"},
        {"NCCL_SOCKET_IFNAME", "souk0"},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(value_of(&launch, expected[i][0]), expected[i][1]);
    assert_true(launch.runs_script);
    assert_int_equal(launch.file_count, 0);
}

TEST(processes_of_torch_are_counted_through_the_members)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch_round round = example;
    round.processes = 2;
    round.local = 1;
    struct launch launch;
    launch_write(&launch_torch, arena, &round, &launch);
    static const char *const expected[][2] = {
        {"RANK", "3"},       {"WORLD_SIZE", "6"},
        {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"},
        {"GROUP_RANK", "1"}, {"GROUP_WORLD_SIZE", "3"},
        {"ROLE_RANK", "3"},  {"ROLE_WORLD_SIZE", "6"},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(value_of(&launch, expected[i][0]), expected[i][1]);
    assert_int_equal(launch.process_count, 2);
}

TEST(torch_has_a_process_for_each_whole_gpu)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct launch_member with_gpus[] = {{.rank = 0, .gpus_milli = 2000},
                                              {.rank = 1, .gpus_milli = 500},
                                              {.rank = 2, .gpus_milli = 4000}};
    struct launch_round round = example;
    round.members = with_gpus;
    round.processes = UINT64_MAX;
    round.own = 2;
    round.local = 3;
    struct launch launch;
    launch_write(&launch_torch, arena, &round, &launch);
    assert_string_equal(value_of(&launch, "RANK"), "6");
    assert_string_equal(value_of(&launch, "WORLD_SIZE"), "7");
    assert_string_equal(value_of(&launch, "LOCAL_RANK"), "3");
    assert_string_equal(value_of(&launch, "LOCAL_WORLD_SIZE"), "4");
}

TEST(the_first_that_is_there_is_torchs_master)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch_round round = example;
    round.members = members + 1;
    round.member_count = 2;
    struct launch launch;
    launch_write(&launch_torch, arena, &round, &launch);
    assert_string_equal(value_of(&launch, "MASTER_ADDR"), "10.77.0.3");
    assert_string_equal(value_of(&launch, "RANK"), "1");
    assert_string_equal(value_of(&launch, "WORLD_SIZE"), "2");
}

TEST(without_parameter_servers_all_of_tensorflow_are_workers)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch launch;
    launch_write(launch_find(TEXT("tensorflow")), arena, &example, &launch);
    assert_string_equal(value_of(&launch, "TF_CONFIG"),
                        "{\"cluster\":{\"worker\":[\"10.77.0.1:2222\",\"10.77.0.3:2222\","
                        "\"10.77.0.4:2222\"]},\"task\":{\"type\":\"worker\",\"index\":1}}");
}

TEST(with_parameter_servers_the_first_is_chief)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch_round round = example;
    round.parameter_servers = 1;
    static const char *const tasks[] = {
        "\"task\":{\"type\":\"chief\",\"index\":0}}",
        "\"task\":{\"type\":\"worker\",\"index\":0}}",
        "\"task\":{\"type\":\"ps\",\"index\":0}}",
    };
    for (round.own = 0; round.own < 3; round.own++) {
        struct launch launch;
        launch_write(&launch_tensorflow, arena, &round, &launch);
        const char *config = value_of(&launch, "TF_CONFIG");
        assert_non_null(strstr(config, "{\"cluster\":{\"chief\":[\"10.77.0.1:2222\"],"
                                       "\"worker\":[\"10.77.0.3:2222\"],"
                                       "\"ps\":[\"10.77.0.4:2222\"]},"));
        assert_non_null(strstr(config, tasks[round.own]));
        assert_true(launch.runs_script);
    }
}

TEST(with_parameter_servers_or_without_a_job_waits_for_the_first_or_for_all)
{
    assert_true(launch_is_led(&launch_tensorflow, 1));
    assert_false(launch_is_led(&launch_tensorflow, 0));
    assert_false(launch_is_led(&launch_torch, 0));
    assert_false(launch_is_led(NULL, 0));
}

TEST(mpirun_finds_hosts_and_a_launcher_and_may_launch_on_the_first_alone)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch_round round = example;
    struct launch launch;
    launch_write(launch_find(TEXT("mpi")), arena, &round, &launch);
    assert_false(launch.runs_script);
    assert_int_equal(launch.file_count, 2);
    assert_string_equal(value_of(&launch, "OMPI_MCA_btl_tcp_if_include"), "souk0");
    assert_string_equal(value_of(&launch, "SOUK_LAUNCH_SECRET"), "(unset)");
    round.own = 0;
    launch_write(&launch_mpi, arena, &round, &launch);
    assert_true(launch.runs_script);
    assert_string_equal(value_of(&launch, "OMPI_MCA_orte_default_hostfile"),
                        "/lease/launch/hostfile");
    assert_string_equal(value_of(&launch, "OMPI_MCA_plm_rsh_agent"), "/lease/launch/launcher");
    assert_string_equal(value_of(&launch, "SOUK_LAUNCH_SECRET"), "00ff");
    assert_int_equal(launch.file_count, 2);
    assert_string_equal(launch.files[0].name, "hostfile");
    assert_true(text_is(launch.files[0].content, "10.77.0.1 slots=2\n10.77.0.3 slots=1\n"
                                                 "10.77.0.4 slots=4\n"));
    assert_true(launch.files[1].is_program);
    assert_true(text_is(launch.files[1].content, "#!/bin/sh\nexec /souk rank-launch \"$@\"\n"));
    assert_true(launch_is_led(&launch_mpi, 0));
}

static const char *content_of(const struct launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->file_count; i++)
        if (strcmp(launch->files[i].name, name) == 0)
            return launch->files[i].content.data;
    return "(missing)";
}

TEST(spark_has_its_master_on_the_first_and_workers_as_large_as_their_leases)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch_round round = example;
    struct launch launch;
    round.own = 2;
    launch_write(launch_find(TEXT("spark")), arena, &round, &launch);
    assert_true(text_is(launch.instead, "exec /lease/launch/daemon worker"));
    assert_string_equal(value_of(&launch, "SPARK_MASTER"), "spark://10.77.0.1:7100");
    assert_string_equal(value_of(&launch, "SPARK_LOCAL_IP"), "10.77.0.4");
    assert_string_equal(value_of(&launch, "SPARK_WORKER_CORES"), "4");
    assert_string_equal(value_of(&launch, "SPARK_WORKER_MEMORY"), "832m");
    round.own = 0;
    launch_write(&launch_spark, arena, &round, &launch);
    assert_int_equal(launch.instead.size, 0);
    assert_non_null(strstr(launch.before.data, "daemon\" master"));
    assert_null(strstr(launch.before.data, "daemon\" worker")); /* no room for it */
    const char *defaults = content_of(&launch, "defaults.conf");
    assert_non_null(strstr(defaults, "spark.master spark://10.77.0.1:7100\n"));
    assert_non_null(strstr(defaults, "spark.driver.host 10.77.0.1\n"));
    assert_non_null(strstr(defaults, "spark.executor.memory 832m\n"));
    assert_non_null(strstr(content_of(&launch, "env"), "ln -s ../../java "));
    assert_non_null(strstr(content_of(&launch, "java"), "$SOUK_JAVA_SHARE"));
    assert_non_null(strstr(content_of(&launch, "conf/spark-env.sh"), "$SOUK_SPARK_DIR/python"));
    assert_non_null(strstr(content_of(&launch, "python"), "$SOUK_SPARK_DIR/await"));
    round.ram_bytes = INT64_C(4) << 30;
    launch_write(&launch_spark, arena, &round, &launch);
    assert_non_null(strstr(launch.before.data, "daemon\" worker"));
    assert_non_null(strstr(content_of(&launch, "defaults.conf"), "spark.driver.memory 1024m\n"));
    assert_true(launch_is_led(&launch_spark, 0));
}

TEST(spark_on_one_rank_needs_no_cluster)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct launch_round round = example;
    struct launch launch;
    round.own = 0;
    round.member_count = 1;
    round.ram_bytes = INT64_C(1) << 30;
    launch_write(&launch_spark, arena, &round, &launch);
    assert_string_equal(value_of(&launch, "SPARK_MASTER"), "local[2]");
    assert_null(strstr(launch.before.data, "daemon"));
    assert_non_null(strstr(content_of(&launch, "defaults.conf"), "spark.driver.memory 512m\n"));
}

TEST(what_is_no_framework_has_no_launch)
{
    assert_null(launch_find(TEXT("command")));
    assert_null(launch_find(TEXT("native")));
    assert_null(launch_find(TEXT("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_gets_the_environment_of_torchrun),
        cmocka_unit_test(processes_of_torch_are_counted_through_the_members),
        cmocka_unit_test(torch_has_a_process_for_each_whole_gpu),
        cmocka_unit_test(the_first_that_is_there_is_torchs_master),
        cmocka_unit_test(without_parameter_servers_all_of_tensorflow_are_workers),
        cmocka_unit_test(with_parameter_servers_the_first_is_chief),
        cmocka_unit_test(with_parameter_servers_or_without_a_job_waits_for_the_first_or_for_all),
        cmocka_unit_test(mpirun_finds_hosts_and_a_launcher_and_may_launch_on_the_first_alone),
        cmocka_unit_test(spark_has_its_master_on_the_first_and_workers_as_large_as_their_leases),
        cmocka_unit_test(spark_on_one_rank_needs_no_cluster),
        cmocka_unit_test(what_is_no_framework_has_no_launch),
    };
    return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
