#include "function/chooser.h"

struct function_choice chooser_constant(void *context, const struct function_state *state)
{
    (void)state;
    return *(const struct function_choice *)context;
}

/* Rounded to the nearest. */
static uint32_t between(uint32_t first, uint32_t last, uint64_t step, uint64_t step_max)
{
    if (step_max == 0 || step >= step_max)
        return step_max == 0 ? first : last;
    const double share = (double)step / (double)step_max;
    return (uint32_t)((double)first + share * ((double)last - (double)first) + 0.5);
}

struct function_choice chooser_decay(void *context, const struct function_state *state)
{
    const struct chooser_decay *decay = context;
    const uint64_t steps = state->epoch_max > 0 ? state->epoch_max - 1 : 0;
    return (struct function_choice){
        between(decay->first.function_count, decay->last.function_count, state->epoch, steps),
        between(decay->first.memory_mb, decay->last.memory_mb, state->epoch, steps),
    };
}
