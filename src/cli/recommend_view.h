/*
 * Recommend view: what is recommended, for people; and a job made so.
 */
#pragma once

#include "cli/cli.h"
#include "client/api_recommend.h"
#include "runtime/job_spec.h"

/* A table of what was considered, the chosen one marked, what it means, and the advice. */
void recommend_view_print(const struct cli *cli, const struct api_recommendation *recommendation,
                          bool is_explained);

/* "2 x 1c@1.0 + 1 x 4c@0.9" */
const char *recommend_view_workers(struct arena *arena, const struct api_cluster *cluster);
/* ", market.max_total_cost: 2.000000": those that are set. */
const char *recommend_view_limits(struct arena *arena, const struct api_job_market *market);
/* Whether all epochs are counted, for no run has reached the target: the most that it takes. */
bool recommend_view_is_bound(const struct api_recommendation *recommendation);
const char *recommend_view_seconds(struct arena *arena, double seconds); /* "4.2s", "1m 5s" */
/* "1m 5s (40s to 2m)"; "1m 5s (at most 2m)" where nothing is known of the least. */
const char *recommend_view_time(struct arena *arena, const struct api_seconds_range *range);

/* "2/h": per hour; "2": in all; "$2/h" and "$2": dollars, which the market converts. */
struct recommend_budget {
    int64_t micro_per_hour, micro; /* one of them; the other is 0 */
    bool is_dollars;
};
MUST_CHECK int recommend_budget_read(struct text text, struct recommend_budget *out_budget,
                                     struct error *error);

/* INVALID, with what to do instead, when a job cannot have these machines by itself. */
MUST_CHECK int recommend_check_lenders(struct arena *arena, const struct api_cluster *cluster,
                                       struct error *error);
/* Sets the fields in the job. INVALID when they are none that it can have. */
MUST_CHECK int recommend_apply(struct arena *arena, const struct api_job_fields *fields,
                               struct job_spec *spec, struct error *error);
/* A short run of the job: it stops after some seconds, whatever it has reached. */
void recommend_make_trial(struct arena *arena, const struct api_trial *trial,
                          struct job_spec *spec);
