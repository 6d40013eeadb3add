#include "train/optimizer.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const optimizer_kind_names[] = {"sgd", "adam", "adamw", NULL};
const char *const schedule_kind_names[] = {"constant", "step", "cosine", NULL};
_Static_assert(sizeof(optimizer_kind_names) / sizeof(char *) == OPTIMIZER_KIND_COUNT + 1, "names");
_Static_assert(sizeof(schedule_kind_names) / sizeof(char *) == SCHEDULE_KIND_COUNT + 1, "names");

struct optimizer {
    struct optimizer_options options;
    size_t parameter_count, learned_count;
    uint64_t step_count;
    uint64_t moments_since; /* step_count at which velocity and second were zero */
    bool is_plain;          /* as if there were no momentum */
    float *velocity;        /* [parameter_count] */
    float *second;          /* [parameter_count]; of adam */
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

static int check_schedule(const struct schedule *schedule, struct error *error)
{
    if (schedule->kind >= SCHEDULE_KIND_COUNT)
        return error_set(error, ERROR_INVALID, "schedule: kind %d does not exist",
                         (int)schedule->kind);
    if (schedule->kind != SCHEDULE_CONSTANT && schedule->period == 0)
        return error_set(error, ERROR_INVALID, "schedule: %s needs a period",
                         schedule_kind_names[schedule->kind]);
    if (!(schedule->factor >= 0 && schedule->factor <= 1))
        return error_set(error, ERROR_INVALID, "schedule: factor %g is not from 0 to 1",
                         schedule->factor);
    return 0;
}

static int check_adam(const struct optimizer_options *options, struct error *error)
{
    if (options->kind >= OPTIMIZER_KIND_COUNT)
        return error_set(error, ERROR_INVALID, "optimizer: kind %d does not exist",
                         (int)options->kind);
    if (!(options->beta1 >= 0 && options->beta1 < 1 && options->beta2 >= 0 && options->beta2 < 1))
        return error_set(error, ERROR_INVALID,
                         "optimizer: beta1 %g and beta2 %g are not at least 0 and below 1",
                         options->beta1, options->beta2);
    if (!(options->epsilon >= 0 && options->epsilon <= 1))
        return error_set(error, ERROR_INVALID, "optimizer: epsilon %g is not from 0 to 1",
                         options->epsilon);
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
    if (options->kind != OPTIMIZER_SGD && options->momentum > 0)
        return error_set(error, ERROR_INVALID, "optimizer: momentum is of sgd; adam has beta1");
    if (!(options->clip_norm >= 0 && isfinite(options->clip_norm)))
        return error_set(error, ERROR_INVALID, "optimizer: clip_norm %g is not at least 0",
                         options->clip_norm);
    if (check_adam(options, error) < 0)
        return -1;
    return check_schedule(&options->schedule, error);
}

double schedule_factor(const struct schedule *schedule, uint64_t step)
{
    if (step < schedule->warmup)
        return (double)(step + 1) / (double)schedule->warmup;
    const uint64_t at = step - schedule->warmup;
    switch (schedule->kind) {
    case SCHEDULE_STEP: {
        const uint64_t times = at / schedule->period;
        return pow(schedule->factor, (double)times);
    }
    case SCHEDULE_COSINE: {
        const double share = at < schedule->period ? (double)at / (double)schedule->period : 1;
        return schedule->factor + (1 - schedule->factor) * (1 + cos(M_PI * share)) / 2;
    }
    case SCHEDULE_CONSTANT:
    case SCHEDULE_KIND_COUNT:
        break;
    }
    return 1;
}

static float *zeros(size_t count)
{
    float *floats = calloc(count ? count : 1, sizeof(float));
    ASSERT(floats != NULL);
    return floats;
}

int optimizer_open(const struct optimizer_options *options, size_t parameter_count,
                   size_t learned_count, struct optimizer **out_optimizer, struct error *error)
{
    ASSERT(learned_count <= parameter_count);
    if (optimizer_options_check(options, error) < 0)
        return -1;
    struct optimizer *optimizer = calloc(1, sizeof(*optimizer));
    ASSERT(optimizer != NULL);
    optimizer->options = *options;
    optimizer->parameter_count = parameter_count;
    optimizer->learned_count = learned_count;
    optimizer->velocity = zeros(parameter_count);
    if (options->kind != OPTIMIZER_SGD)
        optimizer->second = zeros(parameter_count);
    *out_optimizer = optimizer;
    return 0;
}

void optimizer_free(struct optimizer *optimizer)
{
    if (!optimizer)
        return;
    free(optimizer->velocity);
    free(optimizer->second);
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

void optimizer_set_plain(struct optimizer *optimizer, bool is_plain)
{
    optimizer->is_plain = is_plain;
}

static void clip(const struct optimizer *optimizer, struct kernel_set *kernels, float *gradients)
{
    double sum = 0;
    for (size_t i = 0; i < optimizer->learned_count; i++)
        sum += (double)gradients[i] * (double)gradients[i];
    const double norm = sqrt(sum), most = optimizer->options.clip_norm;
    if (norm > most)
        kernel_scale(kernels, (float)(most / (norm + 1e-6)), gradients, optimizer->learned_count);
}

static void step_sgd(struct optimizer *optimizer, struct kernel_set *kernels, double lr,
                     float *parameters, const float *gradients)
{
    struct sgd_rule rule = {
        .lr = (float)lr,
        .momentum = (float)optimizer->options.momentum,
        .weight_decay = (float)optimizer->options.weight_decay,
        .is_nesterov = optimizer->options.is_nesterov,
    };
    if (optimizer->is_plain)
        rule = sgd_rule_plain(&rule);
    kernel_sgd(kernels, &rule, parameters, optimizer->velocity, gradients,
               optimizer->learned_count);
}

double optimizer_momentum(const struct optimizer_options *options)
{
    if (options->kind == OPTIMIZER_SGD)
        return options->momentum;
    return options->beta1 > 0 ? options->beta1 : 0.9;
}

/* Kingma and Ba 2015, algorithm 1; AdamW decays apart from the gradient: Loshchilov and Hutter
 * 2019, algorithm 2. */
static void step_adam(struct optimizer *optimizer, struct kernel_set *kernels, double lr,
                      float *parameters, const float *gradients)
{
    const struct optimizer_options *o = &optimizer->options;
    const double beta1 = optimizer_momentum(o), beta2 = o->beta2 > 0 ? o->beta2 : 0.999;
    const double step = (double)(optimizer->step_count - optimizer->moments_since) + 1;
    const bool is_apart = o->kind == OPTIMIZER_ADAMW;
    const struct adam_rule rule = {
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .lr = (float)(lr / (1 - pow(beta1, step))),
        .second_scale = (float)(1 / sqrt(1 - pow(beta2, step))),
        .epsilon = (float)(o->epsilon > 0 ? o->epsilon : 1e-8),
        .weight_decay = is_apart ? 0 : (float)o->weight_decay,
        .shrink = is_apart ? (float)(1 - lr * o->weight_decay) : 1,
    };
    kernel_adam(kernels, &rule, parameters, optimizer->velocity, optimizer->second, gradients,
                optimizer->learned_count);
}

void optimizer_step(struct optimizer *optimizer, struct kernel_set *kernels, float *parameters,
                    float *gradients)
{
    const struct optimizer_options *options = &optimizer->options;
    const double lr = options->lr * schedule_factor(&options->schedule, optimizer->step_count);
    if (options->clip_norm > 0)
        clip(optimizer, kernels, gradients);
    if (options->kind == OPTIMIZER_SGD)
        step_sgd(optimizer, kernels, lr, parameters, gradients);
    else
        step_adam(optimizer, kernels, lr, parameters, gradients);
    optimizer->step_count++;
}

void optimizer_restart(struct optimizer *optimizer)
{
    const size_t size = sizeof(float) * optimizer->parameter_count;
    memset(optimizer->velocity, 0, size);
    if (optimizer->second)
        memset(optimizer->second, 0, size);
    optimizer->moments_since = optimizer->step_count;
}

uint64_t optimizer_step_count(const struct optimizer *optimizer)
{
    return optimizer->step_count;
}

void optimizer_set_step_count(struct optimizer *optimizer, uint64_t step_count)
{
    optimizer->step_count = step_count;
    optimizer->moments_since = 0;
}

float *optimizer_velocity(struct optimizer *optimizer)
{
    return optimizer->velocity;
}

float *optimizer_second(struct optimizer *optimizer)
{
    return optimizer->second;
}

size_t optimizer_parameter_count(const struct optimizer *optimizer)
{
    return optimizer->parameter_count;
}
