/*
 * Recommend bench: the CPU time of one recommendation over a cloud's whole list of types.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct recommend_bench_options {
    uint32_t type_count; /* made up in ladders of sizes and prices, as clouds have them */
    uint32_t worker_max;
    uint32_t policy_count; /* weighed at once, at most RECOMMEND_BENCH_POLICIES */
    uint32_t rounds;       /* of which the median counts */
};
enum { RECOMMEND_BENCH_POLICIES = 3, RECOMMEND_BENCH_ROUNDS_MAX = 100 };

struct recommend_bench_result {
    double search_cpu_ms; /* the frontier and the choice */
    double fit_cpu_ms;    /* from forty observations, of all policies */
    uint64_t considered;  /* clusters */
    uint32_t frontier;    /* choices on it */
};

MUST_CHECK int recommend_bench(const struct recommend_bench_options *options,
                               struct recommend_bench_result *out_result, struct error *error);
