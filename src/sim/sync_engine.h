/*
 * Sync engine: gradients and losses of any parameter vector, by one model opened once.
 *
 * Simulated workers take turns on it: what is theirs is a vector and a place in the data. One
 * belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "sim/sync_data.h"
#include "sim/sync_vector.h"
#include "train/model_spec.h"

#include <stdint.h>

struct sync_engine;

struct sync_engine_options {
    struct model_spec spec;
    uint32_t batch; /* the usual one; others are computed in pieces of it */
};

MUST_CHECK int sync_engine_open(const struct sync_engine_options *options,
                                struct sync_engine **out_engine, struct error *error);
void sync_engine_free(struct sync_engine *engine); /* NULL is fine */
DEFINE_AUTO(sync_engine);

struct sync_vectors *sync_engine_vectors(struct sync_engine *engine);
size_t sync_engine_parameter_count(const struct sync_engine *engine);
/* The first model of a seed. */
struct sync_vector *sync_engine_begin(struct sync_engine *engine, uint64_t seed);

/* The mean gradient over these records, valid until the next call; *out_loss is their mean loss and
 * may turn out not finite. */
const float *sync_engine_gradient(struct sync_engine *engine, const struct sync_vector *parameters,
                                  const struct dataset *dataset, const uint32_t *records,
                                  uint32_t count, double *out_loss);

struct sync_measure {
    double loss, accuracy;
};
/* INVALID when the data does not fit the model. */
MUST_CHECK int sync_engine_measure(struct sync_engine *engine, const float *parameters,
                                   const struct dataset *dataset, const struct sync_range *range,
                                   struct sync_measure *out_measure, struct error *error);
