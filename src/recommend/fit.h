/*
 * Fit: a model of one job's speed and learning, from what was observed, with how sure it is.
 *
 * Everything begins at a prior, which observations move by their weight: much by a run of the same
 * job, little by one that is only alike.
 *
 *     step      work * (batch / the job's) ^ growth / (weight * cores ^ efficiency), times what was
 *               measured of the machine's kind; as logarithms, a sum
 *     commit    round trip and bytes over the link, times what was measured of such links
 *     samples   asked for by epochs; or until the target: S (1 + workers * batch / B_critical),
 *               over the policy's gain
 *
 * Pure: the same observations give the same fit to the last bit.
 */
#pragma once

#include "recommend/belief.h"
#include "recommend/candidate.h"
#include "recommend/observation.h"
#include "recommend/policy_traits.h"
#include "recommend/predict_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FIT_KINDS_MAX = 64, /* that are remembered by name */
    FIT_JOBS_MAX = 24,  /* other than this one */
};

struct recommend_job {
    struct signature signature;
    double samples;     /* asked for, of all workers; 0: until the target */
    double target_loss; /* 0: none */
    double least_s;     /* of training, though the target is reached before; 0: none */
};

struct fit {
    struct recommend_job job;
    const struct policy_traits *policy;
    struct belief speed; /* of logarithms of step seconds: see fit_speed.c */
    char kinds[FIT_KINDS_MAX][OBSERVATION_NAME_SIZE];
    uint32_t kind_terms[FIT_KINDS_MAX];
    uint32_t kind_count;
    struct estimate samples[CLUSTER_WORKERS_MAX + 1]; /* by workers, of all, until the end */
    double samples_expected[CLUSTER_WORKERS_MAX + 1]; /* the same without their logarithm */
    bool has_samples;         /* known by epochs, or a target that was seen reached */
    double critical_batch;    /* at which samples until the target have doubled; 0: by epochs */
    struct estimate transfer; /* factor of commit times */
    double steps_per_push;
    double step_deviation;                   /* of the logarithm of one step's time */
    double slowest[CLUSTER_WORKERS_MAX + 1]; /* of so many workers' pushes, over their mean */
    double bytes_up, bytes_down;
    double replace_s;   /* until a lost worker is replaced */
    double bias_factor; /* of the seconds, by past errors */
    double scale;       /* of their deviation */
    uint32_t observation_count[LIKENESS_COUNT];
};

/* `errors` of past predictions: NULL is none. */
void fit_observations(const struct recommend_job *job, const struct observation *observations,
                      size_t count, const struct predict_error *errors, struct fit *out_fit);

/* Whether this model was ever seen to run. */
bool fit_has_model(const struct fit *fit);
/* ... and of the same data. */
bool fit_has_job(const struct fit *fit);

/* The logarithm of one worker's mean step seconds. */
struct estimate fit_step(const struct fit *fit, const struct candidate *candidate);
/* The same of several, each with a weight of their logarithm; weights sum to at most 1. */
struct fit_weight {
    const struct candidate *candidate;
    double weight;
};
struct estimate fit_steps(const struct fit *fit, const struct fit_weight *weights, uint32_t count);
