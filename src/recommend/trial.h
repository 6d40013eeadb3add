/*
 * Trial: a short run on one or two cheap machines, where too little is known of a job.
 */
#pragma once

#include "recommend/frontier.h"

struct trial_plan {
    bool is_needed;           /* the model never ran, or the range is more than twofold */
    struct cluster_plan plan; /* one worker, or one of each of two kinds */
    uint32_t steps;           /* of each */
    double seconds;
    double cost_micro;
    double share; /* of the chosen cluster's expected cost */
};

/* Costs at most `share_max` of the chosen cluster's expected cost. */
void trial_plan_of(const struct frontier_request *request, const struct frontier *frontier,
                   double share_max, struct trial_plan *out_trial);
