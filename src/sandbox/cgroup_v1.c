/* Cgroup v1: one folder in each controller's hierarchy. */
#include "base/scope.h"
#include "sandbox/cgroup_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TCP_PART = 4 }; /* of the memory, for the buffers of connections */

static const char *const controllers[CGROUP_FOLDER_MAX] = {
    [CGROUP_CPU] = "cpu",   [CGROUP_CPUACCT] = "cpuacct", [CGROUP_MEMORY] = "memory",
    [CGROUP_PIDS] = "pids", [CGROUP_FREEZER] = "freezer", [CGROUP_BLKIO] = "blkio",
};

void cgroup_v1_probe(struct cgroup_host *host, const char *paths, const char *mounts)
{
    for (size_t i = 0; i < CGROUP_BLKIO; i++) {
        if (!cgroup_find_folder(paths, mounts, controllers[i], host->folders[i])) {
            /* Without any controller this is not a v1 machine: nothing to say about it. */
            if (i > 0)
                snprintf(host->reason, sizeof(host->reason), "cgroup v1 has no %s controller here",
                         controllers[i]);
            return;
        }
        if (access(host->folders[i], W_OK) < 0) {
            snprintf(host->reason, sizeof(host->reason),
                     "no permission to make cgroups in %.150s; run as root for hard limits",
                     host->folders[i]);
            return;
        }
    }
    host->has_io = cgroup_find_folder(paths, mounts, "blkio", host->folders[CGROUP_BLKIO]) &&
                   access(host->folders[CGROUP_BLKIO], W_OK) == 0;
    host->folder_count = host->has_io ? CGROUP_FOLDER_MAX : CGROUP_BLKIO;
    host->version = CGROUP_V1;
}

static int v1_set_quota(const char *folder, int64_t cpu_milli, struct error *error)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, cgroup_quota_us(cpu_milli));
    return cgroup_write(folder, "cpu.cfs_quota_us", text, error);
}

static int v1_set_cpu(const struct cgroup *cgroup, const struct cgroup_cpu *cpu,
                      struct error *error)
{
    const char *folder = cgroup->folders[CGROUP_CPU];
    if (v1_set_quota(folder, cpu->cpu_milli, error) < 0)
        return -1;
    return cgroup_set_idle(folder, cpu->is_idle, "cpu.shares", "2", "1024", error);
}

/* v1 limits what goes straight to the disk; what the kernel writes back later is nobody's. */
static int v1_set_io(const struct cgroup *cgroup, const struct cgroup_limits *limits,
                     struct error *error)
{
    if (cgroup->folder_count <= CGROUP_BLKIO)
        return 0;
    const char *folder = cgroup->folders[CGROUP_BLKIO];
    char disk[32], text[64];
    if (cgroup_write_if_there(folder, "blkio.bfq.weight", "10", error) < 0 ||
        cgroup_write_if_there(folder, "blkio.weight", "10", error) < 0)
        return -1;
    if (limits->io_bytes_per_s <= 0 || !cgroup_find_disk(limits->io_path, disk))
        return 0;
    snprintf(text, sizeof(text), "%s %" PRId64, disk, limits->io_bytes_per_s);
    if (cgroup_write_if_there(folder, "blkio.throttle.read_bps_device", text, error) < 0)
        return -1;
    return cgroup_write_if_there(folder, "blkio.throttle.write_bps_device", text, error);
}

static int v1_set_limits(const struct cgroup *cgroup, const struct cgroup_limits *limits,
                         struct error *error)
{
    char text[32];
    const char *cpu = cgroup->folders[CGROUP_CPU];
    snprintf(text, sizeof(text), "%d", CGROUP_PERIOD_US);
    if (cgroup_write(cpu, "cpu.cfs_period_us", text, error) < 0 ||
        v1_set_quota(cpu, limits->cpu_milli, error) < 0)
        return -1;
    snprintf(text, sizeof(text), "%" PRId64, limits->memory_bytes);
    const char *memory = cgroup->folders[CGROUP_MEMORY];
    if (cgroup_write(memory, "memory.limit_in_bytes", text, error) < 0)
        return -1;
    /* Swap is counted too where the kernel accounts for it. */
    if (cgroup_read_number(memory, "memory.memsw.limit_in_bytes", NULL) >= 0 &&
        cgroup_write(memory, "memory.memsw.limit_in_bytes", text, error) < 0)
        return -1;
    /* What TCP holds is counted apart, and on top. */
    snprintf(text, sizeof(text), "%" PRId64, limits->memory_bytes / TCP_PART);
    if (cgroup_write_if_there(memory, "memory.kmem.tcp.limit_in_bytes", text, error) < 0)
        return -1;
    snprintf(text, sizeof(text), "%" PRId64, limits->pids_max);
    if (cgroup_write(cgroup->folders[CGROUP_PIDS], "pids.max", text, error) < 0)
        return -1;
    return v1_set_io(cgroup, limits, error);
}

static int64_t at_least_0(int64_t value)
{
    return value < 0 ? 0 : value;
}

static void v1_read_usage(const struct cgroup *cgroup, struct cgroup_usage *out_usage)
{
    const char *memory = cgroup->folders[CGROUP_MEMORY];
    const int64_t cpu_ns =
        cgroup_read_number(cgroup->folders[CGROUP_CPUACCT], "cpuacct.usage", NULL);
    out_usage->cpu_ms = at_least_0(cpu_ns) / 1000000;
    out_usage->memory_bytes = at_least_0(cgroup_read_number(memory, "memory.usage_in_bytes", NULL));
    out_usage->memory_peak_bytes =
        at_least_0(cgroup_read_number(memory, "memory.max_usage_in_bytes", NULL));
    out_usage->out_of_memory_count =
        at_least_0(cgroup_read_number(memory, "memory.oom_control", "oom_kill"));
}

static int v1_set_frozen(const struct cgroup *cgroup, bool is_frozen, struct error *error)
{
    return cgroup_write(cgroup->folders[CGROUP_FREEZER], "freezer.state",
                        is_frozen ? "FROZEN" : "THAWED", error);
}

static void v1_kill(const struct cgroup *cgroup)
{
    /* Frozen processes cannot fork while the list is read; they die when thawed. A group that
     * cannot be frozen is killed all the same, and cgroup_remove comes back until it is empty. */
    struct error ignored;
    const int frozen = v1_set_frozen(cgroup, true, &ignored);
    cgroup_signal_all(cgroup->folders[CGROUP_PIDS], SIGKILL);
    cgroup_signal_all(cgroup->folders[CGROUP_FREEZER], SIGKILL);
    if (frozen == 0 && v1_set_frozen(cgroup, false, &ignored) < 0)
        return;
}

const struct cgroup_ops cgroup_v1_ops = {
    .set_limits = v1_set_limits,
    .set_cpu = v1_set_cpu,
    .read_usage = v1_read_usage,
    .set_frozen = v1_set_frozen,
    .kill = v1_kill,
};
