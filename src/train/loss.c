#include "train/loss.h"

#include "base/assert.h"

#include <inttypes.h>
#include <math.h>

/* Rows of outputs, their targets, and where the gradient goes unless it is NULL. */
struct rows {
    uint32_t count, width;
    const float *outputs;
    const int32_t *labels;
    const float *values;
    float *gradient;
};

static struct loss cross_entropy(struct model *model, const struct rows *rows)
{
    struct loss loss = {.rows = rows->count};
    const struct cross_entropy arguments = {
        .batch = rows->count,
        .classes = rows->width,
        .logits = rows->outputs,
        .labels = rows->labels,
        .logits_gradient = rows->gradient,
        .out_correct = &loss.correct,
    };
    loss.mean = kernel_cross_entropy(model_kernels(model), &arguments);
    return loss;
}

static struct loss mean_squared_error(const struct rows *rows)
{
    const size_t count = (size_t)rows->count * rows->width;
    const float share = 2 / (float)count;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const float off = rows->outputs[i] - rows->values[i];
        sum += (double)off * (double)off;
        if (rows->gradient)
            rows->gradient[i] = share * off;
    }
    return (struct loss){.mean = sum / (double)count, .rows = rows->count};
}

/* Crammer and Singer's margin of 1, as torch's MultiMarginLoss has it. */
static struct loss hinge(const struct rows *rows)
{
    struct loss loss = {.rows = rows->count};
    const float share = 1 / ((float)rows->count * (float)rows->width);
    double sum = 0;
    for (size_t n = 0; n < rows->count; n++) {
        const float *outputs = rows->outputs + n * rows->width;
        const uint32_t label = (uint32_t)rows->labels[n];
        uint32_t best = 0, broken = 0;
        for (uint32_t c = 0; c < rows->width; c++) {
            const float margin = 1 - outputs[label] + outputs[c];
            const bool is_broken = c != label && margin > 0;
            best = outputs[c] > outputs[best] ? c : best;
            broken += is_broken;
            sum += is_broken ? (double)margin : 0;
            if (rows->gradient)
                rows->gradient[n * rows->width + c] = is_broken ? share : 0;
        }
        if (rows->gradient)
            rows->gradient[n * rows->width + label] = -share * (float)broken;
        loss.correct += best == label;
    }
    loss.mean = sum / ((double)rows->count * rows->width);
    return loss;
}

/* Written so that exp never overflows: max(x, 0) - x y + log(1 + exp(-|x|)). */
static struct loss logistic(const struct rows *rows)
{
    struct loss loss = {.rows = rows->count};
    double sum = 0;
    for (size_t n = 0; n < rows->count; n++) {
        const double x = (double)rows->outputs[n], y = rows->labels[n];
        sum += fmax(x, 0) - x * y + log1p(exp(-fabs(x)));
        if (rows->gradient)
            rows->gradient[n] = (float)((1 / (1 + exp(-x)) - y) / rows->count);
        loss.correct += (x > 0) == (y > 0);
    }
    loss.mean = sum / rows->count;
    return loss;
}

static struct loss loss_of(struct model *model, const struct rows *rows)
{
    switch (model_spec(model)->loss) {
    case LOSS_CROSS_ENTROPY:
        return cross_entropy(model, rows);
    case LOSS_MSE:
        return mean_squared_error(rows);
    case LOSS_HINGE:
        return hinge(rows);
    case LOSS_LOGISTIC:
        return logistic(rows);
    case LOSS_KIND_COUNT:
        break;
    }
    UNREACHABLE("a loss that is none");
}

static struct rows rows_of(struct model *model, const struct targets *targets, uint32_t count)
{
    const struct model_spec *spec = model_spec(model);
    return (struct rows){
        .count = count * model_output_rows(model),
        .width = spec->loss == LOSS_MSE        ? (uint32_t)spec->values
                 : spec->loss == LOSS_LOGISTIC ? 1
                                               : (uint32_t)spec->classes,
        .outputs = model_logits(model),
        .labels = targets->labels,
        .values = targets->values,
    };
}

struct loss loss_with_gradient(struct model *model, const struct targets *targets)
{
    struct rows rows = rows_of(model, targets, model_batch(model));
    rows.gradient = model_logits_gradient(model);
    ASSERT(rows.gradient != NULL);
    return loss_of(model, &rows);
}

struct loss loss_of_rows(struct model *model, const struct targets *targets, uint32_t count)
{
    ASSERT(count > 0 && count <= model_batch(model));
    const struct rows rows = rows_of(model, targets, count);
    return loss_of(model, &rows);
}

static int check_targets(const struct model_spec *spec, const struct dataset_shape *shape,
                         struct error *error)
{
    if ((spec->loss == LOSS_MSE) != (shape->target == DATASET_VALUES))
        return error_set(error, ERROR_INVALID, "loss %s is not for targets that are %s",
                         loss_kind_name(spec->loss),
                         shape->target == DATASET_VALUES ? "numbers" : "classes");
    if (shape->target == DATASET_VALUES && shape->values != spec->values)
        return error_set(error, ERROR_INVALID, "%u numbers to tell, but the model tells %" PRIu64,
                         shape->values, spec->values);
    if (shape->target != DATASET_VALUES && shape->classes > spec->classes)
        return error_set(error, ERROR_INVALID, "%u classes, but the model tells %" PRIu64 " apart",
                         shape->classes, spec->classes);
    return 0;
}

int loss_check_data(const struct model_spec *spec, const struct dataset_shape *shape,
                    struct error *error)
{
    if (shape->channels != spec->channels || shape->height != spec->height ||
        shape->width != spec->width)
        return error_set(error, ERROR_INVALID,
                         "inputs are %u x %u x %u, but the model takes %" PRIu64 " x %" PRIu64
                         " x %" PRIu64,
                         shape->channels, shape->height, shape->width, spec->channels, spec->height,
                         spec->width);
    if ((shape->vocabulary != 0) != (spec->vocabulary != 0) || shape->vocabulary > spec->vocabulary)
        return error_set(error, ERROR_INVALID,
                         "inputs have a vocabulary of %u, but the model takes %" PRIu64,
                         shape->vocabulary, spec->vocabulary);
    return check_targets(spec, shape, error);
}
