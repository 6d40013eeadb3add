/*
 * Trainer: a model, an optimizer and the data they learn from; one call is one step.
 *
 *     trainer_open -> trainer_step ... trainer_step -> trainer_free
 *
 * Between steps the owner may read and overwrite model_parameters(trainer_model(...)): that is how
 * an exchange pulls the global model. On one machine with one kernel set the same seed gives the
 * same parameters after every step.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "train/augment.h"
#include "train/checkpoint.h"
#include "train/dataset.h"
#include "train/model.h"
#include "train/optimizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trainer;

struct trainer_options {
    struct model_spec spec;
    struct optimizer_options optimizer;
    uint32_t batch;
    uint64_t seed;          /* of the parameters and, with `stream`, of the order of samples */
    uint64_t stream;        /* the worker's rank: others draw in another order */
    struct augment augment; /* of images; what it does follows from seed, stream and step */
    uint32_t record_first;  /* the shard; count 0 means all from `first` on */
    uint32_t record_count;
};

/* Kernels and dataset are borrowed and must outlive the trainer. INVALID when the data does not
 * fit the model. The parameters are initialised from the seed. */
MUST_CHECK int trainer_open(struct kernel_set *kernels, const struct dataset *dataset,
                            const struct trainer_options *options, struct trainer **out_trainer,
                            struct error *error);
void trainer_free(struct trainer *trainer); /* NULL is fine */
DEFINE_AUTO(trainer);

/* The seed of the order a trainer draws its shard in: differs for every stream. */
uint64_t trainer_sampler_seed(const struct trainer_options *options);

/* Draws a batch, goes forward and backward, updates. *out_loss is that batch's loss before the
 * update. INVALID, parameters unchanged, when the loss is not finite: trainer_has_diverged. */
MUST_CHECK int trainer_step(struct trainer *trainer, double *out_loss, struct error *error);

/* Forward and backward only: model_gradients holds the result, nothing is updated. For policies
 * that apply gradients elsewhere. Counts as a step. */
MUST_CHECK int trainer_gradient(struct trainer *trainer, double *out_loss, struct error *error);

/* From the next step on; the model is opened anew, so model_parameters is another address. Seed,
 * velocity and the place in the data are kept. The step before is no part of it when it fails. */
MUST_CHECK int trainer_set_batch(struct trainer *trainer, uint32_t batch, struct error *error);

/* The last step failed because its loss was not finite; no step follows. */
bool trainer_has_diverged(const struct trainer *trainer);

/* As if so many steps had been made, and so many samples drawn, with an optimizer that has gathered
 * nothing: what follows depends on the parameters alone. */
MUST_CHECK int trainer_seek(struct trainer *trainer, uint64_t step_count, uint64_t sample_count,
                            struct error *error);

struct model *trainer_model(struct trainer *trainer);
struct optimizer *trainer_optimizer(struct trainer *trainer);
uint64_t trainer_step_count(const struct trainer *trainer);
uint64_t trainer_sample_count(const struct trainer *trainer);
/* Whole and begun passes over the shard: 1.5 is the middle of the second. */
double trainer_epochs(const struct trainer *trainer);

/* Parameters, velocity, counters and the place in the data, as plain data and back. What
 * trainer_save fills borrows the trainer's memory. Restoring continues exactly. */
void trainer_save(struct trainer *trainer, struct checkpoint *out_checkpoint);
MUST_CHECK int trainer_restore(struct trainer *trainer, const struct checkpoint *checkpoint,
                               struct error *error);
