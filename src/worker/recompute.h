/*
 * Recompute: makes another worker's push again, from what it was made of (exchange/check.h).
 *
 * In a job that verifies (sync.verify) every worker has all records, and what each pushes follows
 * from the model it was answered with, its rank's order of samples, and the steps: the optimizer
 * starts anew with each answer.
 */
#pragma once

#include "exchange/message.h"
#include "train/trainer.h"
#include "worker/worker_internal.h"

/* How a rank of the job trains; on its shard of `record_count` where workers have all records. */
struct trainer_options recompute_options(const struct work *work, uint32_t record_count,
                                         uint64_t rank);

/* `values`: the model to start from; then what the steps have changed. Kernels and dataset are the
 * calling thread's. */
MUST_CHECK int recompute_push(const struct work *work, struct kernel_set *kernels,
                              const struct dataset *dataset, const struct exchange_recompute *task,
                              float *values, struct error *error);
