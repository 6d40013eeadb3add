/*
 * Probe: what this machine is: cores, memory, disk, speed, graphics, what is installed, and for
 * heartbeats what is used now.
 */
#pragma once

#include "base/error.h"
#include "market/offer.h" /* enum offer_network */
#include "peer/probe_gpu.h"

#include <stddef.h>
#include <stdint.h>

/* A core of the reference speed has the weight 1000; the market takes no less and no more than the
 * two bounds. */
enum {
    PROBE_REFERENCE_GFLOPS = 100,
    PROBE_SPEED_WEIGHT_MIN = 50,
    PROBE_SPEED_WEIGHT_MAX = 20000,
    PROBE_LABELS_SIZE = 256,
};

struct json_writer;
struct machine_probe;

struct probe_options {
    const char *root;      /* "" on a machine; tests bring their own files */
    const char *state_dir; /* whose disk is lent */
    const char *nvml;      /* the library to ask for graphics; NULL: the driver's */
    /* The owner's own labels, and those never shown. */
    const char *const *labels;
    size_t label_count;
    const char *const *hidden;
    size_t hidden_count;
    /* Of this machine, found before: its speeds are taken over and not measured. NULL: measure. */
    const struct machine_probe *known;
};

struct machine_probe {
    int64_t cores_milli; /* this process may use */
    int64_t ram_bytes;
    int64_t disk_bytes; /* free, where the state folder is */
    int64_t speed_weight_milli;
    int64_t ram_bytes_per_s; /* one core copying; 0: not measured */
    double gflops;           /* one core, single precision */
    char cpu_model[96];
    char architecture[32];
    char kernel[96];
    struct gpus_probe gpus;
    char labels[PROBE_LABELS_SIZE]; /* "x86_64,avx2,python3-torch" */
    size_t label_overflow;          /* that did not fit */
};

/* Takes about 80 ms of CPU time, on slow machines more. */
MUST_CHECK int machine_probe_read(const struct probe_options *options,
                                  struct machine_probe *out_probe, struct error *error);

/* What the owner lets out: the market learns of no more. */
struct probe_lent {
    int64_t cores_milli, ram_bytes, disk_bytes;
    enum offer_network network;
    bool has_images;
    enum offer_install install;
    bool forbids_programs;
};
/* The `probe` object of the market's API. */
void machine_probe_write(const struct machine_probe *probe, const struct probe_lent *lent,
                         struct json_writer *writer);

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
