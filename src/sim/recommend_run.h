/*
 * Recommend run: one job of a world on one cluster, real gradients in virtual time, and what its
 * profile tells.
 */
#pragma once

#include "recommend/predict.h"
#include "sim/recommend_world.h"

#include <stdbool.h>

struct world_run {
    uint32_t family;
    uint32_t batch;
    double rate;
    const char *policy;
    uint32_t counts[WORLD_KINDS]; /* workers of each kind */
    struct server_place server;
    double samples;     /* 0: until the target */
    double target_loss; /* 0: none, only samples */
    bool has_curve;     /* loss is measured, whether or not there is a target */
    uint64_t seed;
};

struct world_outcome {
    bool is_done;      /* all samples, or the target reached */
    double seconds;    /* with the start */
    double cost_micro; /* of all machines, from their start */
    struct observation observation;
};

MUST_CHECK int world_run(const struct world *world, const struct world_run *run,
                         struct world_outcome *out_outcome, struct error *error);

/* Many, on threads; outcomes[count]. The same whatever the number of threads. */
MUST_CHECK int world_run_all(const struct world *world, const struct world_run *runs, size_t count,
                             uint32_t thread_count, struct world_outcome *outcomes,
                             struct error *error);

struct signature world_signature(const struct world *world, const struct world_run *run);
