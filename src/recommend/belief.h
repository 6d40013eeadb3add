/*
 * Belief: some unknown numbers, what is expected of them and how sure that is; each observation of
 * a weighted sum of them moves the expectation by its weight (linear, Gaussian).
 */
#pragma once

#include <stdint.h>

enum { BELIEF_MAX = 96 };

/* A number with its uncertainty; of what is positive, the logarithm. */
struct estimate {
    double mean;
    double variance;
};

struct belief {
    uint32_t count;
    double mean[BELIEF_MAX];
    double covariance[BELIEF_MAX][BELIEF_MAX];
};

struct belief_term {
    uint32_t index;
    double factor;
};

/* One more number, independent of those there are; there is room. */
uint32_t belief_add(struct belief *belief, struct estimate prior);

/* The logarithm of how likely this value was. `variance` is the observation's own, > 0. */
double belief_observe(struct belief *belief, const struct belief_term *terms, uint32_t count,
                      double value, double variance);

struct estimate belief_estimate(const struct belief *belief, const struct belief_term *terms,
                                uint32_t count);
