/*
 * Job model: what a job says of its network and how it steps, as train/ takes it.
 */
#pragma once

#include "base/error.h"
#include "runtime/job_spec.h"
#include "train/dataset.h"
#include "train/model_spec.h"
#include "train/optimizer.h"

/* The network for data of this shape (its count may be 0). INVALID when it cannot be built;
 * *out_layer is the layer it is about, -1: the whole. */
MUST_CHECK int job_train_model(const struct job_train *train, const struct dataset_shape *shape,
                               struct model_spec *out_spec, int *out_layer, struct error *error);

void job_train_optimizer(const struct job_train *train, struct optimizer_options *out_options);
