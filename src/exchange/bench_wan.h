/*
 * Bench of training over a wide-area network: how much of their computing workers keep when a slow,
 * long line lies between them and their parameter server.
 *
 * Parameter servers and their workers, each a process in a network namespace of its own, talk over
 * a bench wire (exchange/bench_wire.h). First all workers compute alone for a while, then for the
 * round with the exchange. A step changes a sixteenth of the parameters and takes `step_ms` in all,
 * the rest of it on a timer: so more workers than cores compute at full speed, as on machines of
 * their own. What the exchange does between steps on the training thread delays the next step, as
 * it would there; what the link's thread computes is taken off as if it had been taken from the
 * training thread's core.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "exchange/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WAN_WORKERS_MAX = 32 };

struct bench_wan_options {
    uint32_t worker_count;
    uint32_t server_count;     /* that the model is split among */
    size_t float_count;        /* of the model */
    double line_bytes_per_s;   /* of each worker, each way */
    double server_bytes_per_s; /* of a parameter server's line, each way; 0: no limit */
    int64_t rtt_ms;
    int64_t step_ms;
    int64_t alone_ms, round_ms;
    struct text policy;
    bool is_compress_auto;
    enum codec codec; /* else */
};

struct bench_wan_result {
    double compute_kept;         /* of what the workers compute alone, the link's CPU taken off */
    double compute_kept_settled; /* in the second half of the round */
    double steps_kept;           /* the same over the whole round, the CPU not taken off */
    double waiting_share;        /* of the round, on the training threads */
    double link_cpu_share;       /* of one core, by a worker's link thread */
    double server_cpu_share;     /* of one core, by the parameter server */
    double pushes;               /* of a worker on the average */
    double steps_per_push;
    double commit_ms;            /* of the last pushes, mean over the workers */
    double bytes_per_float;      /* of the pushes, all together */
    double last_bytes_per_float; /* by the codec in force at the end, mean over the workers */
    double line_share;           /* of what the narrowest line could have carried both ways */
    double packets_lost;         /* of those sent, as a share */
};

/* Needs the right to make network namespaces and TUN devices: UNAVAILABLE says what is missing. */
MUST_CHECK int bench_wan_run(const struct bench_wan_options *options,
                             struct bench_wan_result *out_result, struct error *error);
