/*
 * Loss: mean softmax cross entropy of a model's logits against labels, and the rows it got right.
 */
#pragma once

#include "train/model.h"

#include <stdint.h>

struct loss {
    double mean;
    uint32_t correct; /* rows whose largest logit is the label */
};

/* Of the logits of the last forward; fills model_logits_gradient as well. */
struct loss loss_with_gradient(struct model *model, const int32_t *labels);

/* The same without gradient, over the first `count` rows only (a last batch may be short). */
struct loss loss_of_rows(struct model *model, const int32_t *labels, uint32_t count);
