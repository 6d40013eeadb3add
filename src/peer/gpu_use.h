/*
 * GPU use: how busy the GPUs that leases have are, and by whose doing; by the driver's library.
 *
 * The library takes tens of megabytes, so it is started with the first lease that has a GPU and
 * ended with the last. Where the driver does not tell processes apart, all load of a GPU that one
 * lease has whole is that lease's, and nothing is known of others.
 */
#pragma once

#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gpu_use;

/* `nvml_file` NULL: the driver's library; is kept. */
struct gpu_use *gpu_use_new(const char *nvml_file);
void gpu_use_free(struct gpu_use *use); /* NULL is fine */
DEFINE_AUTO(gpu_use);

/* A lease with GPUs. */
struct gpu_holder {
    uint32_t gpus;   /* bits: 1 << the N of /dev/nvidiaN */
    bool is_whole;   /* no other lease has a part of them */
    pid_t keeper;    /* its processes descend from this one */
    int64_t used_us; /* grows by what they used since the last call, in time of a whole GPU */
};

/*
 * Once or twice a second while there are holders; none: lets the library go. What a call finds is
 * taken to hold since the last one, but for no longer than three seconds. Returns the share of the
 * busiest of the holders' GPUs that other programs use, in thousandths; -1: not known.
 */
int64_t gpu_use_read(struct gpu_use *use, struct gpu_holder *holders, size_t count, int64_t now_ns);
