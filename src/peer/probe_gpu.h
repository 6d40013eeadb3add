/*
 * Probe, graphics: NVIDIA's, by the driver's own library (NVML), loaded when asked for. A machine
 * without the library has none, and that is fine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GPUS_PROBE_MAX = 16, GPU_MODEL_SIZE = 64 };

struct gpu_probe {
    char name[GPU_MODEL_SIZE];  /* as the driver has it: "NVIDIA H100 80GB HBM3" */
    char model[GPU_MODEL_SIZE]; /* as people ask for it: "H100" */
    int64_t ram_bytes;
    int32_t temperature_c; /* 0: not known */
    int32_t load_percent;  /* -1: not known */
    uint32_t minor;        /* the N of /dev/nvidiaN */
};

struct gpus_probe {
    struct gpu_probe items[GPUS_PROBE_MAX];
    size_t count;
    int32_t cuda_version; /* 12040 is 12.4: the newest the driver runs; 0: none */
    char driver[80];
    char reason[160]; /* why there are none; empty when there are */
};

/* "Tesla T4" is T4, "NVIDIA A100-SXM4-80GB" is A100, "NVIDIA GeForce RTX 4090" is RTX4090: the
 * names that job files have. */
void gpu_model_of_name(const char *name, char out_model[GPU_MODEL_SIZE]);

void gpus_probe_read(const char *nvml, struct gpus_probe *out_gpus);

/* Of one kind, the most there are: an offer is of one kind. */
struct gpu_group {
    const char *model; /* "" when there are none */
    int64_t ram_bytes; /* of the one with the least */
    size_t count;
    uint32_t minors; /* bits: 1 << the N of /dev/nvidiaN */
};
struct gpu_group gpus_probe_largest(const struct gpus_probe *gpus);
