#include "train/loss.h"

#include "base/assert.h"

struct loss loss_with_gradient(struct model *model, const int32_t *labels)
{
    struct loss loss = {0};
    const struct cross_entropy arguments = {
        .batch = model_batch(model),
        .classes = (uint32_t)model_spec(model)->classes,
        .logits = model_logits(model),
        .labels = labels,
        .logits_gradient = model_logits_gradient(model),
        .out_correct = &loss.correct,
    };
    ASSERT(arguments.logits_gradient != NULL);
    loss.mean = kernel_cross_entropy(model_kernels(model), &arguments);
    return loss;
}

struct loss loss_of_rows(struct model *model, const int32_t *labels, uint32_t count)
{
    ASSERT(count > 0 && count <= model_batch(model));
    struct loss loss = {0};
    const struct cross_entropy arguments = {
        .batch = count,
        .classes = (uint32_t)model_spec(model)->classes,
        .logits = model_logits(model),
        .labels = labels,
        .out_correct = &loss.correct,
    };
    loss.mean = kernel_cross_entropy(model_kernels(model), &arguments);
    return loss;
}
