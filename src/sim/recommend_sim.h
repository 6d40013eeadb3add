/*
 * Recommend sim: how well clusters are recommended: cases of a world, each tried on every one of
 * its clusters, against what the recommender said after a short trial and from earlier runs.
 *
 * A case is a job of a family (batch, policy, end), two kinds of machines, a server and a wish. The
 * recommender sees what the kinds say of themselves, the profiles of the family's earlier runs,
 * those of a few strangers, and a trial of at most a twentieth of the job's cost. Each chosen
 * cluster's outcome is compared with its prediction, which corrects the ones after it.
 */
#pragma once

#include "recommend/frontier.h"
#include "sim/recommend_run.h"

enum { CASE_CLUSTERS_MAX = 8, CASE_EARLIER = 5, CASE_TRIAL_KINDS = 2 };

struct recommend_sim_options {
    uint32_t case_count;
    uint64_t seed;
    uint32_t thread_count;
    bool has_trial;                                        /* else from earlier runs alone */
    void (*on_progress)(void *context, const char *words); /* NULL is fine */
    void *context;
};

struct recommend_cluster_result {
    struct world_run run;
    struct world_outcome outcome;
    struct prediction prediction;
};

struct recommend_case {
    struct world_run job; /* without machines */
    struct wish wish;
    uint32_t kinds[CASE_TRIAL_KINDS];
    struct recommend_cluster_result clusters[CASE_CLUSTERS_MAX];
    uint32_t cluster_count;
    bool is_chosen;     /* the wish could be kept to, so it was thought */
    uint32_t chosen;    /* of clusters */
    double over_best;   /* chosen over best, of what the wish asks for; infinite: it fails it */
    double trial_share; /* of the chosen cluster's cost */
};

struct recommend_sim_result {
    struct recommend_case *cases;
    uint32_t case_count;
    double median_error, p90_error; /* of predicted time, over all clusters that were done */
    double covered;                 /* share of outcomes between low and high */
    double within_1_1;              /* share of cases whose choice is at most 1.1 times the best */
    double trial_share, trial_share_most;
    uint32_t outcomes, undone;
};
void recommend_sim_result_done(struct recommend_sim_result *result);

MUST_CHECK int recommend_sim(const struct recommend_sim_options *options,
                             struct recommend_sim_result *out_result, struct error *error);

/* Of cases picked by `is_wanted`, NULL for all: the q-th quantile of the errors; NaN without one.
 */
double recommend_sim_error(const struct recommend_sim_result *result, double q,
                           bool (*is_wanted)(const struct recommend_case *, const void *),
                           const void *context);
