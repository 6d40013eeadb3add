/*
 * Nvml: the functions of the NVIDIA driver's own library that are used here, loaded when asked for.
 * As in NVIDIA's nvml.h, which is not needed to build.
 */
#pragma once

#include "base/error.h"

enum {
    NVML_SUCCESS = 0,
    NVML_NOT_FOUND = 6, /* of samples: nothing ran since */
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_TEMPERATURE_GPU = 0,
};
typedef void *nvml_device;

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};

/* What one process made of a GPU lately; each in percent of it. */
struct nvml_process_sample {
    unsigned pid; /* as the system has it, outside all sandboxes */
    unsigned long long time_us;
    unsigned multiprocessors, memory, encoder, decoder;
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int result);
    int (*device_get_count)(unsigned *count);
    int (*device_get_handle_by_index)(unsigned index, nvml_device *device);
    int (*device_get_name)(nvml_device device, char *name, unsigned size);
    int (*device_get_minor_number)(nvml_device device, unsigned *minor);
    int (*device_get_memory_info)(nvml_device device, struct nvml_memory *memory);
    int (*device_get_temperature)(nvml_device device, int sensor, unsigned *temperature);
    int (*device_get_utilization_rates)(nvml_device device, struct nvml_utilization *utilization);
    int (*device_get_process_utilization)(nvml_device device, struct nvml_process_sample *samples,
                                          unsigned *count, unsigned long long since_us);
    int (*system_get_driver_version)(char *version, unsigned size);
    int (*system_get_cuda_driver_version)(int *version);
};

/* `file` NULL: the driver's. UNAVAILABLE on a machine without it, which is fine. */
MUST_CHECK int nvml_load(const char *file, struct nvml *out_nvml, struct error *error);

/* nvmlInit: NVML_SUCCESS or another of its answers. */
int nvml_start(const struct nvml *nvml);
