/*
 * Random: seeded and reproducible (xoshiro256**). Never for secrets: those come from libsodium.
 */
#pragma once

#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_init(struct random *random, uint64_t seed);
uint64_t random_u64(struct random *random);
/* Evenly from 0 to bound - 1; bound > 0. */
uint64_t random_below(struct random *random, uint64_t bound);
/* Evenly in [0, 1). */
double random_unit(struct random *random);
/* Mean 0, deviation 1. */
double random_normal(struct random *random);
/* Shuffles `count` indices in place. */
void random_shuffle(struct random *random, uint32_t *indices, uint32_t count);
