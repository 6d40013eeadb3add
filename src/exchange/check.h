/*
 * Check: who is right when workers made the same push and it did not come out the same.
 *
 * A push follows from the model that it started from, the samples in the order of the job's seed,
 * and its steps: anyone with the data can make it again. Machines round differently, so results
 * differ a little, and with every step by more. Measured between AVX-512, AVX2, plain vectors and
 * oneDNN (MLP and LeNet-5, momentum 0.9, learning rates 0.02 and 0.1, from fresh and trained
 * models), the distance of two honest results at most:
 *
 *     steps      8       16      32      64     128
 *     distance   2e-6    5e-6    0.008   0.7    1.8
 *
 * So a push that is to be checked has CHECK_STEPS_MAX steps at most; results closer than
 * CHECK_NEAR (and what a codec may lose) agree, and only who is further off than CHECK_FAR, as
 * noise, nothing at all or a push turned round are (1 to 2), is wrong. What lies between proves
 * nothing.
 *
 * Two that agree are right. Whoever is far from both is wrong, be it who pushed or who recomputed.
 * Pure.
 */
#pragma once

#include "exchange/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECK_STEPS_MAX = 32, CHECK_RESULTS_MAX = 6 };

#define CHECK_NEAR 0.1
#define CHECK_FAR  0.5

/* ||left - right|| over the larger length; 0 when both are zero. */
double check_distance(const float *left, const float *right, size_t count);
/* How far a result that travelled by this codec may be from one that did not; < 0: its pushes
 * cannot be checked. */
double check_near(enum codec codec);

struct check_result {
    uint64_t lease;
    float *values; /* the check's */
    enum codec codec;
};

struct check {
    size_t count; /* floats of a result */
    struct check_result results[CHECK_RESULTS_MAX];
    uint32_t result_count;
    double distances[CHECK_RESULTS_MAX][CHECK_RESULTS_MAX];
};

/* Zeroed, with `count`, it is empty. Takes the values, which are freed by check_clear. There is
 * room, and the lease has given none. */
void check_add(struct check *check, uint64_t lease, float *values, enum codec codec);
void check_clear(struct check *check);
bool check_has(const struct check *check, uint64_t lease);

struct check_verdict {
    bool is_decided;                    /* two agree */
    uint32_t right[2];                  /* results: which */
    bool is_wrong[CHECK_RESULTS_MAX];   /* of each result */
    double distance[CHECK_RESULTS_MAX]; /* from the nearer of the two */
};
struct check_verdict check_judge(const struct check *check);
