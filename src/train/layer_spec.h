/*
 * Layer spec: one layer of a network as a job file writes it; plain data.
 *
 * A field that a type does not use is 0. A 0 in a field that it uses means its default, which
 * layer_spec_complete fills in. docs/models.md has the table for users.
 *
 * To add a type: a value and a name here, a row in layer_spec.c, a file layer_TYPE.c, a row in
 * layer_plan.c's table, and a row in docs/models.md.
 */
#pragma once

#include "base/error.h"
#include "base/json_schema.h"

#include <stdbool.h>
#include <stdint.h>

enum layer_type {
    LAYER_DENSE,
    LAYER_CONV, /* over an image, or over the steps of a sequence */
    LAYER_MAX_POOL,
    LAYER_AVERAGE_POOL,
    LAYER_BATCH_NORM,
    LAYER_LAYER_NORM,
    LAYER_LOCAL_NORM,
    LAYER_DROPOUT,
    LAYER_EMBEDDING,
    LAYER_LSTM,
    LAYER_GRU,
    LAYER_RESIDUAL, /* adds what the `back` layers before it took in */
    LAYER_RELU,
    LAYER_TANH,
    LAYER_SIGMOID,
    LAYER_GELU,
    LAYER_FLATTEN,
    LAYER_TYPE_COUNT,
};

struct layer_spec {
    int type;         /* enum layer_type */
    uint64_t outputs; /* width of dense, embedding, lstm and gru; channels of a convolution */
    uint64_t kernel;  /* side of a convolution or a window; 0 of a pool: all there is */
    uint64_t stride;
    uint64_t pad;
    uint64_t back;      /* of a residual */
    bool partial;       /* of a pool: windows may hang over the edge */
    bool steps;         /* of lstm and gru: gives the state of every step */
    double rate;        /* of a dropout */
    double alpha, beta; /* of a local norm */
};

extern const char *const layer_type_names[]; /* by type, ended by NULL */
const char *layer_type_name(enum layer_type type);

/* Fields in JSON; zeros are left out. */
extern const struct json_schema layer_spec_schema;

/* Fills in defaults. INVALID when a field is out of range or belongs to another type. `outputs` of
 * a dense layer may stay 0 (the last one gets what the loss needs). */
MUST_CHECK int layer_spec_complete(struct layer_spec *layer, struct error *error);
bool layer_spec_equal(const struct layer_spec *left, const struct layer_spec *right);
