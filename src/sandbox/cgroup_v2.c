/*
 * Cgroup v2: one folder, below this process's own or below the nearest ancestor that may be used.
 *
 * A group that hands controllers to its children may hold no process itself. So where this process
 * is alone in its group (a systemd service with Delegate=yes) it moves into a leaf beside its
 * sandboxes; where others share the group, an ancestor that already hands the controllers down
 * becomes the parent.
 */
#include "base/scope.h"
#include "sandbox/cgroup_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const needed[] = {"cpu", "memory", "pids"};

static bool v2_has_controllers(const char *folder, const char *file)
{
    char list[1024];
    if (cgroup_read(folder, file, list, sizeof(list)) < 0)
        return false;
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!cgroup_has_word(list, needed[i]))
            return false;
    return true;
}

/* True when this process, and no other, is in the group. */
static bool v2_is_alone(const char *folder)
{
    char list[1024], own[32];
    if (cgroup_read(folder, "cgroup.procs", list, sizeof(list)) < 0)
        return false;
    snprintf(own, sizeof(own), "%d\n", (int)getpid());
    return strcmp(list, own) == 0;
}

void cgroup_v2_move_back(const char *folder)
{
    struct error ignored;
    char leaf[CGROUP_PATH_SIZE + 16];
    snprintf(leaf, sizeof(leaf), "%s/souk-daemon", folder);
    /* Only what is on can be turned off. */
    const char *off = "-cpu -memory -pids";
    if ((cgroup_write(folder, "cgroup.subtree_control", "-io -cpu -memory -pids", &ignored) == 0 ||
         cgroup_write(folder, "cgroup.subtree_control", off, &ignored) == 0) &&
        cgroup_write(folder, "cgroup.procs", "0", &ignored) == 0)
        rmdir(leaf);
}

static bool v2_enable(const char *folder, bool *out_has_moved)
{
    struct error ignored;
    if (v2_has_controllers(folder, "cgroup.subtree_control"))
        return true;
    const char *enable = "+cpu +memory +pids";
    if (!v2_has_controllers(folder, "cgroup.controllers"))
        return false;
    if (cgroup_write(folder, "cgroup.subtree_control", enable, &ignored) == 0)
        return true;
    char leaf[CGROUP_PATH_SIZE + 16];
    snprintf(leaf, sizeof(leaf), "%s/souk-daemon", folder);
    if (!v2_is_alone(folder) || (mkdir(leaf, 0755) < 0 && errno != EEXIST))
        return false;
    if (cgroup_write(leaf, "cgroup.procs", "0", &ignored) == 0 &&
        cgroup_write(folder, "cgroup.subtree_control", enable, &ignored) == 0) {
        *out_has_moved = true;
        return true;
    }
    if (cgroup_write(folder, "cgroup.procs", "0", &ignored) == 0)
        rmdir(leaf);
    return false;
}

/* Not every kernel or parent group has it: the disk's share is nice to have. */
static bool v2_enable_io(const char *folder)
{
    char list[1024];
    struct error ignored;
    if (cgroup_read(folder, "cgroup.subtree_control", list, sizeof(list)) == 0 &&
        cgroup_has_word(list, "io"))
        return true;
    return cgroup_read(folder, "cgroup.controllers", list, sizeof(list)) == 0 &&
           cgroup_has_word(list, "io") &&
           cgroup_write(folder, "cgroup.subtree_control", "+io", &ignored) == 0;
}

static bool v2_can_create(const char *folder)
{
    char probe[CGROUP_PATH_SIZE + 48], procs[CGROUP_PATH_SIZE + 64];
    snprintf(probe, sizeof(probe), "%s/souk-probe-%d", folder, (int)getpid());
    if (mkdir(probe, 0755) < 0)
        return false;
    snprintf(procs, sizeof(procs), "%s/cpu.max", probe);
    const bool can = access(procs, W_OK) == 0;
    rmdir(probe);
    return can;
}

void cgroup_v2_probe(struct cgroup_host *host, const char *paths, const char *mounts)
{
    char folder[CGROUP_PATH_SIZE];
    if (!cgroup_find_folder(paths, mounts, NULL, folder)) {
        snprintf(host->reason, sizeof(host->reason), "cgroups are not mounted");
        return;
    }
    /* The daemon came back into the leaf that a former life of it made. */
    char *last = strrchr(folder, '/');
    if (last && strcmp(last, "/souk-daemon") == 0)
        *last = '\0';
    char own[CGROUP_PATH_SIZE];
    memcpy(own, folder, sizeof(own));
    bool is_own = true;
    while (access(folder, F_OK) == 0) {
        const bool handed_down = is_own ? v2_enable(folder, &host->has_moved_self)
                                        : v2_has_controllers(folder, "cgroup.subtree_control");
        if (handed_down && access(folder, W_OK) == 0 && v2_can_create(folder)) {
            memcpy(host->folders[0], folder, sizeof(folder));
            host->folder_count = 1;
            host->version = CGROUP_V2;
            host->has_io = v2_enable_io(folder);
            return;
        }
        is_own = false;
        last = strrchr(folder, '/');
        if (!last || last == folder)
            break;
        *last = '\0';
        char procs[CGROUP_PATH_SIZE + 16];
        snprintf(procs, sizeof(procs), "%s/cgroup.procs", folder);
        if (access(procs, F_OK) < 0)
            break; /* above the mount */
    }
    snprintf(host->reason, sizeof(host->reason),
             "cgroup v2 does not let this process limit CPU, memory and processes below %.100s; "
             "run as root or as a service with Delegate=yes",
             own);
}

