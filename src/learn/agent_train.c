#include "learn/agent_train.h"

#include "base/assert.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_EPISODES = 4,
    PASSES = 2, /* over a batch */
    FEATURES = 4,
};

/* Found with worlds of other seeds than those of the benchmark. */
static const double lr_first = 7e-3, lr_last = 7e-4;
static const double gradient_norm_max = 1;
static const double trace = 0.2; /* of the advantage: 1: to the end of the episode, 0: one step */
static const double ratio_clip = 0.2;
static const double ridge = 1e-5;
static const double lambda_first = 0.5, lambda_gain = 0.3, lambda_min = 0.02, lambda_max = 20;
static const double input_deviation_min = 0.05;

/* One action and the epochs it was kept for. */
struct train_step {
    double input[AGENT_INPUTS];
    double action[AGENT_ACTIONS];
    double log_chance; /* of the action when it was taken */
    double way;        /* left to the target, as the network sees it */
    double time, cost; /* shares of time_scale and budget */
    double advantage;
};

struct episode {
    struct train_step steps[AGENT_TRAIN_STEPS_MAX];
    uint32_t step_count;
};

struct agent_train {
    struct agent *agent;
    struct agent_train_options options;
    struct random random;
    double lambda;
    uint32_t begun_count; /* episodes */
    uint32_t in_batch;    /* of them, the one under way included */
    bool is_scaled;
    struct episode episodes[BATCH_EPISODES];
    double noise[AGENT_TRAIN_STEPS_MAX][AGENT_ACTIONS]; /* of the pair */
    uint32_t held_epochs;
    struct epoch_choice choice;
};

struct agent_train *agent_train_new(struct agent *agent, const struct agent_train_options *options)
{
    struct agent_train *train = memory_zeroed(1, sizeof(*train));
    train->agent = agent;
    train->options = *options;
    if (train->options.hold_epochs == 0)
        train->options.hold_epochs = AGENT_TRAIN_HOLD_EPOCHS;
    train->is_scaled = agent->episode_count > 0;
    train->lambda = lambda_first;
    random_init(&train->random, options->seed);
    return train;
}

void agent_train_free(struct agent_train *train)
{
    free(train);
}

static double log_chance(const struct agent_policy *policy, const double *action)
{
    double sum = 0;
    for (int i = 0; i < AGENT_ACTIONS; i++) {
        const double away = (action[i] - policy->mean[i]) / exp(policy->log_deviation[i]);
        sum -= away * away / 2 + policy->log_deviation[i];
    }
    return sum;
}

/* Inputs are scaled by the first batch; later ones would move what was learned. */
static void set_scale(struct agent_train *train)
{
    double sums[AGENT_INPUTS] = {0}, squares[AGENT_INPUTS] = {0}, count = 0;
    for (uint32_t e = 0; e < train->in_batch; e++)
        for (uint32_t k = 0; k < train->episodes[e].step_count; k++, count++)
            for (int i = 0; i < AGENT_INPUTS; i++) {
                const double value = train->episodes[e].steps[k].input[i];
                sums[i] += value;
                squares[i] += value * value;
            }
    for (int i = 0; i < AGENT_INPUTS; i++) {
        const double mean = sums[i] / count;
        train->agent->scale.mean[i] = mean;
        train->agent->scale.deviation[i] =
            fmax(sqrt(fmax(squares[i] / count - mean * mean, 0)), input_deviation_min);
    }
    train->is_scaled = true;
}

struct baseline {
    double time[FEATURES], cost[FEATURES];
};

/* Powers of the way: at the target nothing is to come. */
static void features_of(double way, double out[static FEATURES])
{
    double power = 1;
    for (int i = 0; i < FEATURES; i++)
        out[i] = power *= way;
}

static double baseline_at(const double weights[static FEATURES], double way)
{
    double features[FEATURES], sum = 0;
    features_of(way, features);
    for (int i = 0; i < FEATURES; i++)
        sum += weights[i] * features[i];
    return sum;
}

