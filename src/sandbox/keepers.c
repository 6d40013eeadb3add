/*
 * The processes that look after sandboxes: relaying a job's streams costs them time, which the
 * sandbox's own group does not bound. They have one group for all of them, beside the sandboxes',
 * which weighs little while the machine's owner works. It is never held still, and never waits for
 * everybody else: whoever ends a sandbox must get its turn.
 */
#include "base/scope.h"
#include "base/text.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

/* Until the group may be empty, or `wait_ms` are over. v2 tells when the last has gone; v1 has only
 * a program to start then (notify_on_release), and is looked at again a little later. */
static void wait_for_empty(const struct sandbox_host *host, int events_fd, int64_t wait_ms)
{
    enum { STEP_MS = 10 };
    if (host->cgroups.version == CGROUP_V1 || events_fd < 0) {
        usleep((useconds_t)(wait_ms < STEP_MS ? wait_ms : STEP_MS) * 1000);
        return;
    }
    struct pollfd changed = {.fd = events_fd, .events = POLLPRI};
    char text[128] = {0};
    /* What was before the reading wakes nobody. */
    if (pread(events_fd, text, sizeof(text) - 1, 0) > 0 && strstr(text, "populated 1"))
        poll(&changed, 1, (int)wait_ms);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sandbox_host_disband(struct sandbox_host *host, int64_t wait_ms)
{
    char folder[CGROUP_PATH_SIZE], path[CGROUP_PATH_SIZE + 16];
    struct error ignored; /* who outlives us keeps it; the next of us comes here again */
    if (host->cgroups.version == CGROUP_NONE || keepers_folder(host, folder, &ignored) < 0)
        return;
    snprintf(path, sizeof(path), "%s/cgroup.events", folder);
    AUTO_FD int events_fd = open(path, O_RDONLY | O_CLOEXEC);
    const int64_t end_ms = now_ms() + wait_ms;
    for (int64_t left_ms = wait_ms; rmdir(folder) < 0 && errno == EBUSY && left_ms > 0;
         left_ms = end_ms - now_ms())
        wait_for_empty(host, events_fd, left_ms);
}
