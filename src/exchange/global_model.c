/*
 * Global model: the arithmetic of the outer step, one pass over the vectors for each action.
 */
#include "exchange/global_model.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct global_model {
    size_t count;
    float *parameters;
    float *sum;
    double weight;              /* in the sum */
    struct robust_round *round; /* what the sum is made of, at the fold; NULL: it is a plain one */
    float *momentum;
    bool has_momentum;
    float *kept, *kept_momentum;
    bool has_kept;
    bool can_be_late;
    const float *late; /* an update that has entered up to late_done; NULL: none is late */
    float late_factor;
    size_t late_done;
    uint64_t version;
};

int global_model_open(const float *parameters, const float *momentum, size_t count,
                      struct global_model **out_model, struct error *error)
{
    AUTO(global_model) struct global_model *model = memory_zeroed(1, sizeof *model);
    model->count = count;
    /* Large zeroed memory takes room only once it is written. */
    float **vectors[] = {&model->parameters, &model->sum, &model->momentum, &model->kept,
                         &model->kept_momentum};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (!(*vectors[i] = calloc(count, sizeof(float))))
            return error_set(error, ERROR_EXHAUSTED, "no memory for a model of %zu parameters",
                             count);
    memcpy(model->parameters, parameters, count * sizeof(float));
    if (momentum)
        memcpy(model->momentum, momentum, count * sizeof(float));
    model->has_momentum = momentum != NULL;
    *out_model = TAKE(model);
    return 0;
}

void global_model_free(struct global_model *model)
{
    if (!model)
        return;
    robust_round_free(model->round);
    free(model->parameters);
    free(model->sum);
    free(model->momentum);
    free(model->kept);
    free(model->kept_momentum);
    free(model);
}

void global_model_set_robust(struct global_model *model, const struct robust_options *options)
{
    ASSERT(model->weight == 0 && !model->round);
    if (options->kind == ROBUST_TRIMMED || options->kind == ROBUST_MEDIAN)
        model->round = robust_round_new(options, model->count);
}

static inline __attribute__((always_inline)) void
add_any(float *restrict w, const float *restrict x, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        w[i] += factor * x[i];
}

#ifdef __x86_64__
/* AVX2 alone brings no fused multiplication: the sums are the same on every machine. */
__attribute__((target("avx2"))) static void add_avx2(float *restrict w, const float *restrict x,
                                                     float factor, size_t count)
{
    add_any(w, x, factor, count);
}
#endif

static void add(float *restrict w, const float *restrict x, float factor, size_t count)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(w, x, factor, count);
        return;
    }
#endif
    add_any(w, x, factor, count);
}

/* Floats up to `until` are what they have to be. */
static void settle(struct global_model *model, size_t until)
{
    if (!model->late || until <= model->late_done)
        return;
    add(model->parameters + model->late_done, model->late + model->late_done, model->late_factor,
        until - model->late_done);
    model->late_done = until;
    if (until == model->count)
        model->late = NULL;
}

void global_model_set_late(struct global_model *model)
{
    model->can_be_late = true;
}

void global_model_release(struct global_model *model, const float *update)
{
    if (model->late == update)
        settle(model, model->count);
}

const float *global_model_parameters(struct global_model *model)
{
    settle(model, model->count);
    return model->parameters;
}

const float *global_model_parameters_until(struct global_model *model, size_t count)
{
    settle(model, count);
    return model->parameters;
}

const float *global_model_momentum(const struct global_model *model)
{
    return model->momentum;
}

bool global_model_has_momentum(const struct global_model *model)
{
    return model->has_momentum;
}

uint64_t global_model_version(const struct global_model *model)
{
    return model->version;
}

/* D = scale * x enters W; late, where it may. */
static void enter(struct global_model *model, const float *restrict x, double scale,
                  const struct sync_outer *outer, bool can_be_late)
{
    settle(model, model->count);
    float *restrict const w = model->parameters;
    float *restrict const b = model->momentum;
    model->version++;
    const double rate = outer->rate > 0 ? outer->rate : 1;
    const double direct = outer->rate > 0 ? outer->direct : 1;
    const float to_w = (float)(rate * direct * scale);
    if (outer->rate <= 0 || (outer->momentum == 0 && outer->carried == 0)) {
        model->late = x;
        model->late_factor = to_w;
        model->late_done = 0;
        if (!can_be_late)
            settle(model, model->count);
        return;
    }
    const float keep = (float)outer->momentum, to_b = (float)scale;
    const float carry = (float)(rate * outer->carried);
    model->has_momentum = true;
    for (size_t i = 0; i < model->count; i++) {
        const float momentum = keep * b[i] + to_b * x[i];
        b[i] = momentum;
        w[i] += to_w * x[i] + carry * momentum;
    }
}

void global_model_apply(struct global_model *model, const float *update, double weight,
                        const struct sync_outer *outer)
{
    enter(model, update, weight, outer, model->can_be_late);
}

void global_model_gather(struct global_model *model, const float *update, double weight)
{
    const float factor = (float)weight;
    struct error ignored; /* without memory to keep it the round does without this push */
    if (model->round && robust_round_add(model->round, update, weight, &ignored) < 0)
        return;
    if (!model->round)
        add(model->sum, update, factor, model->count);
    model->weight += weight;
}

static void sum_empty(struct global_model *model)
{
    if (model->weight == 0)
        return;
    if (model->round)
        robust_round_empty(model->round);
    memset(model->sum, 0, model->count * sizeof(float));
    model->weight = 0;
}

void global_model_restart(struct global_model *model)
{
    sum_empty(model);
    model->has_kept = false;
}

bool global_model_can_fold(const struct global_model *model)
{
    return model->weight > 0 || model->round;
}

bool global_model_can_return(const struct global_model *model)
{
    return model->has_kept;
}

void global_model_fold(struct global_model *model, double weight, const struct sync_outer *outer)
{
    ASSERT(global_model_can_fold(model));
    if (model->weight == 0)
        return;
    if (model->round)
        robust_round_sum(model->round, model->sum);
    enter(model, model->sum, 1 / (weight > 0 ? weight : model->weight), outer, false);
    sum_empty(model);
}

void global_model_keep(struct global_model *model)
{
    settle(model, model->count);
    const size_t size = model->count * sizeof(float);
    memcpy(model->kept, model->parameters, size);
    memcpy(model->kept_momentum, model->momentum, size);
    model->has_kept = true;
}

void global_model_return(struct global_model *model)
{
    settle(model, model->count);
    const size_t size = model->count * sizeof(float);
    ASSERT(model->has_kept);
    memcpy(model->parameters, model->kept, size);
    memcpy(model->momentum, model->kept_momentum, size);
    sum_empty(model);
    model->version++;
}

bool global_model_act(struct global_model *model, const struct sync_action *action,
                      const float *update)
{
    if (action->kind == SYNC_APPLY)
        global_model_apply(model, update, action->weight, &action->outer);
    else if (action->kind == SYNC_GATHER)
        global_model_gather(model, update, action->weight);
    else if (action->kind == SYNC_FOLD)
        global_model_fold(model, action->weight, &action->outer);
    else if (action->kind == SYNC_KEEP)
        global_model_keep(model);
    else if (action->kind == SYNC_RETURN)
        global_model_return(model);
    else
        return false;
    return true;
}
