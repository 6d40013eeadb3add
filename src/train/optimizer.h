/*
 * Optimizer: turns gradients into new parameters: SGD with momentum and Nesterov, Adam, AdamW; with
 * weight decay, clipping by the gradient's norm, and a schedule of the learning rate.
 *
 * Rules and defaults are torch's. Only the first `learned_count` parameters are changed: what lies
 * behind are running statistics.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "tensor/kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_KIND_COUNT };
extern const char *const optimizer_kind_names[]; /* "sgd", "adam", "adamw", NULL */

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,   /* times `factor` after every `period` steps */
    SCHEDULE_COSINE, /* from lr down to factor * lr over `period` steps, then stays */
    SCHEDULE_KIND_COUNT,
};
extern const char *const schedule_kind_names[]; /* "constant", "step", "cosine", NULL */

struct schedule {
    enum schedule_kind kind;
    uint64_t
        warmup; /* steps in which lr rises from lr / warmup to lr; the rest counts from there */
    uint64_t period; /* at least 1 unless constant */
    double factor;   /* in [0, 1] */
};

struct optimizer_options {
    double lr;           /* > 0, at most 100 */
    double momentum;     /* in [0, 1); of sgd */
    double weight_decay; /* in [0, 1] */
    bool is_nesterov;    /* needs momentum */
    enum optimizer_kind kind;
    double beta1, beta2, epsilon; /* of adam; 0: 0.9, 0.999, 1e-8 */
    double clip_norm;             /* gradients longer than this are shortened to it; 0: not */
    struct schedule schedule;
};

struct optimizer;

/* lr 0.01, momentum 0.9, weight decay 0.0005: with batches of 32 LeNet-5 passes 0.885 on
 * Fashion-MNIST's test images after 3 to 7 epochs. */
void optimizer_options_default(struct optimizer_options *out_options);
/* How much of the last step's direction stays in the next one; of adam beta1. */
double optimizer_momentum(const struct optimizer_options *options);
MUST_CHECK int optimizer_options_check(const struct optimizer_options *options,
                                       struct error *error);
/* The factor of lr at a step, counted from 0. */
double schedule_factor(const struct schedule *schedule, uint64_t step);

MUST_CHECK int optimizer_open(const struct optimizer_options *options, size_t parameter_count,
                              size_t learned_count, struct optimizer **out_optimizer,
                              struct error *error);
void optimizer_free(struct optimizer *optimizer); /* NULL is fine */
DEFINE_AUTO(optimizer);

const struct optimizer_options *optimizer_options(const struct optimizer *optimizer);
/* Takes effect with the next step; the velocity is kept. */
MUST_CHECK int optimizer_set_lr(struct optimizer *optimizer, double lr, struct error *error);

/* Of sgd: steps without momentum, at lr / (1 - momentum), as far as its steps go in the end; the
 * velocity is then the last gradient. The others do not change. */
void optimizer_set_plain(struct optimizer *optimizer, bool is_plain);

/* Gradients are shortened in place when they are clipped. */
void optimizer_step(struct optimizer *optimizer, struct kernel_set *kernels, float *parameters,
                    float *gradients);

/* Forgets what the steps before have gathered (velocity, moments); the place in the schedule stays.
 * So that what comes of the next steps follows from the parameters and the data alone. */
void optimizer_restart(struct optimizer *optimizer);

/* Steps done: the place in the schedule, and Adam's. */
uint64_t optimizer_step_count(const struct optimizer *optimizer);
void optimizer_set_step_count(struct optimizer *optimizer, uint64_t step_count);

/* [parameter_count]; written to checkpoints and restored from them. Adam's is its first moment. */
float *optimizer_velocity(struct optimizer *optimizer);
/* Adam's second moment, the same size; NULL of others. */
float *optimizer_second(struct optimizer *optimizer);
size_t optimizer_parameter_count(const struct optimizer *optimizer);
