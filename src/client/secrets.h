/*
 * Secrets: the values of those that a job file only names, and of those given beside it.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "runtime/job_spec.h"

/* Those that spec->secret_names names besides are the environment's. `given` are of the form
 * NAME=VALUE, or NAME, whose value is in the environment; they count more than the file's. INVALID
 * with the name of one that has no value anywhere. All values are checked to fit. */
MUST_CHECK int secrets_fill(struct arena *arena, struct job_spec *spec, const char *const *given,
                            size_t given_count, struct error *error);
