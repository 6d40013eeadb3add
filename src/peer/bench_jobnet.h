/*
 * Bench of the job network: TCP between two sandboxes, their packets carried in turn by
 *
 *   jobnet  packet switches and an encrypted link, one process at each end
 *   bare    bench_jobnet_bare.h: the same two processes and connection, with nothing around them
 *   copy    one process that copies from one device to the other, as no two machines could
 *   plain   copy again, on devices as the kernel makes them: 1500 bytes, packet by packet
 *
 * Sandboxes and the programs in them are the same each time, the devices too, but for `plain`.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_jobnet_options {
    const char *state_dir; /* for the sandboxes' notes; a folder of its own, of mode 0700 */
    int64_t round_ms;
    uint64_t rounds;
    int mtu;
    bool has_offload;
};

struct bench_jobnet_figures {
    double bytes_per_s;
    double rtt_us;               /* median of one byte there and back by TCP */
    double carrier_cpu_s_per_gb; /* of whoever carries the packets, both ends together */
    double end_cpu_s_per_gb;     /* of the programs in the sandboxes */
};

enum bench_jobnet_way {
    BENCH_JOBNET_JOBNET,
    BENCH_JOBNET_BARE,
    BENCH_JOBNET_COPY,
    BENCH_JOBNET_PLAIN,
    BENCH_JOBNET_WAY_COUNT,
};

struct bench_jobnet_result {
    struct bench_jobnet_figures ways[BENCH_JOBNET_WAY_COUNT];
};

/* Calls `on_round` once for each. */
MUST_CHECK int bench_jobnet_run(const struct bench_jobnet_options *options,
                                void (*on_round)(void *context,
                                                 const struct bench_jobnet_result *result),
                                void *context, struct error *error);

/* What runs in the sandboxes: `which` is "sink" or "source". */
MUST_CHECK int bench_jobnet_end(const char *which, int64_t round_ms, struct error *error);
