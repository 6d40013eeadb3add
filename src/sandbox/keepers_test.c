/* A process beside the sandboxes, whose weight falls and rises; covers keepers.c. */
#include "base/log.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/sandbox_internal.h"
#include "testing/sleeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its line of /proc/PID/cgroup that names the group; false: it is in none. */
static bool find_group(pid_t pid, char *out, size_t out_size)
{
    char path[64], line[1024];
    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    bool is_found = false;
    while (!is_found && fgets(line, sizeof(line), file)) {
        const char *name = strstr(line, "souk-keepers-");
        is_found = name != NULL;
        if (name)
            snprintf(out, out_size, "%.*s", (int)strcspn(name, "\n"), name);
    }
    fclose(file);
    return is_found;
}

TEST(a_keeper_weighs_less_while_the_owner_works)
{
    struct error error;
    struct sandbox_host host = {.state_dir = "/nowhere/keepers-test"};
    char name[128], folder[CGROUP_PATH_SIZE + 130];
    cgroup_host_probe(&host.cgroups);
    if (host.cgroups.version == CGROUP_NONE) {
        /* Nothing to weigh by, and nothing that fails. */
        ASSERT_OK(sandbox_host_adopt(&host, getpid(), &error));
        ASSERT_OK(sandbox_host_set_light(&host, true, &error));
        SKIP("cgroups are not to be had here");
    }
    const bool is_v1 = host.cgroups.version == CGROUP_V1;
    const char *file = is_v1 ? "cpu.shares" : "cpu.weight";
    const pid_t pid = sleeper_start();
    ASSERT_OK(sandbox_host_adopt(&host, pid, &error));
    assert_true(find_group(pid, name, sizeof(name)));
    snprintf(folder, sizeof(folder), "%s/%s", host.cgroups.folders[CGROUP_CPU], name);
    assert_int_equal(cgroup_read_number(folder, file, NULL), is_v1 ? 1024 : 100);
    ASSERT_OK(sandbox_host_set_light(&host, true, &error));
    assert_int_equal(cgroup_read_number(folder, file, NULL), is_v1 ? 20 : 2);
    /* One that comes meanwhile is as light. */
    ASSERT_OK(sandbox_host_adopt(&host, pid, &error));
    assert_int_equal(cgroup_read_number(folder, file, NULL), is_v1 ? 20 : 2);
    sandbox_host_disband(&host, 0); /* somebody is in it */
    assert_int_equal(access(folder, F_OK), 0);
    ASSERT_OK(sandbox_host_set_light(&host, false, &error));
    assert_int_equal(cgroup_read_number(folder, file, NULL), is_v1 ? 1024 : 100);
    /* Who is about to end is waited for. */
    kill(pid, SIGKILL);
    sandbox_host_disband(&host, INT32_MAX);
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    cgroup_host_done(&host.cgroups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keeper_weighs_less_while_the_owner_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
