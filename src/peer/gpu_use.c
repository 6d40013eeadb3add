#include "peer/gpu_use.h"

#include "base/assert.h"
#include "base/log.h"
#include "peer/nvml.h"
#include "peer/probe_gpu.h"
#include "sandbox/process_tree.h"

#include <stdlib.h>

enum {
    PROCESSES_MAX = 256, /* on one GPU */
    ANCESTORS_MAX = 64,
    SPAN_US_MAX = 3000000, /* after a sleep of the machine nobody used anything */
    TRY_AGAIN_MS = 60000,
};

struct device {
    nvml_device handle;
    uint32_t bit;
    unsigned long long seen_us; /* the newest sample so far */
};

struct gpu_use {
    const char *nvml_file;
    struct nvml nvml;
    bool is_open;
    bool has_read;
    int64_t read_ns;
    int64_t refused_ns; /* when opening failed last; 0: never */
    struct device devices[GPUS_PROBE_MAX];
    size_t device_count;
};

struct gpu_use *gpu_use_new(const char *nvml_file)
{
    struct gpu_use *use = calloc(1, sizeof(*use));
    ASSERT(use);
    use->nvml_file = nvml_file;
    return use;
}

static void gpu_use_close(struct gpu_use *use)
{
    if (use->is_open)
        use->nvml.shutdown();
    use->is_open = use->has_read = false;
    use->device_count = 0;
}

void gpu_use_free(struct gpu_use *use)
{
    if (!use)
        return;
    gpu_use_close(use);
    free(use);
}

static void find_devices(struct gpu_use *use)
{
    unsigned count = 0;
    if (use->nvml.device_get_count(&count) != NVML_SUCCESS)
        count = 0;
    for (unsigned i = 0; i < count && use->device_count < GPUS_PROBE_MAX; i++) {
        nvml_device handle = NULL;
        unsigned minor = 0;
        if (use->nvml.device_get_handle_by_index(i, &handle) == NVML_SUCCESS &&
            use->nvml.device_get_minor_number(handle, &minor) == NVML_SUCCESS &&
            minor < GPUS_PROBE_MAX)
            use->devices[use->device_count++] = (struct device){handle, 1u << minor, 0};
    }
}

/* A driver that does not answer now is asked again, but not at every look. */
static bool gpu_use_open(struct gpu_use *use, int64_t now_ns)
{
    struct error error;
    if (use->is_open)
        return true;
    if (use->refused_ns && now_ns - use->refused_ns < TRY_AGAIN_MS * INT64_C(1000000))
        return false;
    int result = nvml_load(use->nvml_file, &use->nvml, &error);
    if (result == 0) {
        const int answer = nvml_start(&use->nvml);
        if (answer != NVML_SUCCESS)
            result = error_set(&error, ERROR_UNAVAILABLE, "%.100s", use->nvml.error_string(answer));
    }
    if (result < 0) {
        log_event(LOG_WARN, "gpu_use_unknown", "error=\"%s\"", error.message);
        use->refused_ns = now_ns;
        return false;
    }
    use->is_open = true;
    find_devices(use);
    return true;
}

/* Whose process this is; NULL: of no lease that has the GPU. */
static struct gpu_holder *holder_of(pid_t pid, uint32_t bit, struct gpu_holder *holders,
                                    size_t count)
{
    struct process_info info;
    struct error gone;
    for (int i = 0; pid > 1 && i < ANCESTORS_MAX; i++) {
        for (size_t j = 0; j < count; j++)
            if (holders[j].keeper == pid)
                return holders[j].gpus & bit ? &holders[j] : NULL;
        if (process_read(pid, &info, &gone) < 0)
            return NULL;
        pid = info.parent;
    }
    return NULL;
}

static unsigned at_most_100(unsigned percent)
{
    return percent < 100 ? percent : 100;
}

/* By process. False: this driver, or this user, cannot. */
static bool count_processes(struct gpu_use *use, struct device *device, struct gpu_holder *holders,
                            size_t count, int64_t span_us, int64_t *out_others_milli)
{
    struct nvml_process_sample samples[PROCESSES_MAX];
    unsigned sample_count = PROCESSES_MAX;
    const int result = use->nvml.device_get_process_utilization(device->handle, samples,
                                                                &sample_count, device->seen_us);
    if (result == NVML_NOT_FOUND || result == NVML_INSUFFICIENT_SIZE)
        sample_count = 0; /* nobody; or more than anybody has */
    else if (result != NVML_SUCCESS)
        return false;
    int64_t others = 0;
    unsigned long long newest_us = device->seen_us;
    for (unsigned i = 0; i < sample_count && i < PROCESSES_MAX; i++) {
        const unsigned percent = at_most_100(samples[i].multiprocessors);
        if (samples[i].time_us > newest_us)
            newest_us = samples[i].time_us;
        struct gpu_holder *holder = holder_of((pid_t)samples[i].pid, device->bit, holders, count);
        if (holder)
            holder->used_us += span_us * percent / 100;
        else
            others += percent;
    }
    device->seen_us = newest_us;
    *out_others_milli = others > 100 ? 1000 : others * 10;
    return true;
}

static void count_device(struct gpu_use *use, const struct device *device,
                         struct gpu_holder *holders, size_t count, int64_t span_us)
{
    struct nvml_utilization utilization = {0};
    if (use->nvml.device_get_utilization_rates(device->handle, &utilization) != NVML_SUCCESS)
        return;
    for (size_t i = 0; i < count; i++)
        if (holders[i].gpus & device->bit && holders[i].is_whole)
            holders[i].used_us += span_us * at_most_100(utilization.gpu) / 100;
}

int64_t gpu_use_read(struct gpu_use *use, struct gpu_holder *holders, size_t count, int64_t now_ns)
{
    if (count == 0) {
        gpu_use_close(use);
        return -1;
    }
    if (!gpu_use_open(use, now_ns))
        return -1;
    int64_t span_us = use->has_read ? (now_ns - use->read_ns) / 1000 : 0;
    if (span_us > SPAN_US_MAX)
        span_us = SPAN_US_MAX;
    use->has_read = true;
    use->read_ns = now_ns;
    uint32_t leased = 0;
    for (size_t i = 0; i < count; i++)
        leased |= holders[i].gpus;
    int64_t busiest_milli = -1;
    for (size_t i = 0; i < use->device_count; i++) {
        struct device *device = &use->devices[i];
        int64_t others_milli = -1;
        if (!(leased & device->bit))
            continue;
        if (!count_processes(use, device, holders, count, span_us, &others_milli))
            count_device(use, device, holders, count, span_us);
        if (others_milli > busiest_milli)
            busiest_milli = others_milli;
    }
    return busiest_milli;
}
