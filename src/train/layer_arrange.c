/* The plans of a network rearranged for a kernel set; what is computed stays the same. */
#include "base/assert.h"
#include "train/layer.h"

#include <string.h>

/* Whether a residual adds what plan `index` takes in: then that must be there to be added. */
static bool is_skipped_from(const struct layer_plan *plans, uint32_t count, uint32_t index)
{
    for (uint32_t i = 0; i < count; i++)
        if (plans[i].kind == &layer_residual && plans[i].from == index)
            return true;
    return false;
}

static bool is_block(const struct layer_plan *plans, uint32_t count, uint32_t i)
{
    if (i + 2 >= count || plans[i].kind != &layer_conv)
        return false;
    const struct layer_plan *pool = &plans[i + 1], *relu = &plans[i + 2];
    return plans[i].spec.stride == 1 && plans[i].spec.kernel % 2 == 1 &&
           plans[i].output.height % 2 == 0 && plans[i].output.width % 2 == 0 &&
           pool->spec.type == LAYER_MAX_POOL && pool->spec.kernel == 2 && pool->spec.stride == 2 &&
           relu->spec.type == LAYER_RELU && !is_skipped_from(plans, count, i + 1) &&
           !is_skipped_from(plans, count, i + 2);
}

/* The largest of what ReLU leaves is what ReLU leaves of the largest, and so are their gradients:
 * behind the pool there is less to go through. */
static void pool_before_relu(struct layer_plan *plans, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        struct layer_plan *relu = &plans[i], *pool = &plans[i + 1];
        if (relu->kind != &layer_activation || relu->spec.type != LAYER_RELU ||
            pool->kind != &layer_pool || pool->spec.type != LAYER_MAX_POOL ||
            is_skipped_from(plans, count, i) || is_skipped_from(plans, count, i + 1))
            continue;
        const struct layer_plan kept = *relu;
        *relu = *pool;
        *pool = kept;
        pool->input = pool->output = relu->output;
    }
}

static bool takes_channels_last(const struct layer_plan *plan)
{
    const struct layer_shape s = plan->input;
    if (s.is_sequence || (s.channels == 1 && s.height == 1))
        return false;
    return plan->kind == &layer_conv || plan->kind == &layer_pool ||
           plan->kind == &layer_batch_norm || plan->kind == &layer_local_norm ||
           plan->kind == &layer_activation || plan->kind == &layer_gelu ||
           plan->kind == &layer_dropout || plan->kind == &layer_residual;
}

/* Marks runs of image layers that hold a convolution. */
static void mark_channels_last(struct layer_plan *plans, uint32_t count)
{
    for (uint32_t begin = 0; begin < count;) {
        uint32_t end = begin;
        bool has_conv = false;
        for (; end < count && takes_channels_last(&plans[end]); end++)
            has_conv = has_conv || plans[end].kind == &layer_conv;
        for (uint32_t i = begin; has_conv && i < end; i++)
            plans[i].is_channels_last = true;
        begin = end + 1;
    }
    /* A residual adds like to like, or nothing is rearranged at all. */
    for (uint32_t i = 0; i < count; i++)
        if (plans[i].kind == &layer_residual &&
            plans[plans[i].from].is_channels_last != plans[i].is_channels_last)
            for (uint32_t k = 0; k < count; k++)
                plans[k].is_channels_last = false;
}

static bool is_layout_free(struct layer_shape shape)
{
    return shape.channels == 1 || shape.height * shape.width == 1;
}

/* Where the earlier layer went that the residual at `index` adds. */
static uint32_t place_before(const uint32_t *place, uint32_t from, uint32_t index)
{
    ASSERT(from < index);
    return place[from];
}

/* Copies plans with a change of layout wherever it changes; residuals follow their layer. */
static uint32_t insert_reorders(struct layer_plan *plans, uint32_t count)
{
    struct layer_plan before[LAYERS_MAX];
    uint32_t place[LAYERS_MAX], kept = 0;
    memcpy(before, plans, sizeof(*plans) * count);
    bool is_last = false;
    for (uint32_t i = 0; i < count; i++) {
        struct layer_plan plan = before[i];
        if (plan.is_channels_last != is_last && !is_layout_free(plan.input)) {
            ASSERT(kept < LAYERS_MAX);
            plans[kept++] = (struct layer_plan){.kind = &layer_reorder,
                                                .name = "reorder",
                                                .input = plan.input,
                                                .output = plan.input,
                                                .is_channels_last = plan.is_channels_last};
        }
        is_last = plan.is_channels_last;
        place[i] = kept;
        if (plan.kind == &layer_residual)
            plan.from = place_before(place, plan.from, i);
        ASSERT(kept < LAYERS_MAX);
        plans[kept++] = plan;
    }
    return kept;
}

static uint32_t join_blocks(struct layer_plan *plans, uint32_t count)
{
    uint32_t place[LAYERS_MAX], kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct layer_plan plan = plans[i];
        place[i] = kept;
        if (plan.kind == &layer_residual)
            plan.from = place_before(place, plan.from, i);
        if (is_block(plans, count, i)) {
            plan.kind = &layer_conv_block;
            plan.output = plans[i + 2].output;
            place[i + 1] = place[i + 2] = kept;
            i += 2;
        }
        plans[kept++] = plan;
    }
    return kept;
}

uint32_t layer_arrange(struct kernel_set *kernels, bool can_be_channels_last,
                       struct layer_plan plans[LAYERS_MAX], uint32_t count)
{
    pool_before_relu(plans, count);
    if (kernel_set_has_conv_block(kernels))
        count = join_blocks(plans, count);
    bool has_conv = false;
    for (uint32_t i = 0; i < count; i++)
        has_conv = has_conv || plans[i].kind == &layer_conv;
    if (!can_be_channels_last || !has_conv || !kernel_set_prefers_channels_last(kernels))
        return count;
    mark_channels_last(plans, count);
    return insert_reorders(plans, count);
}
