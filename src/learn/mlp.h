/*
 * MLP: a small dense network, tanh inside and plain at its end, stepped by Adam.
 *
 * One sample at a time: forward, then backward with the gradient of what came out, any number of
 * times; then one step by the sum. Parameters lie layer after layer: weights [out, in], biases
 * [out].
 */
#pragma once

#include "base/random.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MLP_LAYERS_MAX = 4,
    MLP_WIDTH_MAX = 256,
};

struct mlp_shape {
    uint32_t layer_count;
    uint32_t widths[MLP_LAYERS_MAX + 1]; /* inputs first, outputs last; 1 to MLP_WIDTH_MAX */
};

struct mlp;

/* Seeded; the last layer begins near 0, so that all outputs do. */
struct mlp *mlp_new(const struct mlp_shape *shape, struct random *random);
void mlp_free(struct mlp *mlp); /* NULL is fine */
DEFINE_AUTO(mlp);

const struct mlp_shape *mlp_shape(const struct mlp *mlp);
size_t mlp_parameter_count(const struct mlp_shape *shape);
double *mlp_parameters(struct mlp *mlp);
const double *mlp_gradient(const struct mlp *mlp);

/* What comes out stays until the next forward. */
const double *mlp_forward(struct mlp *mlp, const double *input);
/* Adds the gradient for the last forward. */
void mlp_backward(struct mlp *mlp, const double *output_gradient);
/* Goes against the gradient, its length cut to `norm_max`, and clears it. */
void mlp_step(struct mlp *mlp, double lr, double norm_max);
