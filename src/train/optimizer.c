#include "train/optimizer.h"

#include "base/assert.h"

#include <stdlib.h>

struct optimizer {
    struct optimizer_options options;
    size_t parameter_count;
    float *velocity; /* [parameter_count] */
};

void optimizer_options_default(struct optimizer_options *out_options)
{
    *out_options = (struct optimizer_options){.lr = 0.01, .momentum = 0.9, .weight_decay = 0.0005};
}

static int check_lr(double lr, struct error *error)
{
    if (!(lr > 0 && lr <= 100))
        return error_set(error, ERROR_INVALID, "optimizer: lr %g is not above 0 and at most 100",
                         lr);
    return 0;
}

int optimizer_options_check(const struct optimizer_options *options, struct error *error)
{
    if (check_lr(options->lr, error) < 0)
        return -1;
    if (!(options->momentum >= 0 && options->momentum < 1))
        return error_set(error, ERROR_INVALID,
                         "optimizer: momentum %g is not at least 0 and below 1", options->momentum);
    if (!(options->weight_decay >= 0 && options->weight_decay <= 1))
        return error_set(error, ERROR_INVALID, "optimizer: weight_decay %g is not from 0 to 1",
                         options->weight_decay);
    if (options->is_nesterov && options->momentum <= 0)
        return error_set(error, ERROR_INVALID, "optimizer: nesterov needs a momentum");
    return 0;
}

int optimizer_open(const struct optimizer_options *options, size_t parameter_count,
                   struct optimizer **out_optimizer, struct error *error)
{
    if (optimizer_options_check(options, error) < 0)
        return -1;
    struct optimizer *optimizer = calloc(1, sizeof(*optimizer));
    ASSERT(optimizer != NULL);
    optimizer->options = *options;
    optimizer->parameter_count = parameter_count;
    optimizer->velocity = calloc(parameter_count ? parameter_count : 1, sizeof(float));
    ASSERT(optimizer->velocity != NULL);
    *out_optimizer = optimizer;
    return 0;
}

void optimizer_free(struct optimizer *optimizer)
{
    if (!optimizer)
        return;
    free(optimizer->velocity);
    free(optimizer);
}

const struct optimizer_options *optimizer_options(const struct optimizer *optimizer)
{
    return &optimizer->options;
}

int optimizer_set_lr(struct optimizer *optimizer, double lr, struct error *error)
{
    if (check_lr(lr, error) < 0)
        return -1;
    optimizer->options.lr = lr;
    return 0;
}

void optimizer_step(struct optimizer *optimizer, struct kernel_set *kernels, float *parameters,
                    const float *gradients)
{
    const struct sgd_rule rule = {
        .lr = (float)optimizer->options.lr,
        .momentum = (float)optimizer->options.momentum,
        .weight_decay = (float)optimizer->options.weight_decay,
        .is_nesterov = optimizer->options.is_nesterov,
    };
    kernel_sgd(kernels, &rule, parameters, optimizer->velocity, gradients,
               optimizer->parameter_count);
}

float *optimizer_velocity(struct optimizer *optimizer)
{
    return optimizer->velocity;
}

size_t optimizer_parameter_count(const struct optimizer *optimizer)
{
    return optimizer->parameter_count;
}
