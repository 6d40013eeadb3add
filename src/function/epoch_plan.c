#include "function/epoch_plan.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

/* Handed out. Bases never fall from one to the next: they lie in the order handed out. */
struct out_task {
    struct plan_task task;
    uint64_t base;
};

struct epoch_plan {
    struct epoch_plan_options options;
    uint8_t *is_covered; /* [batch_count] */
    uint64_t covered_count;
    struct plan_task *waiting; /* the next last; room for all batches one by one */
    size_t waiting_count;
    struct out_task *out; /* [staleness + 1, or all spans] */
    size_t out_count, out_max;
    uint64_t version, staleness_seen;
};

static void cover(struct epoch_plan *plan, struct batch_span span)
{
    ASSERT(span.count > 0 && span.first < plan->options.batch_count &&
           span.count <= plan->options.batch_count - span.first);
    for (uint64_t i = span.first; i < span.first + span.count; i++) {
        ASSERT(!plan->is_covered[i]);
        plan->is_covered[i] = 1;
    }
    plan->covered_count += span.count;
}

static void wait_again(struct epoch_plan *plan, struct plan_task task)
{
    ASSERT(plan->waiting_count < plan->options.batch_count);
    plan->waiting[plan->waiting_count++] = task;
}

static void shuffle(struct epoch_plan *plan)
{
    struct random random;
    random_init(&random, plan->options.seed);
    for (size_t i = plan->waiting_count; i > 1; i--) {
        const size_t other = (size_t)random_below(&random, i);
        const struct plan_task task = plan->waiting[i - 1];
        plan->waiting[i - 1] = plan->waiting[other];
        plan->waiting[other] = task;
    }
}

struct epoch_plan *epoch_plan_new(const struct epoch_plan_options *options)
{
    ASSERT(options->batch_count > 0 && options->span_batches > 0);
    struct epoch_plan *plan = memory_zeroed(1, sizeof(*plan));
    plan->options = *options;
    plan->version = options->version;
    plan->is_covered = memory_zeroed(options->batch_count, 1);
    plan->waiting = memory_zeroed(options->batch_count, sizeof(*plan->waiting));
    plan->out_max =
        options->staleness < options->batch_count ? options->staleness + 1 : options->batch_count;
    plan->out = memory_zeroed(plan->out_max, sizeof(*plan->out));
    for (size_t i = 0; i < options->covered_count; i++)
        cover(plan, options->covered[i]);
    for (uint64_t first = 0; first < options->batch_count;) {
        uint64_t count = 0;
        while (first + count < options->batch_count && count < options->span_batches &&
               !plan->is_covered[first + count])
            count++;
        if (count)
            wait_again(plan, (struct plan_task){.span = {first, count}});
        first += count ? count : 1;
    }
    shuffle(plan);
    plan->options.covered = NULL;
    return plan;
}

void epoch_plan_free(struct epoch_plan *plan)
{
    if (!plan)
        return;
    free(plan->is_covered);
    free(plan->waiting);
    free(plan->out);
    free(plan);
}

bool epoch_plan_take(struct epoch_plan *plan, uint64_t base, struct plan_task *out_task)
{
    ASSERT(base <= plan->version);
    ASSERT(plan->out_count == 0 || base >= plan->out[plan->out_count - 1].base);
    /* It would be added last of those that are out, the oldest first. */
    if (plan->waiting_count == 0 || plan->out_count == plan->out_max ||
        plan->version - base + plan->out_count > plan->options.staleness)
        return false;
    *out_task = plan->waiting[--plan->waiting_count];
    plan->out[plan->out_count++] = (struct out_task){*out_task, base};
    return true;
}

static size_t index_of(const struct epoch_plan *plan, uint64_t first)
{
    for (size_t i = 0; i < plan->out_count; i++)
        if (plan->out[i].task.span.first == first)
            return i;
    return SIZE_MAX;
}

bool epoch_plan_may_fold(const struct epoch_plan *plan, uint64_t first)
{
    const size_t index = index_of(plan, first);
    if (index == SIZE_MAX)
        return false;
    for (size_t i = 0; i < index; i++)
        if (plan->version + 1 + i - plan->out[i].base > plan->options.staleness)
            return false;
    return true;
}

static struct out_task remove_out(struct epoch_plan *plan, uint64_t first)
{
    const size_t index = index_of(plan, first);
    ASSERT(index != SIZE_MAX);
    const struct out_task removed = plan->out[index];
    memmove(&plan->out[index], &plan->out[index + 1],
            (plan->out_count - index - 1) * sizeof(*plan->out));
    plan->out_count--;
    return removed;
}

void epoch_plan_fold(struct epoch_plan *plan, uint64_t first, uint64_t batches)
{
    ASSERT(epoch_plan_may_fold(plan, first));
    const struct out_task done = remove_out(plan, first);
    const struct batch_span span = done.task.span;
    ASSERT(batches > 0 && batches <= span.count);
    cover(plan, (struct batch_span){first, batches});
    if (batches < span.count)
        wait_again(plan, (struct plan_task){.span = {first + batches, span.count - batches}});
    const uint64_t late = plan->version - done.base;
    ASSERT(late <= plan->options.staleness);
    if (late > plan->staleness_seen)
        plan->staleness_seen = late;
    plan->version++;
}

uint32_t epoch_plan_fail(struct epoch_plan *plan, uint64_t first)
{
    struct plan_task task = remove_out(plan, first).task;
    task.failures++;
    wait_again(plan, task);
    return task.failures;
}

uint32_t epoch_plan_spoil(struct epoch_plan *plan, uint64_t first)
{
    struct plan_task task = remove_out(plan, first).task;
    task.failures++;
    task.generation++;
    wait_again(plan, task);
    return task.failures;
}

void epoch_plan_give_back(struct epoch_plan *plan, uint64_t first)
{
    wait_again(plan, remove_out(plan, first).task);
}

uint64_t epoch_plan_version(const struct epoch_plan *plan)
{
    return plan->version;
}

uint64_t epoch_plan_oldest(const struct epoch_plan *plan)
{
    return plan->out_count ? plan->out[0].base : plan->version;
}

size_t epoch_plan_out_count(const struct epoch_plan *plan)
{
    return plan->out_count;
}

uint64_t epoch_plan_covered_count(const struct epoch_plan *plan)
{
    return plan->covered_count;
}

bool epoch_plan_is_complete(const struct epoch_plan *plan)
{
    return plan->covered_count == plan->options.batch_count;
}

size_t epoch_plan_covered(const struct epoch_plan *plan, struct batch_span *out, size_t max)
{
    size_t count = 0;
    for (uint64_t i = 0; i < plan->options.batch_count;) {
        const uint64_t first = i;
        while (i < plan->options.batch_count && plan->is_covered[i])
            i++;
        if (i > first) {
            if (count < max)
                out[count] = (struct batch_span){first, i - first};
            count++;
        } else {
            i++;
        }
    }
    return count;
}

uint64_t epoch_plan_staleness_seen(const struct epoch_plan *plan)
{
    return plan->staleness_seen;
}
