#include "train/evaluation.h"

#include "train/loss.h"

#include <inttypes.h>

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
    if (shape->channels != spec->channels || shape->height != spec->height ||
        shape->width != spec->width || shape->classes > spec->classes)
        return error_set(error, ERROR_INVALID,
                         "evaluation: images of %u x %u x %u in %u classes do not fit the model",
                         shape->channels, shape->height, shape->width, shape->classes);
    *evaluation = (struct evaluation){
        .model = model,
        .dataset = dataset,
        .first = first,
        .count = count ? count : shape->count - first,
    };
    return 0;
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
    int32_t labels[SLICE_MAX];
    for (uint32_t i = 0; i < rows; i++)
        indices[i] = evaluation->first + evaluation->next + i;
    dataset_gather(evaluation->dataset, indices, rows, model_input(evaluation->model), labels);
    model_forward(evaluation->model);
    const struct loss loss = loss_of_rows(evaluation->model, labels, rows);
    evaluation->loss_sum += loss.mean * rows;
    evaluation->correct += loss.correct;
    evaluation->next += rows;
    return evaluation->next == evaluation->count;
}

struct evaluation_result evaluation_result(const struct evaluation *evaluation)
{
    if (evaluation->next == 0)
        return (struct evaluation_result){0};
    return (struct evaluation_result){
        .loss = evaluation->loss_sum / evaluation->next,
        .accuracy = (double)evaluation->correct / evaluation->next,
        .count = evaluation->next,
    };
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
