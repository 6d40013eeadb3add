/*
 * Robust: what keeps a few bad pushes from spoiling the model: how long a push may be, and how the
 * pushes of a round are joined.
 *
 *     norm      a push longer than NORM_FACTOR times the usual is shortened to that
 *     trimmed   and of a round, for each parameter, the mean without the largest and the smallest
 *     median    and of a round, for each parameter, the median
 *
 * Of n pushes in a round the median bears up to half of them being garbage, the trimmed mean
 * trim * n (at least one) at each end. Rounds of one or two are joined by their mean: nobody can
 * tell who is wrong. Where pushes enter one by one there is no round, and trimmed and median are
 * norm. Values that are not finite never come this far (vector.h).
 *
 * Usual is the median over the workers, each by its last push, so that half of them would have to
 * lie to move it, however often they push. A push of more steps may be longer: between the root of
 * the steps, where they only shake, and the steps, where they agree; steps to the 3/4 is in the
 * middle. What a worker says of its steps counts up to NORM_STEPS_FACTOR times the usual.
 *
 * Memory: trimmed and median keep every push of a round, 4 bytes for each parameter and push, and
 * work on them in blocks; norm keeps two numbers for a worker.
 *
 * Pure, and the same for equal input.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "sync/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum robust_kind { ROBUST_NONE, ROBUST_NORM, ROBUST_TRIMMED, ROBUST_MEDIAN, ROBUST_KIND_COUNT };

#define ROBUST_NORM_FACTOR  10.0
#define ROBUST_STEPS_FACTOR 16.0
#define ROBUST_TRIM         0.2

struct robust_options {
    enum robust_kind kind;
    double trim; /* cut off at each end, in [0, 0.5); 0: ROBUST_TRIM */
};

const char *robust_kind_name(enum robust_kind kind); /* "none", "norm", "trimmed", "median" */
MUST_CHECK int robust_kind_parse(struct text name, enum robust_kind *out_kind, struct error *error);

/* --- how long a push may be --- */

struct robust_norms {
    double norms[SYNC_WORKER_MAX]; /* of the last push, as it was taken; < 0: none yet */
    double steps[SYNC_WORKER_MAX];
    uint32_t worker_end; /* of the above, as far as they are in use */
};

void robust_norms_init(struct robust_norms *norms);
/* The worker is gone, and its number may be another's. */
void robust_norms_forget(struct robust_norms *norms, uint32_t worker);

/* How long a push of so many steps may be; 0: there is nothing to compare it with. */
double robust_norms_limit(const struct robust_norms *norms, uint32_t steps);
/*
 * By what a push of this length is to be multiplied: 1, or less when it is too long; notes it as
 * taken so. What nothing can be compared with may be as long as the model, or as one for each
 * parameter.
 */
double robust_norms_take(struct robust_norms *norms, uint32_t worker, uint32_t steps, double norm,
                         const float *model, size_t count);

/* The sum of squares, in one pass at the speed of memory. */
double robust_square_sum(const float *values, size_t count);

/* --- how a round is joined --- */

struct robust_round;

/* `kind` is trimmed or median; vectors are of `count`. */
struct robust_round *robust_round_new(const struct robust_options *options, size_t count);
void robust_round_free(struct robust_round *round); /* NULL is fine */
DEFINE_AUTO(robust_round);

/* Keeps a copy; the memory of a round is used again by the next. EXHAUSTED without memory. */
MUST_CHECK int robust_round_add(struct robust_round *round, const float *update, double weight,
                                struct error *error);
size_t robust_round_count(const struct robust_round *round);
/* What the round comes to, times the sum of its weights: in place of the weighted sum. Something
 * was added. */
void robust_round_sum(struct robust_round *round, float *out_sum);
void robust_round_empty(struct robust_round *round);
