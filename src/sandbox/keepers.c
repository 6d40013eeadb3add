/*
 * The processes that look after sandboxes: relaying a job's streams costs them time, which the
 * sandbox's own group does not bound. They have one group for all of them, beside the sandboxes',
 * which weighs little while the machine's owner works. It is never held still, and never waits for
 * everybody else: whoever ends a sandbox must get its turn.
 */
#include "base/text.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Against 1024 and 100 of everybody else. */
static const char *const v1_weights[] = {"1024", "20"};
static const char *const v2_weights[] = {"100", "2"};

/* One for each state folder: the next daemon on it finds it again. */
static int keepers_folder(const struct sandbox_host *host, char out[CGROUP_PATH_SIZE],
                          struct error *error)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *at = host->state_dir; *at; at++)
        hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
    const int size = snprintf(out, CGROUP_PATH_SIZE, "%s/souk-keepers-%016" PRIx64,
                              host->cgroups.folders[CGROUP_CPU], hash);
    if (size >= CGROUP_PATH_SIZE)
        return error_set(error, ERROR_INVALID, "the cgroup's name is too long");
    return 0;
}
_Static_assert(CGROUP_CPU == 0, "the only folder of v2, and that of v1 that weighs");

static int set_weight(const struct sandbox_host *host, const char *folder, struct error *error)
{
    return host->cgroups.version == CGROUP_V1
               ? cgroup_write(folder, "cpu.shares", v1_weights[host->is_light], error)
               : cgroup_write(folder, "cpu.weight", v2_weights[host->is_light], error);
}

int sandbox_host_adopt(struct sandbox_host *host, pid_t pid, struct error *error)
{
    char folder[CGROUP_PATH_SIZE], number[16];
    if (host->cgroups.version == CGROUP_NONE)
        return 0;
    if (keepers_folder(host, folder, error) < 0)
        return -1;
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%s\"", folder);
    snprintf(number, sizeof(number), "%d", (int)pid);
    if (set_weight(host, folder, error) < 0)
        return -1;
    return cgroup_write(folder, "cgroup.procs", number, error);
}

int sandbox_host_set_light(struct sandbox_host *host, bool is_light, struct error *error)
{
    char folder[CGROUP_PATH_SIZE];
    host->is_light = is_light;
    if (host->cgroups.version == CGROUP_NONE)
        return 0;
    if (keepers_folder(host, folder, error) < 0)
        return -1;
    return access(folder, F_OK) == 0 ? set_weight(host, folder, error) : 0;
}

void sandbox_host_disband(struct sandbox_host *host, int64_t wait_ms)
{
    enum { STEP_MS = 10 };
    char folder[CGROUP_PATH_SIZE];
    struct error ignored; /* who outlives us keeps it; the next of us comes here again */
    if (host->cgroups.version == CGROUP_NONE || keepers_folder(host, folder, &ignored) < 0)
        return;
    for (; rmdir(folder) < 0 && errno == EBUSY && wait_ms > 0; wait_ms -= STEP_MS)
        usleep(STEP_MS * 1000);
}
