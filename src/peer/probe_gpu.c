#include "peer/probe_gpu.h"

#include "base/text.h"
#include "peer/nvml.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A name from outside: of printable characters, or not at all. */
static void make_plain(char *text)
{
    for (char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

static bool is_word(struct text word, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (text_equal(word, text_of(words[i])))
            return true;
    return false;
}

/* The next word, and what is behind it. */
static struct text take_word(struct text *rest)
{
    struct text word = text_trim(*rest), behind = {0};
    text_cut(word, ' ', &word, &behind);
    *rest = behind;
    return word;
}

void gpu_model_of_name(const char *name, char out_model[GPU_MODEL_SIZE])
{
    static const char *const makers[] = {"NVIDIA", "Tesla", "Quadro", "GeForce", NULL};
    static const char *const series[] = {"RTX", "GTX", "TITAN", NULL};
    struct text rest = text_of(name);
    struct text word = take_word(&rest);
    while (rest.size && is_word(word, makers))
        word = take_word(&rest);
    const struct text number = is_word(word, series) ? take_word(&rest) : (struct text){0};
    struct text model = word, kind = {0};
    text_cut(word, '-', &model, &kind); /* A100-SXM4-80GB */
    snprintf(out_model, GPU_MODEL_SIZE, TEXT_FORMAT TEXT_FORMAT, TEXT_ARGS(model),
             TEXT_ARGS(number));
}

static bool read_gpu(const struct nvml *nvml, unsigned index, struct gpu_probe *out_gpu)
{
    nvml_device device = NULL;
    struct nvml_memory memory = {0};
    struct nvml_utilization utilization = {0};
    unsigned temperature = 0;
    struct gpu_probe gpu = {.load_percent = -1};
    if (nvml->device_get_handle_by_index(index, &device) != NVML_SUCCESS ||
        nvml->device_get_name(device, gpu.name, sizeof(gpu.name)) != NVML_SUCCESS ||
        nvml->device_get_minor_number(device, &gpu.minor) != NVML_SUCCESS ||
        gpu.minor >= GPUS_PROBE_MAX ||
        nvml->device_get_memory_info(device, &memory) != NVML_SUCCESS)
        return false; /* fallen off the bus, or not ours to see */
    gpu.name[sizeof(gpu.name) - 1] = '\0';
    make_plain(gpu.name);
    gpu_model_of_name(gpu.name, gpu.model);
    gpu.ram_bytes = (int64_t)memory.total;
    if (nvml->device_get_temperature(device, NVML_TEMPERATURE_GPU, &temperature) == NVML_SUCCESS)
        gpu.temperature_c = (int32_t)temperature;
    if (nvml->device_get_utilization_rates(device, &utilization) == NVML_SUCCESS)
        gpu.load_percent = (int32_t)utilization.gpu;
    *out_gpu = gpu;
    return true;
}

static void read_gpus(const struct nvml *nvml, struct gpus_probe *gpus)
{
    unsigned count = 0;
    if (nvml->device_get_count(&count) != NVML_SUCCESS)
        count = 0;
    for (unsigned i = 0; i < count && gpus->count < GPUS_PROBE_MAX; i++)
        if (read_gpu(nvml, i, &gpus->items[gpus->count]))
            gpus->count++;
    int version = 0;
    if (nvml->system_get_cuda_driver_version(&version) == NVML_SUCCESS && gpus->count > 0)
        gpus->cuda_version = version;
    if (nvml->system_get_driver_version(gpus->driver, sizeof(gpus->driver)) != NVML_SUCCESS)
        gpus->driver[0] = '\0';
    gpus->driver[sizeof(gpus->driver) - 1] = '\0';
    make_plain(gpus->driver);
    if (gpus->count == 0)
        snprintf(gpus->reason, sizeof(gpus->reason), "the driver knows of no GPU");
}

void gpus_probe_read(const char *nvml_file, struct gpus_probe *out_gpus)
{
    struct nvml nvml;
    struct error error;
    struct gpus_probe gpus = {0};
    if (nvml_load(nvml_file, &nvml, &error) < 0) {
        snprintf(gpus.reason, sizeof(gpus.reason), "no NVIDIA driver");
    } else {
        const int result = nvml_start(&nvml);
        if (result == NVML_SUCCESS) {
            read_gpus(&nvml, &gpus);
            nvml.shutdown();
        } else {
            snprintf(gpus.reason, sizeof(gpus.reason), "the NVIDIA driver does not answer: %.100s",
                     nvml.error_string(result));
        }
    }
    *out_gpus = gpus;
}

struct gpu_group gpus_probe_largest(const struct gpus_probe *gpus)
{
    struct gpu_group largest = {.model = ""};
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu_group group = {.model = gpus->items[i].model,
                                  .ram_bytes = gpus->items[i].ram_bytes};
        for (size_t j = 0; j < gpus->count; j++) {
            if (strcmp(gpus->items[j].model, group.model) != 0)
                continue;
            group.count++;
            group.minors |= 1u << gpus->items[j].minor;
            if (gpus->items[j].ram_bytes < group.ram_bytes)
                group.ram_bytes = gpus->items[j].ram_bytes;
        }
        if (group.count > largest.count)
            largest = group;
    }
    return largest;
}
