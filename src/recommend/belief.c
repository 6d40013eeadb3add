#include "recommend/belief.h"

#include "base/assert.h"

#include <math.h>

uint32_t belief_add(struct belief *belief, struct estimate prior)
{
    ASSERT(belief->count < BELIEF_MAX);
    const uint32_t index = belief->count++;
    belief->mean[index] = prior.mean;
    for (uint32_t i = 0; i < index; i++)
        belief->covariance[i][index] = belief->covariance[index][i] = 0;
    belief->covariance[index][index] = prior.variance;
    return index;
}

struct estimate belief_estimate(const struct belief *belief, const struct belief_term *terms,
                                uint32_t count)
{
    struct estimate sum = {0};
    for (uint32_t i = 0; i < count; i++) {
        const double *row = belief->covariance[terms[i].index];
        sum.mean += terms[i].factor * belief->mean[terms[i].index];
        for (uint32_t n = 0; n < count; n++)
            sum.variance += terms[i].factor * terms[n].factor * row[terms[n].index];
    }
    sum.variance = fmax(sum.variance, 0);
    return sum;
}

double belief_observe(struct belief *belief, const struct belief_term *terms, uint32_t count,
                      double value, double variance)
{
    ASSERT(variance > 0);
    const struct estimate told = belief_estimate(belief, terms, count);
    const double spread = told.variance + variance;
    const double surprise = value - told.mean;
    double shared[BELIEF_MAX]; /* covariance of each number with the sum */
    for (uint32_t i = 0; i < belief->count; i++) {
        shared[i] = 0;
        for (uint32_t n = 0; n < count; n++)
            shared[i] += terms[n].factor * belief->covariance[i][terms[n].index];
    }
    for (uint32_t i = 0; i < belief->count; i++) {
        belief->mean[i] += shared[i] * surprise / spread;
        for (uint32_t n = 0; n < belief->count; n++)
            belief->covariance[i][n] -= shared[i] * shared[n] / spread;
    }
    return -0.5 * (log(spread) + surprise * surprise / spread);
}
