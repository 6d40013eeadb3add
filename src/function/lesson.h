/*
 * Lesson: one job's model on this machine, stepped batch by batch over records that were fetched.
 *
 * What it does to the parameters follows from them, from the batches and from their numbers alone:
 * it remembers nothing of the steps before lesson_begin.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "function/work.h"
#include "tensor/kernel.h"
#include "train/dataset.h"

#include <stddef.h>
#include <stdint.h>

struct lesson;

/* Borrows the kernels. INVALID when the job is none that can be trained. `job` may go. */
MUST_CHECK int lesson_open(struct kernel_set *kernels, const struct work_job *job,
                           struct lesson **out_lesson, struct error *error);
void lesson_free(struct lesson *lesson); /* NULL is fine */
DEFINE_AUTO(lesson);

uint32_t lesson_batch(const struct lesson *lesson);       /* records of one */
uint64_t lesson_batch_count(const struct lesson *lesson); /* of an epoch */
size_t lesson_parameter_count(const struct lesson *lesson);
/* Those of the model, which lesson_step changes. */
float *lesson_parameters(struct lesson *lesson);
/* What the model takes, and what a fetched batch takes beside it. */
uint64_t lesson_memory_bytes(const struct lesson *lesson);
uint64_t lesson_batch_bytes(const struct lesson *lesson);

/* One of the job's two files: where a record's bytes lie, and `count` of them as a file of their
 * own, opened as a data set. */
enum lesson_part { LESSON_IMAGES, LESSON_LABELS, LESSON_PART_COUNT };
extern const char *const lesson_part_names[]; /* "images", "labels" */
/* 0 for labels of a job that has none. */
size_t lesson_record_bytes(const struct lesson *lesson, enum lesson_part part);
uint64_t lesson_record_offset(const struct lesson *lesson, enum lesson_part part, uint64_t record);
/* `bytes`: the records' own, of each part, borrowed for the call. */
MUST_CHECK int lesson_open_records(const struct lesson *lesson,
                                   const void *const bytes[LESSON_PART_COUNT], uint32_t count,
                                   struct dataset **out_dataset, struct error *error);

/* Forgets what the optimizer gathered; `step` is its place in the schedule. */
void lesson_begin(struct lesson *lesson, uint64_t step);
/* How words begin that say so of a loss. */
#define LESSON_DIVERGED "the loss is not finite"
/* One step over the records [first, first + batch) of the data set. `number`: which batch of which
 * epoch that is, for what is drawn at random. INVALID when the loss is not finite. */
MUST_CHECK int lesson_step(struct lesson *lesson, const struct dataset *dataset, uint32_t first,
                           uint64_t number, double *out_loss, struct error *error);
