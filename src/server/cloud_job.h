/*
 * Cloud job: whether a job may have machines started for it, which the operator pays for from then
 * on: it has to take them at once, to take the whole of each, and to be able to pay for them.
 */
#pragma once

#include "base/error.h"
#include "cloud/catalogue.h"
#include "market/job.h"
#include "market/match.h"
#include "runtime/job_spec.h"

#include <stdint.h>

/* INVALID, with what would do. */
MUST_CHECK int cloud_job_check(const struct job_market *market, struct error *error);

/* Each worker takes a machine of the type, which was started for it and is nobody else's: all its
 * cores and GPUs, and what it lends of its memory; a parameter server of the job has room there
 * where it goes nowhere else. INVALID, with what the type has, of a job that asks for more. */
MUST_CHECK int cloud_job_fit(const struct catalogue_type *type, struct job_request *request,
                             struct error *error);

/* What the job costs at the least: its machines, which cost `hourly_micro` microcredits an hour
 * all together, for its longest run, and its parameter servers. */
struct match_quote cloud_job_quote(const struct job_request *request, int64_t hourly_micro,
                                   struct match_quote servers);
/* INVALID: a maximum that it names is less; EXHAUSTED: it has less. */
MUST_CHECK int cloud_job_check_pay(const struct job_request *request, int64_t hourly_micro,
                                   struct match_quote servers, int64_t available_micro,
                                   struct error *error);