/* A x = b for a positive definite A, both destroyed; two right sides. */
static void solve(double a[FEATURES][FEATURES], double b[FEATURES][2])
{
    for (int i = 0; i < FEATURES; i++)
        for (int k = i + 1; k < FEATURES; k++) {
            const double factor = a[k][i] / a[i][i];
            for (int j = i; j < FEATURES; j++)
                a[k][j] -= factor * a[i][j];
            for (int j = 0; j < 2; j++)
                b[k][j] -= factor * b[i][j];
        }
    for (int i = FEATURES; i-- > 0;)
        for (int j = 0; j < 2; j++) {
            for (int k = i + 1; k < FEATURES; k++)
                b[i][j] -= a[i][k] * b[k][j];
            b[i][j] /= a[i][i];
        }
}

static struct baseline fit_baseline(const struct agent_train *train)
{
    double a[FEATURES][FEATURES] = {0}, b[FEATURES][2] = {0};
    for (int i = 0; i < FEATURES; i++)
        a[i][i] = ridge;
    for (uint32_t e = 0; e < train->in_batch; e++) {
        double time = 0, cost = 0;
        for (uint32_t k = train->episodes[e].step_count; k-- > 0;) {
            const struct train_step *step = &train->episodes[e].steps[k];
            double features[FEATURES];
            time += step->time;
            cost += step->cost;
            features_of(step->way, features);
            for (int i = 0; i < FEATURES; i++) {
                for (int j = 0; j < FEATURES; j++)
                    a[i][j] += features[i] * features[j];
                b[i][0] += features[i] * time;
                b[i][1] += features[i] * cost;
            }
        }
    }
    solve(a, b);
    struct baseline baseline;
    for (int i = 0; i < FEATURES; i++) {
        baseline.time[i] = b[i][0];
        baseline.cost[i] = b[i][1];
    }
    return baseline;
}

static void set_advantages(struct agent_train *train)
{
    const struct baseline baseline = fit_baseline(train);
    double sum = 0, squares = 0, count = 0;
    for (uint32_t e = 0; e < train->in_batch; e++) {
        struct episode *episode = &train->episodes[e];
        double after = 0, advantage = 0;
        for (uint32_t k = episode->step_count; k-- > 0;) {
            struct train_step *step = &episode->steps[k];
            const double value = -baseline_at(baseline.time, step->way) -
                                 train->lambda * baseline_at(baseline.cost, step->way);
            const double reward = -step->time - train->lambda * step->cost;
            advantage = reward + after - value + trace * advantage;
            step->advantage = advantage;
            after = value;
            sum += advantage;
            squares += advantage * advantage;
            count++;
        }
    }
    const double mean = sum / count;
    const double deviation = sqrt(fmax(squares / count - mean * mean, 1e-12));
    for (uint32_t e = 0; e < train->in_batch; e++)
        for (uint32_t k = 0; k < train->episodes[e].step_count; k++) {
            struct train_step *step = &train->episodes[e].steps[k];
            step->advantage = (step->advantage - mean) / deviation;
        }
}

/* The gradient of -ratio x advantage, nothing where the ratio is cut. */
static void add_gradient(struct agent_train *train, const struct train_step *step, double share)
{
    const struct agent_policy policy = agent_look(train->agent, step->input);
    const double ratio = exp(log_chance(&policy, step->action) - step->log_chance);
    if (step->advantage > 0 ? ratio > 1 + ratio_clip : ratio < 1 - ratio_clip)
        return;
    double gradient[2 * AGENT_ACTIONS];
    for (int i = 0; i < AGENT_ACTIONS; i++) {
        const double deviation = exp(policy.log_deviation[i]);
        const double away = (step->action[i] - policy.mean[i]) / deviation;
        const double weight = -share * ratio * step->advantage;
        gradient[i] = weight * away / deviation;
        gradient[AGENT_ACTIONS + i] = weight * (away * away - 1);
    }
    mlp_backward(train->agent->mlp, gradient);
}

