#include "learn/mlp.h"

#include "base/assert.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; /* Adam's, as published */
static const double last_layer_scale = 0.01;

struct mlp {
    struct mlp_shape shape;
    size_t parameter_count;
    double *parameters, *gradient, *mean, *squares;
    uint64_t step_count;
    double values[MLP_LAYERS_MAX + 1][MLP_WIDTH_MAX]; /* of the last forward */
};

size_t mlp_parameter_count(const struct mlp_shape *shape)
{
    size_t count = 0;
    for (uint32_t i = 0; i < shape->layer_count; i++)
        count += (size_t)shape->widths[i + 1] * (shape->widths[i] + 1);
    return count;
}

struct mlp *mlp_new(const struct mlp_shape *shape, struct random *random)
{
    ASSERT(shape->layer_count >= 1 && shape->layer_count <= MLP_LAYERS_MAX);
    for (uint32_t i = 0; i <= shape->layer_count; i++)
        ASSERT(shape->widths[i] >= 1 && shape->widths[i] <= MLP_WIDTH_MAX);
    struct mlp *mlp = memory_zeroed(1, sizeof(*mlp));
    mlp->shape = *shape;
    mlp->parameter_count = mlp_parameter_count(shape);
    mlp->parameters = memory_zeroed(mlp->parameter_count, sizeof(double));
    mlp->gradient = memory_zeroed(mlp->parameter_count, sizeof(double));
    mlp->mean = memory_zeroed(mlp->parameter_count, sizeof(double));
    mlp->squares = memory_zeroed(mlp->parameter_count, sizeof(double));
    double *parameters = mlp->parameters;
    for (uint32_t i = 0; i < shape->layer_count; i++) {
        const uint32_t in = shape->widths[i], out = shape->widths[i + 1];
        const double scale = (i + 1 < shape->layer_count ? 1 : last_layer_scale) / sqrt((double)in);
        for (uint32_t k = 0; k < in * out; k++)
            parameters[k] = scale * random_normal(random);
        parameters += (size_t)out * (in + 1);
    }
    return mlp;
}

void mlp_free(struct mlp *mlp)
{
    if (!mlp)
        return;
    free(mlp->parameters);
    free(mlp->gradient);
    free(mlp->mean);
    free(mlp->squares);
    free(mlp);
}

const struct mlp_shape *mlp_shape(const struct mlp *mlp)
{
    return &mlp->shape;
}

double *mlp_parameters(struct mlp *mlp)
{
    return mlp->parameters;
}

const double *mlp_gradient(const struct mlp *mlp)
{
    return mlp->gradient;
}

const double *mlp_forward(struct mlp *mlp, const double *input)
{
    memcpy(mlp->values[0], input, mlp->shape.widths[0] * sizeof(*input));
    const double *weights = mlp->parameters;
    for (uint32_t i = 0; i < mlp->shape.layer_count; i++) {
        const uint32_t in = mlp->shape.widths[i], out = mlp->shape.widths[i + 1];
        const double *bias = weights + (size_t)in * out;
        for (uint32_t k = 0; k < out; k++) {
            double sum = bias[k];
            for (uint32_t j = 0; j < in; j++)
                sum += weights[(size_t)k * in + j] * mlp->values[i][j];
            mlp->values[i + 1][k] = i + 1 < mlp->shape.layer_count ? tanh(sum) : sum;
        }
        weights = bias + out;
    }
    return mlp->values[mlp->shape.layer_count];
}

void mlp_backward(struct mlp *mlp, const double *output_gradient)
{
    double above[MLP_WIDTH_MAX], below[MLP_WIDTH_MAX];
    const uint32_t last = mlp->shape.layer_count;
    memcpy(above, output_gradient, mlp->shape.widths[last] * sizeof(*above));
    size_t at = mlp->parameter_count;
    for (uint32_t i = last; i-- > 0;) {
        const uint32_t in = mlp->shape.widths[i], out = mlp->shape.widths[i + 1];
        at -= (size_t)out * (in + 1);
        const double *weights = mlp->parameters + at;
        double *gradient = mlp->gradient + at;
        memset(below, 0, in * sizeof(*below));
        for (uint32_t k = 0; k < out; k++) {
            gradient[(size_t)in * out + k] += above[k];
            for (uint32_t j = 0; j < in; j++) {
                gradient[(size_t)k * in + j] += above[k] * mlp->values[i][j];
                below[j] += above[k] * weights[(size_t)k * in + j];
            }
        }
        for (uint32_t j = 0; j < in; j++)
            above[j] = below[j] * (1 - mlp->values[i][j] * mlp->values[i][j]);
    }
}

void mlp_step(struct mlp *mlp, double lr, double norm_max)
{
    double norm = 0;
    for (size_t i = 0; i < mlp->parameter_count; i++)
        norm += mlp->gradient[i] * mlp->gradient[i];
    norm = sqrt(norm);
    const double scale = norm > norm_max ? norm_max / norm : 1;
    mlp->step_count++;
    const double mean_part = 1 - pow(beta1, (double)mlp->step_count);
    const double squares_part = 1 - pow(beta2, (double)mlp->step_count);
    for (size_t i = 0; i < mlp->parameter_count; i++) {
        const double gradient = scale * mlp->gradient[i];
        mlp->mean[i] = beta1 * mlp->mean[i] + (1 - beta1) * gradient;
        mlp->squares[i] = beta2 * mlp->squares[i] + (1 - beta2) * gradient * gradient;
        mlp->parameters[i] -=
            lr * (mlp->mean[i] / mean_part) / (sqrt(mlp->squares[i] / squares_part) + epsilon);
        mlp->gradient[i] = 0;
    }
}
