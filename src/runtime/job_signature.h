/*
 * Job signature: which runs can be learnt from for a job.
 *
 * Of two jobs with one signature the model, the data, the batch and the policy are the same: what a
 * worker does in a step is the same too, whatever machines they ran on, for how long and for how
 * much. Of two with one task the model and the data are the same, not how they are trained.
 *
 * A signature is the first half of BLAKE2b over the fields that job_signature.c lists, as JSON.
 */
#pragma once

#include "runtime/job_spec.h"

enum { JOB_SIGNATURE_SIZE = 33 }; /* hex digits and a zero byte */

struct job_signature {
    char whole[JOB_SIGNATURE_SIZE];
    char task[JOB_SIGNATURE_SIZE];
};

void job_signature(const struct job_spec *spec, struct job_signature *out_signature);