/* What was likely is so by the inputs' new scale. */
static void look_again(struct agent_train *train)
{
    for (uint32_t e = 0; e < train->in_batch; e++)
        for (uint32_t k = 0; k < train->episodes[e].step_count; k++) {
            struct train_step *step = &train->episodes[e].steps[k];
            const struct agent_policy policy = agent_look(train->agent, step->input);
            step->log_chance = log_chance(&policy, step->action);
        }
}

static void learn_from_batch(struct agent_train *train)
{
    double cost = 0, count = 0;
    for (uint32_t e = 0; e < train->in_batch; e++)
        for (uint32_t k = 0; k < train->episodes[e].step_count; k++, count++)
            cost += train->episodes[e].steps[k].cost;
    if (!train->is_scaled) {
        set_scale(train);
        look_again(train);
    }
    set_advantages(train);
    const double done = (double)train->begun_count / train->options.episode_count;
    for (int pass = 0; pass < PASSES; pass++) {
        for (uint32_t e = 0; e < train->in_batch; e++)
            for (uint32_t k = 0; k < train->episodes[e].step_count; k++)
                add_gradient(train, &train->episodes[e].steps[k], 1 / count);
        mlp_step(train->agent->mlp, lr_first + done * (lr_last - lr_first), gradient_norm_max);
    }
    const double passed = cost / train->in_batch - 1;
    train->lambda = fmin(fmax(train->lambda * exp(lambda_gain * passed), lambda_min), lambda_max);
    train->agent->episode_count += train->in_batch;
    train->in_batch = 0;
}

bool agent_train_begin(struct agent_train *train)
{
    if (train->in_batch == BATCH_EPISODES ||
        (train->in_batch > 0 && train->begun_count == train->options.episode_count))
        learn_from_batch(train);
    if (train->begun_count == train->options.episode_count)
        return false;
    train->episodes[train->in_batch++].step_count = 0;
    train->begun_count++;
    train->held_epochs = 0;
    const bool is_second = train->in_batch % 2 == 0;
    for (int k = 0; k < AGENT_TRAIN_STEPS_MAX; k++)
        for (int i = 0; i < AGENT_ACTIONS; i++)
            train->noise[k][i] = is_second ? -train->noise[k][i] : random_normal(&train->random);
    return true;
}

struct epoch_choice agent_train_choose(struct agent_train *train, const struct epoch_state *state)
{
    struct episode *episode = &train->episodes[train->in_batch - 1];
    if (train->held_epochs > 0)
        return train->choice;
    ASSERT(episode->step_count < AGENT_TRAIN_STEPS_MAX);
    struct train_step *step = &episode->steps[episode->step_count];
    const double *noise = train->noise[episode->step_count];
    *step = (struct train_step){.advantage = 0};
    agent_input(&train->options.task, state, step->input);
    step->way = step->input[1];
    const struct agent_policy policy = agent_look(train->agent, step->input);
    for (int i = 0; i < AGENT_ACTIONS; i++)
        step->action[i] = policy.mean[i] + exp(policy.log_deviation[i]) * noise[i];
    step->log_chance = log_chance(&policy, step->action);
    episode->step_count++;
    train->choice = agent_action(train->agent, &train->options.task.space, step->action);
    return train->choice;
}

void agent_train_see(struct agent_train *train, const struct epoch_state *state)
{
    struct episode *episode = &train->episodes[train->in_batch - 1];
    struct train_step *step = &episode->steps[episode->step_count - 1];
    step->time += state->last.total_s / train->options.time_scale_s;
    step->cost += (double)state->last.cost_micro / (double)train->options.task.budget_micro;
    train->held_epochs = (train->held_epochs + 1) % train->options.hold_epochs;
}
