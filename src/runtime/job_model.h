/*
 * Job model: what a job says of its network and how it steps, as train/ takes it.
 */
#pragma once

#include "base/error.h"
#include "runtime/job_spec.h"
#include "train/augment.h"
#include "train/dataset.h"
#include "train/evaluation.h"
#include "train/import.h"
#include "train/model_spec.h"
#include "train/optimizer.h"

/* The network for data of this shape (its count may be 0). INVALID when it cannot be built;
 * *out_layer is the layer it is about, -1: the whole. */
MUST_CHECK int job_train_model(const struct job_train *train, const struct dataset_shape *shape,
                               struct model_spec *out_spec, int *out_layer, struct error *error);

/* What training stops early at. */
struct evaluation_target job_train_target(const struct job_train *train);

/* What to try when the loss was not finite any more: "try a lower lr than 10, or clip_norm". */
void job_train_diverged_advice(const struct job_train *train, char *out, size_t out_size);
/* The least memory that a worker needs for such a network, whatever its data. */
MUST_CHECK int job_train_memory(const struct job_train *train, const struct model_spec *model,
                                uint64_t *out_bytes, struct error *error);
/* EXHAUSTED when `memory_bytes` are less than that: says how much it takes and why. */
MUST_CHECK int job_train_check_memory(const struct job_train *train, const struct model_spec *model,
                                      int64_t memory_bytes, struct error *error);
/* INVALID when there are more servers than parameters: says how many of both. */
MUST_CHECK int job_sync_check_servers(const struct job_sync *sync, const struct model_spec *model,
                                      struct error *error);

/* What its records are, their count 0; false: that is not known before the file is read. */
bool job_train_shape(const struct job_train *train, struct dataset_shape *out_shape);
/* Fills in channels, height, features, vocabulary and classes. */
void job_train_set_shape(struct job_train *train, const struct dataset_shape *shape);
/* How its files are read. */
void job_train_import(struct arena *arena, const struct job_train *train,
                      struct import_options *out);
struct augment job_train_augment(const struct job_train *train);
enum dataset_target job_train_told(const struct job_train *train);

void job_train_optimizer(const struct job_train *train, struct optimizer_options *out_options);
