#include "learn/epoch.h"

#include "base/assert.h"

#include <math.h>

uint32_t epoch_memory_level_count(const struct epoch_space *space)
{
    const uint32_t count =
        (space->memory_max_mb - space->memory_min_mb) / space->memory_step_mb + 1;
    ASSERT(count <= EPOCH_MEMORY_LEVELS_MAX);
    return count;
}

uint32_t epoch_memory_at(const struct epoch_space *space, uint32_t level)
{
    return space->memory_min_mb + level * space->memory_step_mb;
}

struct epoch_choice epoch_round(const struct epoch_space *space, double function_count,
                                double memory_mb)
{
    const double level_max = (double)epoch_memory_level_count(space) - 1;
    const double level = (memory_mb - space->memory_min_mb) / space->memory_step_mb;
    /* fmin and fmax take the number of a NaN and a number. */
    const double functions = fmin(fmax(function_count, 1), space->function_max);
    return (struct epoch_choice){
        .function_count = (uint32_t)lround(functions),
        .memory_mb = epoch_memory_at(space, (uint32_t)lround(fmin(fmax(level, 0), level_max))),
    };
}

int64_t epoch_cost_micro(const struct epoch_task *task, struct epoch_choice choice, double total_s)
{
    return (int64_t)ceil(1e6 * task->price * choice.memory_mb / 1024 * choice.function_count *
                         total_s);
}
