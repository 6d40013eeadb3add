#include "learn/agent_rehearse.h"

#include "learn/agent_train.h"

static const double offset_max = 0.6; /* e-folds */

static bool is_under_way(const struct epoch_task *task, const struct epoch_state *state)
{
    return state->loss > task->loss_target && state->epoch < task->epoch_max;
}

void agent_rehearse(struct agent *agent, const struct agent_rehearse_options *options,
                    const struct rehearsal_world *world)
{
    const struct agent_train_options train = {
        .task = options->task,
        .time_scale_s = options->time_scale_s,
        .episode_count = options->run_count,
        .hold_epochs = options->hold_epochs,
        .seed = options->seed,
    };
    AUTO(agent_train) struct agent_train *training = agent_train_new(agent, &train);
    while (agent_train_begin(training)) {
        struct epoch_state state;
        world->begin(world->context, &state);
        while (is_under_way(&options->task, &state) &&
               world->step(world->context, agent_train_choose(training, &state), &state))
            agent_train_see(training, &state);
    }
}

/* In each run by half the last step. */
void agent_set_offset(struct agent *agent, const struct agent_rehearse_options *options,
                      const struct rehearsal_world *world)
{
    const struct epoch_task *task = &options->task;
    double low = -offset_max, high = offset_max;
    for (int i = 0; i < AGENT_OFFSET_RUNS; i++) {
        struct epoch_state state;
        world->begin(world->context, &state);
        agent->offset = (low + high) / 2;
        while (is_under_way(task, &state) &&
               world->step(world->context, agent_choose(agent, task, &state), &state))
            ;
        const double spent = (double)(task->budget_micro - state.left_micro);
        if (state.loss <= task->loss_target &&
            spent <= options->budget_share * (double)task->budget_micro)
            low = agent->offset;
        else
            high = agent->offset;
        agent->episode_count++;
    }
    agent->offset = low;
}
