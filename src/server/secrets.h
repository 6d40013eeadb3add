/*
 * Secrets: what the market does with those of a job, from its submission to its end; sealed.h keeps
 * them.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "core/core.h"
#include "runtime/job_spec.h"

struct call;
struct server;

/* Seals what came with the job, in whose spec only their names and the file's stay. The file goes
 * with the call, unless the job is submitted. */
MUST_CHECK int secrets_seal(struct call *call, struct job_spec *spec, struct error *error);

/* Appends them as its leases get them; nothing for a job without. */
MUST_CHECK int secrets_open(const struct server *server, uint64_t account,
                            const struct job_spec *spec, struct buffer *json, struct error *error);

/* The job is over. Core thread. */
void secrets_forget(const struct server *server, const struct job *job);

/* At the start: removes what no job needs any more. */
MUST_CHECK int secrets_sweep(const struct server *server, const struct core *core,
                             struct error *error);
