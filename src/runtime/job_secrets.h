/*
 * Job secrets: variables of the environment that only the ranks of a job are to see.
 *
 * They are part of a job file and of POST /v1/jobs, and of nothing that job_spec_write writes: the
 * market keeps them sealed, apart from the job, and gives them to the job's leases as the JSON of
 * job_secrets_write. Whoever reads the job sees their names.
 */
#pragma once

#include "runtime/job_spec.h"

enum { JOB_SECRETS_SIZE_MAX = 32 << 10 }; /* of all, as JSON */

/* The ranks of this job get some. */
bool job_spec_has_secrets(const struct job_spec *spec);

/* INVALID when one of them has no value yet, or all are longer than JOB_SECRETS_SIZE_MAX. */
MUST_CHECK int job_secrets_write(const struct job_spec *spec, struct buffer *json,
                                 struct error *error);
/* Fills the members `secrets` and `secret_count`, in the arena. */
MUST_CHECK int job_secrets_read(struct arena *arena, struct text json, struct job_spec *out_spec,
                                struct error *error);

/* Joined by commas, in the arena. */
struct text job_secrets_names(struct arena *arena, const struct job_spec *spec);

/* The spec for whoever is to know their names alone: no values, and nothing of the market's. */
struct job_spec job_secrets_named(struct arena *arena, const struct job_spec *spec);

/* As job_spec_write, with the secrets: for POST /v1/jobs. */
MUST_CHECK int job_secrets_write_spec(const struct job_spec *spec, struct buffer *json,
                                      struct error *error);
