/*
 * Evaluation: loss and accuracy of a model over a dataset, in slices, so that whoever runs it can
 * answer others in between.
 *
 *     evaluation_init(&evaluation, model, dataset, 0, 0, &error);
 *     while (!evaluation_advance(&evaluation))
 *         serve_others();
 *
 * Parameters that change between slices are seen by the later ones: copy them into a model of the
 * evaluation's own when that matters.
 */
#pragma once

#include "base/error.h"
#include "train/dataset.h"
#include "train/model.h"

#include <stdbool.h>
#include <stdint.h>

struct evaluation {
    struct model *model;
    const struct dataset *dataset;
    uint32_t first, count, next;
    double loss_sum;                 /* over rows */
    double value_sum, value_squares; /* of numbers to be told */
    uint64_t correct, rows;
};

struct evaluation_result {
    double loss;
    double accuracy;   /* 0 to 1; of numbers R^2: 1 is all right, 0 no better than their mean */
    double error;      /* of numbers: the root of the mean squared error; of classes 1 - accuracy */
    double perplexity; /* of a sequence model: exp(loss); else 0 */
    uint32_t count;
};

/* Over records [first, first + count); count 0 means all from `first` on. Borrows both. INVALID
 * when the range or the images do not fit. */
MUST_CHECK int evaluation_init(struct evaluation *evaluation, struct model *model,
                               const struct dataset *dataset, uint32_t first, uint32_t count,
                               struct error *error);
/* One batch of the model's size. True when all is done. */
bool evaluation_advance(struct evaluation *evaluation);
/* Of what was seen so far. */
struct evaluation_result evaluation_result(const struct evaluation *evaluation);

/* What training stops early at; 0: not asked for. All that is asked for must be reached. */
struct evaluation_target {
    double accuracy;                /* at least */
    double loss, error, perplexity; /* at most */
    double unit; /* of numbers: an error of 1 is so much in the data's own; 0: it is the same */
};

/* Whether there is a target and the result reaches it; `out_reached` says by what then. */
bool evaluation_reaches(const struct evaluation_result *result,
                        const struct evaluation_target *target, char *out_reached, size_t out_size);

/* All slices at once. */
MUST_CHECK int evaluation_run(struct model *model, const struct dataset *dataset,
                              struct evaluation_result *out_result, struct error *error);
