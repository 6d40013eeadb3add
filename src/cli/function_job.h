/*
 * Function job: a job file's training laid out in an object store, for functions to work on.
 */
#pragma once

#include "base/arena.h"
#include "cli/train_data.h"
#include "function/object_store.h"
#include "function/work.h"
#include "runtime/job_spec.h"

/* Puts data and description of the job there under its name: once. CONFLICT when there is another
 * job of that name; the same is fine. `out_job` lies in the arena. */
MUST_CHECK int function_job_put(struct arena *arena, struct object_store *store, const char *name,
                                const struct job_spec *spec, const struct train_data *data,
                                const char *dataset_dir, struct work_job *out_job,
                                struct error *error);
/* "digits-5f0e91ab": letters and digits of the name, and some by chance. */
void function_job_name(struct text name, char out[WORK_JOB_SIZE]);