static int v2_set_quota(const char *folder, int64_t cpu_milli, struct error *error)
{
    char text[64];
    snprintf(text, sizeof(text), "%" PRId64 " %d", cgroup_quota_us(cpu_milli), CGROUP_PERIOD_US);
    return cgroup_write(folder, "cpu.max", text, error);
}

static int v2_set_cpu(const struct cgroup *cgroup, const struct cgroup_cpu *cpu,
                      struct error *error)
{
    const char *folder = cgroup->folders[0];
    if (v2_set_quota(folder, cpu->cpu_milli, error) < 0)
        return -1;
    return cgroup_set_idle(folder, cpu->is_idle, "cpu.weight", "1", "100", error);
}

static int v2_set_io(const char *folder, const struct cgroup_limits *limits, struct error *error)
{
    char disk[32], text[128];
    if (cgroup_write_if_there(folder, "io.weight", "default 10", error) < 0)
        return -1;
    if (limits->io_bytes_per_s <= 0 || !cgroup_find_disk(limits->io_path, disk))
        return 0;
    snprintf(text, sizeof(text), "%s rbps=%" PRId64 " wbps=%" PRId64, disk, limits->io_bytes_per_s,
             limits->io_bytes_per_s);
    return cgroup_write_if_there(folder, "io.max", text, error);
}

static int v2_set_limits(const struct cgroup *cgroup, const struct cgroup_limits *limits,
                         struct error *error)
{
    const char *folder = cgroup->folders[0];
    char text[64];
    if (v2_set_quota(folder, limits->cpu_milli, error) < 0)
        return -1;
    snprintf(text, sizeof(text), "%" PRId64, limits->memory_bytes);
    if (cgroup_write(folder, "memory.max", text, error) < 0)
        return -1;
    /* Absent where swap is not accounted for. */
    if (cgroup_read_number(folder, "memory.swap.current", NULL) >= 0 &&
        cgroup_write(folder, "memory.swap.max", "0", error) < 0)
        return -1;
    snprintf(text, sizeof(text), "%" PRId64, limits->pids_max);
    if (cgroup_write(folder, "pids.max", text, error) < 0)
        return -1;
    return v2_set_io(folder, limits, error);
}

static int64_t at_least_0(int64_t value)
{
    return value < 0 ? 0 : value;
}

static void v2_read_usage(const struct cgroup *cgroup, struct cgroup_usage *out_usage)
{
    const char *folder = cgroup->folders[0];
    out_usage->cpu_ms = at_least_0(cgroup_read_number(folder, "cpu.stat", "usage_usec")) / 1000;
    out_usage->memory_bytes = at_least_0(cgroup_read_number(folder, "memory.current", NULL));
    /* memory.peak came with Linux 5.19; before it the caller's own maximum has to do. */
    out_usage->memory_peak_bytes = at_least_0(cgroup_read_number(folder, "memory.peak", NULL));
    out_usage->out_of_memory_count =
        at_least_0(cgroup_read_number(folder, "memory.events", "oom_kill"));
}

static int v2_set_frozen(const struct cgroup *cgroup, bool is_frozen, struct error *error)
{
    return cgroup_write(cgroup->folders[0], "cgroup.freeze", is_frozen ? "1" : "0", error);
}

static void v2_kill(const struct cgroup *cgroup)
{
    struct error ignored;
    /* cgroup.kill came with Linux 5.14. */
    if (cgroup_write(cgroup->folders[0], "cgroup.kill", "1", &ignored) == 0)
        return;
    const int frozen = v2_set_frozen(cgroup, true, &ignored);
    cgroup_signal_all(cgroup->folders[0], SIGKILL);
    if (frozen == 0 && v2_set_frozen(cgroup, false, &ignored) < 0)
        return;
}

const struct cgroup_ops cgroup_v2_ops = {
    .set_limits = v2_set_limits,
    .set_cpu = v2_set_cpu,
    .read_usage = v2_read_usage,
    .set_frozen = v2_set_frozen,
    .kill = v2_kill,
};
