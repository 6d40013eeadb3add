/*
 * Recommendation, shown: the answer of POST /v1/recommendations.
 */
#pragma once

#include "base/json.h"
#include "runtime/job_signature.h"
#include "server/recommendation.h"

struct recommendation_view {
    const struct recommendation_request *request;
    const struct recommendation *made;
    const struct job_signature *signature;
    struct text catalogue_date; /* empty: no catalogue was looked at */
    int64_t micro_per_usd;
};
void recommendation_write(struct json_writer *writer, const struct recommendation_view *view);

/* The fields that a job needs to get these machines, as a job file has them: {"num_nodes":2,...}.
 */
void recommendation_write_job(struct json_writer *writer, const struct cluster_plan *plan,
                              const char *policy, const struct recommendation_limits *limits);
