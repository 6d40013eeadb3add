/*
 * Global model: W with the vectors the actions of sync/policy.h need beside it: the round's sum S,
 * the outer momentum B and a kept copy. Memory that no action touches is never used.
 *
 * One belongs to one thread. A driver in virtual time may use it as the parameter server does.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "exchange/robust.h"
#include "sync/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct global_model;

/* Copies the parameters, and B where it is not NULL. EXHAUSTED when there is no memory. */
MUST_CHECK int global_model_open(const float *parameters, const float *momentum, size_t count,
                                 struct global_model **out_model, struct error *error);
void global_model_free(struct global_model *model); /* NULL is fine */
DEFINE_AUTO(global_model);

/* How rounds are joined; before the first is begun. Then their pushes are kept until the fold. */
void global_model_set_robust(struct global_model *model, const struct robust_options *options);

/*
 * The driver keeps an update that it applied as it is until it has released it: then a plain one
 * enters when W is read, and run by run where it is read so, while the run is in the cache anyway.
 */
void global_model_set_late(struct global_model *model);
/* Every update that lies there has entered. */
void global_model_release(struct global_model *model, const float *update);

const float *global_model_parameters(struct global_model *model);
/* The same, of which only the first `count` floats are asked for. */
const float *global_model_parameters_until(struct global_model *model, size_t count);
const float *global_model_momentum(const struct global_model *model); /* B */
/* False: B is zero. */
bool global_model_has_momentum(const struct global_model *model);
/* The round and what was kept are given up; W and B stay. */
void global_model_restart(struct global_model *model);
/* Grows by one whenever the parameters change. */
uint64_t global_model_version(const struct global_model *model);

/* SYNC_APPLY, SYNC_GATHER, SYNC_FOLD, SYNC_KEEP and SYNC_RETURN. */
void global_model_apply(struct global_model *model, const float *update, double weight,
                        const struct sync_outer *outer);
void global_model_gather(struct global_model *model, const float *update, double weight);
void global_model_fold(struct global_model *model, double weight, const struct sync_outer *outer);
void global_model_keep(struct global_model *model);
void global_model_return(struct global_model *model);
/* Whether there is something to fold, or to go back to. */
bool global_model_can_fold(const struct global_model *model);
bool global_model_can_return(const struct global_model *model);
/* Whichever of them the action is, with the update of its worker; false: it is none of them. */
bool global_model_act(struct global_model *model, const struct sync_action *action,
                      const float *update);
