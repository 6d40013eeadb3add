/*
 * Probe: what this machine is: cores, memory, disk, and how fast one core multiplies and adds.
 *
 * The speed is measured by a short loop of fused multiply-adds in the widest vectors the processor
 * has (AVX-512, AVX2 with FMA, or what the compiler takes by default), because a training step is
 * mostly that. It touches no maths library.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* A core of this speed has the weight 1000. */
enum { PROBE_REFERENCE_GFLOPS = 100, PROBE_SPEED_WEIGHT_MAX = 20000 };

struct machine_probe {
    int64_t cores_milli; /* this process may use */
    int64_t ram_bytes;
    int64_t disk_bytes; /* free, where the state folder is */
    int64_t speed_weight_milli;
    double gflops; /* one core, single precision */
    char cpu_model[96];
    char architecture[32];
    char kernel[96];
};

/* Takes 25 ms of CPU time, on slow machines a little more. */
MUST_CHECK int machine_probe_read(const char *state_dir, struct machine_probe *out_probe,
                                  struct error *error);

/* For heartbeats: what is used now. Keeps the counters of the call before. */
struct load_probe {
    uint64_t busy_ticks;
    uint64_t read_ns;
};

struct machine_load {
    uint32_t load_milli; /* thousandths of a core, since the call before */
    uint64_t free_ram_bytes;
};

void load_probe_read(struct load_probe *probe, int64_t now_ns, struct machine_load *out_load);
