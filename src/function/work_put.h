/*
 * Work, put: a job as functions find it in a store: its records and its description.
 *
 * Both are put once; who puts the same again finds them there, and all is well.
 */
#pragma once

#include "function/lesson.h"
#include "function/object_store.h"
#include "function/work.h"

/* The file of one part, whole; none for a part that has none. Notes its header in the job, and how
 * many records it has. INVALID when it is no idx file. */
MUST_CHECK int work_put_part(struct object_store *store, struct work_job *job,
                             enum lesson_part part, struct text bytes, struct error *error);
/* CONFLICT when another job has the name. */
MUST_CHECK int work_put_job(struct object_store *store, const struct work_job *job,
                            struct error *error);
