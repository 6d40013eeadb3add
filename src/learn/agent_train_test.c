#include "learn/agent_train.h"
#include "testing/testing.h"

#include <math.h>

/* A toy: 60 epochs whatever is chosen; time is least at 400 functions in the first half and at 100
 * in the second, and costs nothing. */
static const struct epoch_task task = {
    .space = {3000, 128, 64, 3008},
    .loss_start = 1,
    .loss_target = 0.01,
    .budget_micro = 1000000,
    .epoch_max = 100,
};
enum { EPOCHS = 60 };

static double toy_time(const struct epoch_state *state, struct epoch_choice choice)
{
    const double best = state->epoch < EPOCHS / 2 ? 400 : 100;
    return 1 + pow(log(choice.function_count / best), 2);
}

static void toy_step(struct epoch_state *state, struct epoch_choice choice)
{
    state->last = (struct epoch_seen){.choice = choice, .total_s = toy_time(state, choice)};
    state->elapsed_s += state->last.total_s;
    state->epoch++;
    state->loss *= exp(log(0.01) / EPOCHS);
}

static double run_mean(const struct agent *agent)
{
    struct epoch_state state = {.loss = 1, .left_micro = task.budget_micro};
    while (state.epoch < EPOCHS)
        toy_step(&state, agent_choose(agent, &task, &state));
    return state.elapsed_s;
}

static void learn(struct agent *agent, uint64_t seed)
{
    const struct agent_train_options options = {
        .task = task, .time_scale_s = EPOCHS, .episode_count = 200, .seed = seed};
    AUTO(agent_train) struct agent_train *train = agent_train_new(agent, &options);
    while (agent_train_begin(train)) {
        struct epoch_state state = {.loss = 1, .left_micro = task.budget_micro};
        while (state.epoch < EPOCHS) {
            toy_step(&state, agent_train_choose(train, &state));
            agent_train_see(train, &state);
        }
    }
}

TEST(an_agent_learns_what_is_best_when)
{
    AUTO(agent) struct agent *agent = agent_new((struct epoch_choice){200, 1024}, 1);
    const double before = run_mean(agent) - EPOCHS;
    learn(agent, 2);
    const double after = run_mean(agent) - EPOCHS;
    if (!(after < 0.25 * before))
        fail_msg("what could be saved went from %g to %g s only", before, after);
    assert_int_equal(agent->episode_count, 200);
}

TEST(the_same_seed_learns_the_same)
{
    AUTO(agent) struct agent *one = agent_new((struct epoch_choice){200, 1024}, 1);
    AUTO(agent) struct agent *other = agent_new((struct epoch_choice){200, 1024}, 1);
    learn(one, 5);
    learn(other, 5);
    assert_memory_equal(mlp_parameters(one->mlp), mlp_parameters(other->mlp),
                        mlp_parameter_count(mlp_shape(one->mlp)) * sizeof(double));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_learns_what_is_best_when),
        cmocka_unit_test(the_same_seed_learns_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
