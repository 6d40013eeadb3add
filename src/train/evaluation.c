#include "train/evaluation.h"

#include "base/assert.h"
#include "train/loss.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLICE_MAX = 1024 }; /* rows gathered at a time, so that indices fit on the stack */

int evaluation_init(struct evaluation *evaluation, struct model *model,
                    const struct dataset *dataset, uint32_t first, uint32_t count,
                    struct error *error)
{
    const struct dataset_shape *shape = dataset_shape(dataset);
    const struct model_spec *spec = model_spec(model);
    if (first >= shape->count || count > shape->count - first)
        return error_set(error, ERROR_INVALID,
                         "evaluation: records %u + %u are not within the %u there are", first,
                         count, shape->count);
    if (loss_check_data(spec, shape, error) < 0)
        return error_wrap(error, "evaluation");
    *evaluation = (struct evaluation){
        .model = model,
        .dataset = dataset,
        .first = first,
        .count = count ? count : shape->count - first,
    };
    return 0;
}

static struct loss measure_slice(struct evaluation *evaluation, const uint32_t *indices,
                                 uint32_t rows)
{
    const struct dataset_shape *shape = dataset_shape(evaluation->dataset);
    const bool has_values = shape->target == DATASET_VALUES;
    const size_t each = has_values ? shape->values : dataset_labels_each(shape);
    void *memory = calloc(rows * each, sizeof(float));
    ASSERT(memory != NULL);
    int32_t *labels = has_values ? NULL : memory;
    float *values = has_values ? memory : NULL;
    dataset_gather(evaluation->dataset, indices, rows, model_input(evaluation->model), labels);
    if (has_values)
        dataset_gather_values(evaluation->dataset, indices, rows, values);
    for (size_t i = 0; has_values && i < rows * each; i++) {
        evaluation->value_sum += (double)values[i];
        evaluation->value_squares += (double)values[i] * (double)values[i];
    }
    model_predict(evaluation->model);
    const struct targets targets = {labels, values};
    const struct loss loss = loss_of_rows(evaluation->model, &targets, rows);
    free(memory);
    return loss;
}

/* The model's batch may be larger than a slice: its last rows are then left as they were. */
bool evaluation_advance(struct evaluation *evaluation)
{
    const uint32_t left = evaluation->count - evaluation->next;
    if (left == 0)
        return true;
    uint32_t rows = model_batch(evaluation->model);
    rows = rows < left ? rows : left;
    rows = rows < SLICE_MAX ? rows : SLICE_MAX;
    uint32_t indices[SLICE_MAX];
    for (uint32_t i = 0; i < rows; i++)
        indices[i] = evaluation->first + evaluation->next + i;
    const struct loss loss = measure_slice(evaluation, indices, rows);
    evaluation->loss_sum += loss.mean * loss.rows;
    evaluation->correct += loss.correct;
    evaluation->rows += loss.rows;
    evaluation->next += rows;
    return evaluation->next == evaluation->count;
}

/* The share of the numbers' variance that is told. Of several numbers each, over all of them. */
static double determination(const struct evaluation *evaluation, double loss)
{
    const double count = (double)evaluation->rows * (double)model_spec(evaluation->model)->values;
    const double mean = evaluation->value_sum / count;
    const double variance = evaluation->value_squares / count - mean * mean;
    return variance > 0 ? 1 - loss / variance : 0;
}

struct evaluation_result evaluation_result(const struct evaluation *evaluation)
{
    if (evaluation->next == 0)
        return (struct evaluation_result){0};
    const bool has_values = model_spec(evaluation->model)->loss == LOSS_MSE;
    const double loss = evaluation->loss_sum / (double)evaluation->rows;
    const double accuracy = has_values ? determination(evaluation, loss)
                                       : (double)evaluation->correct / (double)evaluation->rows;
    return (struct evaluation_result){
        .loss = loss,
        .accuracy = accuracy,
        .error = has_values ? sqrt(loss) : 1 - accuracy,
        .perplexity = model_output_rows(evaluation->model) > 1 ? exp(loss) : 0,
        .count = evaluation->next,
    };
}

bool evaluation_reaches(const struct evaluation_result *result,
                        const struct evaluation_target *target, char *out_reached, size_t out_size)
{
    const struct {
        const char *name;
        double wanted, measured;
        bool is_more_better;
    } metrics[] = {
        {"accuracy", target->accuracy, result->accuracy, true},
        {"loss", target->loss, result->loss, false},
        {"error", target->error, result->error * (target->unit > 0 ? target->unit : 1), false},
        {"perplexity", target->perplexity, result->perplexity, false},
    };
    const char *join = "the test ";
    size_t used = 0;
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        const double wanted = metrics[i].wanted, measured = metrics[i].measured;
        if (wanted <= 0)
            continue;
        const bool is_reached = metrics[i].is_more_better ? measured >= wanted : measured <= wanted;
        if (!isfinite(result->loss) || !is_reached)
            return false;
        const int length = snprintf(out_reached + used, out_size - used, "%s%s reached %.4f", join,
                                    metrics[i].name, measured);
        used += length > 0 ? (size_t)length : 0;
        used = used < out_size ? used : out_size - 1;
        join = ", ";
    }
    return used > 0;
}

int evaluation_run(struct model *model, const struct dataset *dataset,
                   struct evaluation_result *out_result, struct error *error)
{
    struct evaluation evaluation;
    if (evaluation_init(&evaluation, model, dataset, 0, 0, error) < 0)
        return -1;
    while (!evaluation_advance(&evaluation))
        continue;
    *out_result = evaluation_result(&evaluation);
    return 0;
}
