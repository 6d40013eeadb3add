/*
 * Cloud job: whether a job may have machines started for it, which the operator pays for from then
 * on: it has to take them at once, and to be able to pay for them.
 */
#pragma once

#include "base/error.h"
#include "runtime/job_spec.h"

#include <stdint.h>

/* `hourly_micro`: what all of its machines cost an hour, in microcredits. INVALID, with what would
 * do. */
MUST_CHECK int cloud_job_check(const struct job_market *market, int64_t hourly_micro,
                               struct error *error);
