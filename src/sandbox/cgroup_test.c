/*
 * Finding one's own cgroup on machines of different kinds, from what /proc says there.
 * covers cgroup_v2.c
 */
#include "sandbox/cgroup.h"
#include "sandbox/cgroup_internal.h"
#include "testing/testing.h"

#include <sys/stat.h>
#include <unistd.h>

static const char hybrid_paths[] =
    "8:pids:/a\n6:freezer:/\n4:memory:/x/y\n1:cpu,cpuacct:/\n0::/u\n";
static const char hybrid_mounts[] =
    "30 29 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "31 29 0:27 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory\n"
    "32 29 0:28 /a /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "33 29 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(v1_folder_is_the_mount_and_the_path_in_it)
{
    char folder[CGROUP_PATH_SIZE];
    assert_true(cgroup_find_folder(hybrid_paths, hybrid_mounts, "memory", folder));
    assert_string_equal(folder, "/sys/fs/cgroup/memory/x/y");
    assert_true(cgroup_find_folder(hybrid_paths, hybrid_mounts, "cpuacct", folder));
    assert_string_equal(folder, "/sys/fs/cgroup/cpu,cpuacct");
}

TEST(mount_that_shows_a_part_of_the_hierarchy_is_understood)
{
    char folder[CGROUP_PATH_SIZE];
    assert_true(cgroup_find_folder(hybrid_paths, hybrid_mounts, "pids", folder));
    assert_string_equal(folder, "/sys/fs/cgroup/pids");
}

TEST(v2_folder_is_found_beside_v1)
{
    char folder[CGROUP_PATH_SIZE];
    assert_true(cgroup_find_folder(hybrid_paths, hybrid_mounts, NULL, folder));
    assert_string_equal(folder, "/sys/fs/cgroup/unified/u");
}

TEST(controller_without_a_mount_is_not_found)
{
    char folder[CGROUP_PATH_SIZE];
    assert_false(cgroup_find_folder(hybrid_paths, hybrid_mounts, "freezer", folder));
    assert_false(cgroup_find_folder(hybrid_paths, hybrid_mounts, "cpus", folder));
    assert_false(cgroup_find_folder("", "", "cpu", folder));
    assert_false(cgroup_find_folder("nonsense\n::\n", " - - \n", NULL, folder));
}

TEST(words_are_matched_whole)
{
    assert_true(cgroup_has_word("cpuset cpu io\n", "cpu"));
    assert_false(cgroup_has_word("cpuset io\n", "cpu"));
    assert_true(cgroup_has_word("rw,cpu,cpuacct", "cpuacct"));
    assert_false(cgroup_has_word("", "cpu"));
}

/* A folder that looks like a v2 group to reading code. */
static void make_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void read_file(const char *folder, const char *name, char out[64])
{
    assert_int_equal(cgroup_read(folder, name, out, 64), 0);
}

TEST(v2_limits_are_written_as_the_kernel_wants_them)
{
    struct error error = {0};
    struct cgroup cgroup = {.version = CGROUP_V2, .folder_count = 1};
    char folder[] = "/tmp/souk-cgroup-test-XXXXXX", text[64];
    assert_non_null(mkdtemp(folder));
    snprintf(cgroup.folders[0], CGROUP_PATH_SIZE, "%s", folder);
    const char *const files[] = {"cpu.max",          "cpu.weight", "memory.max",
                                 "memory.oom.group", "pids.max",   "cgroup.freeze"};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        make_file(folder, files[i], "");
    const struct cgroup_limits limits = {.cpu_milli = 250, .memory_bytes = 1 << 28, .pids_max = 64};
    ASSERT_OK(cgroup_v2_ops.set_limits(&cgroup, &limits, &error));
    read_file(folder, "cpu.max", text);
    assert_string_equal(text, "12500 50000");
    read_file(folder, "memory.max", text);
    assert_string_equal(text, "268435456");
    read_file(folder, "pids.max", text);
    assert_string_equal(text, "64");
    ASSERT_OK(cgroup_set_frozen(&cgroup, true, &error));
    read_file(folder, "cgroup.freeze", text);
    assert_string_equal(text, "1");

    const struct cgroup_cpu idle = {.cpu_milli = 300, .is_idle = true};
    ASSERT_OK(cgroup_set_cpu(&cgroup, &idle, &error));
    read_file(folder, "cpu.max", text);
    assert_string_equal(text, "15000 50000");
    read_file(folder, "cpu.weight", text);
    assert_string_equal(text, "1");
    make_file(folder, "cpu.idle", "0\n");
    ASSERT_OK(cgroup_set_cpu(&cgroup, &idle, &error));
    read_file(folder, "cpu.idle", text);
    assert_string_equal(text, "1\n");

    make_file(folder, "cpu.stat", "usage_usec 1234567\nuser_usec 9\n");
    make_file(folder, "memory.current", "4096\n");
    make_file(folder, "memory.events", "low 0\noom 2\noom_kill 1\n");
    struct cgroup_usage usage;
    cgroup_read_usage(&cgroup, &usage);
    assert_int_equal(usage.cpu_ms, 1234);
    assert_int_equal(usage.memory_bytes, 4096);
    assert_int_equal(usage.out_of_memory_count, 1);

    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0); // NOLINT(concurrency-mt-unsafe): one thread
}

TEST(machine_without_cgroups_has_a_reason)
{
    struct cgroup_host host;
    cgroup_host_probe_files(&host, "/nonexistent", "/nonexistent");
    assert_int_equal(host.version, CGROUP_NONE);
    assert_string_not_equal(host.reason, "");
    cgroup_host_probe_files(&host, "/dev/null", "/dev/null");
    assert_int_equal(host.version, CGROUP_NONE);
    assert_string_not_equal(host.reason, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v1_folder_is_the_mount_and_the_path_in_it),
        cmocka_unit_test(mount_that_shows_a_part_of_the_hierarchy_is_understood),
        cmocka_unit_test(v2_folder_is_found_beside_v1),
        cmocka_unit_test(controller_without_a_mount_is_not_found),
        cmocka_unit_test(words_are_matched_whole),
        cmocka_unit_test(v2_limits_are_written_as_the_kernel_wants_them),
        cmocka_unit_test(machine_without_cgroups_has_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
