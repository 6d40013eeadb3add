#include "function/chooser_scheduler.h"

static void see(struct chooser_scheduler *chooser, const struct function_seen *seen)
{
    struct epoch_state *state = &chooser->state;
    /* A function makes several calls in an epoch. */
    const double calls = (double)seen->call_count / seen->choice.function_count;
    state->last = (struct epoch_seen){
        .choice = {seen->choice.function_count, seen->choice.memory_mb},
        .loss_before = state->loss,
        .loss_after = seen->loss,
        .fetch_s = calls * seen->fetch_s,
        .compute_s = calls * seen->compute_s,
        .update_s = calls * seen->update_s,
        .total_s = seen->total_s,
        .memory_use = seen->memory_use,
        .cpu_use = seen->cpu_use,
        .cost_micro = seen->cost_micro,
    };
    state->epoch++;
    state->elapsed_s += seen->total_s;
    scheduler_see(chooser->scheduler, &state->last);
}

struct function_choice chooser_scheduler(void *context, const struct function_state *state)
{
    struct chooser_scheduler *chooser = context;
    if (state->seen)
        see(chooser, state->seen);
    chooser->state.loss = state->loss;
    chooser->state.left_micro = state->budget_micro - state->held_micro;
    const struct epoch_choice choice = scheduler_choose(chooser->scheduler, &chooser->state);
    return (struct function_choice){choice.function_count, choice.memory_mb};
}
