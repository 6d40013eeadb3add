#include "learn/agent.h"

#include "base/memory.h"
#include "learn/scheduler_internal.h"

#include <math.h>
#include <stdlib.h>

static const struct mlp_shape shape = {3, {AGENT_INPUTS, 64, 64, 2 * AGENT_ACTIONS}};

static const double functions_scale = 1; /* e-fold for an action of 1 */
static const double memory_scale_mb = 800;
static const double input_max = 4; /* deviations */
static const double deviation_first = 0.3, deviation_min = 0.05, deviation_max = 0.6;

struct agent *agent_new(struct epoch_choice centre, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    struct agent *agent = memory_zeroed(1, sizeof(*agent));
    agent->mlp = mlp_new(&shape, &random);
    agent->centre = centre;
    for (int i = 0; i < AGENT_INPUTS; i++)
        agent->scale.deviation[i] = 1;
    return agent;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    mlp_free(agent->mlp);
    free(agent);
}

void agent_input(const struct epoch_task *task, const struct epoch_state *state,
                 double input[static AGENT_INPUTS])
{
    const struct epoch_seen *last = &state->last;
    const double way = log(task->loss_start / task->loss_target);
    input[0] = (double)state->epoch / task->epoch_max;
    input[1] = log(state->loss / task->loss_target) / way;
    input[2] = log1p(last->total_s);
    input[3] = log1p(last->fetch_s);
    input[4] = log1p(last->compute_s);
    input[5] = log1p(last->update_s);
    input[6] = last->memory_use;
    input[7] = last->cpu_use;
    input[8] = (double)state->left_micro / (double)task->budget_micro;
}

struct agent_policy agent_look(const struct agent *agent, const double input[static AGENT_INPUTS])
{
    double scaled[AGENT_INPUTS];
    for (int i = 0; i < AGENT_INPUTS; i++) {
        const double value = (input[i] - agent->scale.mean[i]) / agent->scale.deviation[i];
        scaled[i] = fmin(fmax(value, -input_max), input_max);
    }
    const double *out = mlp_forward(agent->mlp, scaled);
    struct agent_policy policy;
    for (int i = 0; i < AGENT_ACTIONS; i++) {
        policy.mean[i] = out[i];
        policy.log_deviation[i] =
            fmin(fmax(log(deviation_first) + out[AGENT_ACTIONS + i], log(deviation_min)),
                 log(deviation_max));
    }
    return policy;
}

struct agent_wish agent_wish(const struct agent *agent, const double action[static AGENT_ACTIONS])
{
    return (struct agent_wish){
        .function_count =
            agent->centre.function_count * exp(functions_scale * action[0] + agent->offset),
        .memory_mb = agent->centre.memory_mb + memory_scale_mb * action[1],
    };
}

struct epoch_choice agent_action(const struct agent *agent, const struct epoch_space *space,
                                 const double action[static AGENT_ACTIONS])
{
    const struct agent_wish wish = agent_wish(agent, action);
    return epoch_round(space, wish.function_count, wish.memory_mb);
}

struct epoch_choice agent_choose(const struct agent *agent, const struct epoch_task *task,
                                 const struct epoch_state *state)
{
    double input[AGENT_INPUTS];
    agent_input(task, state, input);
    const struct agent_policy policy = agent_look(agent, input);
    return agent_action(agent, &task->space, policy.mean);
}

struct agent_scheduler {
    struct scheduler scheduler;
    struct epoch_task task;
    const struct agent *agent;
};

static struct epoch_choice choose(struct scheduler *scheduler, const struct epoch_state *state)
{
    const struct agent_scheduler *self = (struct agent_scheduler *)scheduler;
    return agent_choose(self->agent, &self->task, state);
}

static void agent_scheduler_free(struct scheduler *scheduler)
{
    free(scheduler);
}

static const struct scheduler_ops ops = {
    .name = "agent", .choose = choose, .free = agent_scheduler_free};

struct scheduler *scheduler_new_agent(const struct epoch_task *task, const struct agent *agent)
{
    struct agent_scheduler *made = memory_zeroed(1, sizeof(*made));
    made->scheduler.ops = &ops;
    made->task = *task;
    made->agent = agent;
    return &made->scheduler;
}
