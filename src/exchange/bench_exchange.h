/*
 * Bench of the exchange: a parameter server and workers that push and pull vectors as fast as they
 * go, over TCP on loopback, all in this process.
 *
 * The policy is tap and nothing is compressed: a worker pushes its whole vector, waits for the
 * whole model and pushes again. What a worker and the server do with the numbers is part of it: the
 * difference to the model before, the check of every value, the sum, the model taken over.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum bench_exchange_way {
    BENCH_EXCHANGE_SEALED, /* what jobs use: records of our own after the handshake */
    BENCH_EXCHANGE_TLS,    /* TLS records */
    BENCH_EXCHANGE_PLAIN,  /* after the handshake nothing is encrypted */
    BENCH_EXCHANGE_WAY_COUNT,
};

enum { BENCH_EXCHANGE_WORKERS_MAX = 16 };

struct bench_exchange_options {
    enum bench_exchange_way way;
    size_t float_count; /* of the vector */
    uint32_t worker_count;
    int64_t round_ms; /* then each worker ends the exchange at hand */
};

struct bench_exchange_result {
    uint64_t exchanges;  /* pushes answered, of all workers */
    double bytes_per_s;  /* of floats pushed and pulled */
    double cpu_s_per_gb; /* of the process: both ends, all threads, the kernel's part too */
};

MUST_CHECK int bench_exchange_run(const struct bench_exchange_options *options,
                                  struct bench_exchange_result *out_result, struct error *error);
