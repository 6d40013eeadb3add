/*
 * Job request: what a job's spec asks of the core.
 */
#pragma once

#include "core/core.h"
#include "runtime/job_spec.h"

/* The label that instances of a cloud bear, and jobs with `infra` ask for: "infra-aws". */
#define JOB_REQUEST_INFRA_PREFIX "infra-"

/*
 * `json` is the spec as it is stored. A start that the spec counts from now becomes an instant of
 * the market's clock. INVALID, naming the field, for one in the past.
 */
MUST_CHECK int job_request_of_spec(const struct job_spec *spec, struct text json, uint64_t account,
                                   int64_t now_ms, struct job_request *out_request,
                                   struct error *error);
