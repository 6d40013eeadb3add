/* What this machine is and can enforce, for people. */
#include "base/units.h"
#include "net/tun.h"
#include "peer/cache.h"
#include "peer/owner.h"
#include "peer/peer_internal.h"
#include "peer/watch.h"
#include "sandbox/sandbox.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_machine(const struct machine_probe *probe, struct buffer *out)
{
    char ram[UNITS_TEXT_SIZE], disk[UNITS_TEXT_SIZE];
    buffer_append_format(out, "machine: %s, %s, %s\n", probe->cpu_model, probe->architecture,
                         probe->kernel);
    buffer_append_format(out, "resources: %" PRId64 " cores, %s memory, %s disk free\n",
                         probe->cores_milli / 1000, units_format_bytes(probe->ram_bytes, ram),
                         units_format_bytes(probe->disk_bytes, disk));
    buffer_append_format(out, "speed: %.1f GFLOP/s a core, weight %g\n", probe->gflops,
                         (double)probe->speed_weight_milli / 1000);
    buffer_append_format(out, "memory speed: %.1f GB/s copied by a core\n",
                         (double)probe->ram_bytes_per_s / 1e9);
    buffer_append_format(out, "labels: %s", probe->labels);
    if (probe->label_overflow)
        buffer_append_format(out, " (%zu more do not fit: hide some with --hide-labels)",
                             probe->label_overflow);
    buffer_append_string(out, "\n");
}

static void write_gpus(const struct gpus_probe *gpus, struct buffer *out)
{
    if (gpus->count == 0) {
        buffer_append_format(out, "gpus: none: %s\n", gpus->reason);
        return;
    }
    buffer_append_format(out, "gpus: %zu, driver %s, CUDA up to %d.%d\n", gpus->count, gpus->driver,
                         gpus->cuda_version / 1000, gpus->cuda_version % 1000 / 10);
    for (size_t i = 0; i < gpus->count; i++) {
        const struct gpu_probe *gpu = &gpus->items[i];
        char ram[UNITS_TEXT_SIZE];
        buffer_append_format(out, "gpu %zu: %s, %s", i, gpu->name,
                             units_format_bytes(gpu->ram_bytes, ram));
        if (gpu->temperature_c)
            buffer_append_format(out, ", %" PRId32 " °C", gpu->temperature_c);
        if (gpu->load_percent >= 0)
            buffer_append_format(out, ", %" PRId32 " %% busy", gpu->load_percent);
        buffer_append_string(out, "\n");
    }
}

static void write_power(const char *root, struct buffer *out)
{
    struct watch_power power;
    watch_power_read(root, &power);
    buffer_append_format(out, "power: %s", power.is_on_battery == 1 ? "battery" : "mains");
    if (power.battery_percent != GUARD_UNKNOWN)
        buffer_append_format(out, ", battery at %" PRId64 " %%", power.battery_percent);
    if (power.temperature_milli > 0)
        buffer_append_format(out, "\ntemperature: %" PRId64 " °C\n",
                             power.temperature_milli / 1000);
    else
        buffer_append_string(out, "\ntemperature: no sensor\n");
}

/* What packages of jobs are installed by: Debian's pip, or one in the folder of Python's own. */
static void write_packages(struct buffer *out)
{
    char python[PATH_MAX], own[PATH_MAX];
    const bool has_python = realpath("/usr/bin/python3", python) != NULL;
    snprintf(own, sizeof(own), "/usr/lib/%.255s/site-packages/pip/__main__.py",
             has_python ? strrchr(python, '/') + 1 : "python3");
    const bool has_pip = access("/usr/lib/python3/dist-packages/pip/__main__.py", R_OK) == 0 ||
                         access(own, R_OK) == 0;
    if (has_python && has_pip)
        buffer_append_format(out, "packages: ok, %s with pip\n", python);
    else
        buffer_append_format(out,
                             "packages: missing: jobs that bring wheels cannot run: no %s (Debian: "
                             "apt install python3-pip)\n",
                             has_python ? "pip" : "/usr/bin/python3");
}

static int write_cache(const char *state_dir, struct buffer *out, struct error *error)
{
    char used[UNITS_TEXT_SIZE];
    uint64_t bytes = 0;
    if (cache_measure(state_dir, &bytes, error) < 0)
        return -1;
    buffer_append_format(out, "cache: %s of data kept for later leases\n",
                         units_format_bytes((int64_t)bytes, used));
    return buffer_check(out, error);
}

static void write_job_network(struct buffer *out)
{
    struct error missing;
    if (tun_check(&missing) < 0)
        buffer_append_format(out, "job network: missing: jobs with a network cannot run: %s\n",
                             missing.message);
    else
        buffer_append_string(out, "job network: ok\n");
}

int peer_doctor(const struct peer_options *options, struct buffer *out, struct error *error)
{
    const struct probe_options probing = peer_probe_options(options);
    struct machine_probe probe;
    struct error sandbox_error;
    AUTO(sandbox_host) struct sandbox_host *sandboxes = NULL;
    if (peer_make_path(options->state_dir, error) < 0 ||
        machine_probe_read(&probing, &probe, error) < 0)
        return -1;
    write_machine(&probe, out);
    write_gpus(&probe.gpus, out);
    write_power(peer_root(options), out);
    if (sandbox_host_open(options->state_dir, options->program, &sandboxes, &sandbox_error) < 0)
        buffer_append_format(out, "sandbox: missing: %s\n", sandbox_error.message);
    else
        sandbox_doctor(sandboxes, out);
    write_job_network(out);
    write_packages(out);
    owner_doctor(peer_root(options), options->display, out);
    return write_cache(options->state_dir, out, error);
}
