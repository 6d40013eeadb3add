/*
 * Job software: whether the machines that a job could have bring what its runtime runs on, as their
 * labels say: mpirun, torch, TensorFlow, Spark.
 */
#pragma once

#include "core/core.h"
#include "runtime/job_spec.h"

/* What the borrower is warned of, a sentence in the arena; empty: nothing. */
struct text job_software_warning(struct arena *arena, const struct core *core,
                                 const struct job_spec *spec, const struct job_request *request);
