/*
 * Loss: what a model's outputs are held against, its gradient, and what it got right.
 *
 * Which loss it is says the model's spec. Means are over rows: an input, or a step of a sequence
 * model; of squared errors over every value.
 */
#pragma once

#include "train/dataset.h"
#include "train/model.h"

#include <stdint.h>

/* As gathered: labels [rows] of classes, or values [rows, values]; the other is NULL. */
struct targets {
    const int32_t *labels;
    const float *values;
};

struct loss {
    double mean;
    uint32_t correct; /* rows whose class was told; 0 of values */
    uint32_t rows;
};

/* Of the outputs of the last forward; fills model_logits_gradient as well. */
struct loss loss_with_gradient(struct model *model, const struct targets *targets);

/* The same without gradient, over the first `count` inputs only (a last batch may be short). */
struct loss loss_of_rows(struct model *model, const struct targets *targets, uint32_t count);

/* INVALID when inputs or targets of such data do not fit the model. */
MUST_CHECK int loss_check_data(const struct model_spec *spec, const struct dataset_shape *shape,
                               struct error *error);
