/*
 * Profile, observed: what a run tells the recommender. Pure.
 */
#pragma once

#include "recommend/fit.h"
#include "server/profile.h"

void profile_signature(const struct profile *profile, struct signature *out_signature);
void profile_observe(const struct profile *profile, struct observation *out_observation);

/* What a job asks for, as far as its spec and the runs of its task say. A target of accuracy is the
 * loss of the newest run that reached it; *out_is_target_known false: none has, and all epochs are
 * counted. */
void profile_asks(const struct profile *asked, const struct profile *const *runs, size_t run_count,
                  struct recommend_job *out_job, bool *out_is_target_known);
