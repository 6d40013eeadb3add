/*
 * Recommend world: the machines and jobs that `souk sim recommend` draws its cases from.
 *
 * Kinds of machines are named as they are on offer; what they say of themselves (speed, price,
 * link) is what the recommender sees. How fast a kind really is on a job differs from that, by the
 * kind and by the kind and the job; so do how well a job uses cores, how much of a step is
 * overhead, how large its model is and how much its steps jitter. All of it follows from the seed.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "recommend/fit.h"
#include "sim/sync_engine.h"
#include "train/dataset.h"

#include <stdint.h>

enum { WORLD_KINDS = 14, WORLD_FAMILIES_MAX = 64 };

/* A job whatever its batch, rate, policy and machines. */
struct world_family {
    struct signature signature; /* batch, rate and policy are those of its first run */
    struct model_spec spec;
    float *inputs;
    int32_t *labels;
    struct dataset *train, *test;
    double work_s;     /* of one sample on the reference core */
    double overhead_s; /* of a step there, whatever its batch */
    double efficiency; /* power of the number of cores */
    double jitter;     /* deviation of the logarithm of each step's time */
    double size;       /* bytes sent for each of the model's */
    double target_loss;
    double kind_factors[WORLD_KINDS];
};

struct world {
    uint64_t seed;
    struct candidate kinds[WORLD_KINDS];
    double kind_factors[WORLD_KINDS]; /* on every job */
    struct world_family *families;    /* [family_count] */
    uint32_t family_count;
};

MUST_CHECK int world_open(uint64_t seed, uint32_t family_count, struct world **out_world,
                          struct error *error);
void world_free(struct world *world); /* NULL is fine */
DEFINE_AUTO(world);

/* What one step of this batch really takes. */
double world_step_s(const struct world *world, const struct world_family *family, uint32_t kind,
                    uint32_t batch);
