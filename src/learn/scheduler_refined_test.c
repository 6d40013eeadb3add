/* covers agent_rehearse.c */
#include "learn/agent.h"
#include "learn/epoch_model.h"
#include "learn/scheduler.h"
#include "testing/testing.h"

#include <string.h>

/* Few functions of one size, and a floor that eight of them cannot pass. */
static const struct epoch_model model = {
    .start_s = 0.2,
    .fetch_s = 0.4,
    .compute_s = 20,
    .update_s = 0.4,
    .contention_s = 0.2,
    .memory_base_mb = 20,
    .core_mb = 200,
    .loss_rate = 0.25,
    .loss_floor = 0.02,
    .loss_power = 0.8,
};
static const struct epoch_task task = {
    .space = {16, 256, 64, 256},
    .loss_start = 2,
    .loss_target = 0.1,
    .price = 0.001,
    .budget_micro = 200000,
    .epoch_max = 40,
};
enum { EPOCHS_MAX = 40 };

static void step(struct epoch_state *state, struct epoch_choice choice)
{
    state->last = epoch_model_predict(&model, choice, state);
    state->last.cost_micro = epoch_cost_micro(&task, choice, state->last.total_s);
    state->epoch++;
    state->loss = state->last.loss_after;
    state->elapsed_s += state->last.total_s;
    state->left_micro -= state->last.cost_micro;
}

static struct epoch_state run(struct scheduler *scheduler, struct epoch_state *states)
{
    struct epoch_state state = {.loss = task.loss_start, .left_micro = task.budget_micro};
    while (state.loss > task.loss_target && state.epoch < EPOCHS_MAX && state.left_micro >= 0) {
        step(&state, scheduler_choose(scheduler, &state));
        scheduler_see(scheduler, &state.last);
        if (states)
            states[state.epoch - 1] = state;
    }
    return state;
}

static struct epoch_state run_constant(uint32_t function_count, struct epoch_state *states)
{
    AUTO(scheduler)
    struct scheduler *constant = scheduler_new_constant((struct epoch_choice){function_count, 256});
    return run(constant, states);
}

static struct epoch_state run_agent(struct agent *agent)
{
    AUTO(scheduler)
    struct scheduler *refined = scheduler_new_refined(
        &(struct scheduler_refined){.task = &task, .agent = agent, .seed = 1});
    return run(refined, NULL);
}

TEST(an_agent_that_is_new_learns_from_the_jobs_own_epochs)
{
    AUTO(agent) struct agent *agent = agent_new((struct epoch_choice){8, 256}, 1);
    assert_true(run_constant(16, NULL).loss > task.loss_target);
    const struct epoch_state few = run_constant(2, NULL);
    const struct epoch_state end = run_agent(agent);
    assert_true(few.loss <= task.loss_target);
    if (!(end.loss <= task.loss_target && end.left_micro >= 0 && end.elapsed_s < few.elapsed_s))
        fail_msg("loss %g after %g s, %g s with two", end.loss, end.elapsed_s, few.elapsed_s);
    assert_true(agent->episode_count > 200);
}

TEST(an_agent_of_a_larger_world_comes_home_and_stays)
{
    AUTO(agent) struct agent *agent = agent_new((struct epoch_choice){400, 1536}, 1);
    agent->episode_count = 200;
    const struct epoch_state first = run_agent(agent);
    assert_true(first.loss <= task.loss_target && first.left_micro >= 0);
    assert_int_equal(agent->centre.memory_mb, 256);
    assert_in_range(agent->centre.function_count, 1, 16);
    const struct epoch_choice centre = agent->centre;
    const uint64_t episodes = agent->episode_count;
    const struct epoch_state second = run_agent(agent);
    assert_true(second.loss <= task.loss_target && second.left_micro >= 0);
    assert_int_equal(agent->centre.function_count, centre.function_count);
    assert_true(agent->episode_count > episodes);
}

TEST(the_same_epochs_refine_to_the_same_agent)
{
    AUTO(agent) struct agent *one = agent_new((struct epoch_choice){8, 256}, 1);
    AUTO(agent) struct agent *other = agent_new((struct epoch_choice){8, 256}, 1);
    const struct epoch_state first = run_agent(one), second = run_agent(other);
    assert_int_equal(first.left_micro, second.left_micro);
    assert_memory_equal(mlp_parameters(one->mlp), mlp_parameters(other->mlp),
                        mlp_parameter_count(mlp_shape(one->mlp)) * sizeof(double));
}

TEST(the_guard_takes_the_constant_in_place_of_a_scheduler_that_is_late)
{
    struct epoch_state states[EPOCHS_MAX];
    const struct epoch_state kept = run_constant(4, states);
    const struct epoch_state late = run_constant(1, NULL);
    assert_true(kept.loss <= task.loss_target && late.elapsed_s > 1.5 * kept.elapsed_s);
    AUTO(scheduler)
    struct scheduler *guarded = scheduler_new_guarded_take(
        scheduler_new_constant((struct epoch_choice){1, 256}),
        &(struct scheduler_guard){
            .task = &task, .constant_run = states, .constant_epochs = kept.epoch, .margin = 0.05});
    const struct epoch_state end = run(guarded, NULL);
    assert_true(end.loss <= task.loss_target && end.left_micro >= 0);
    /* A late epoch is seen once it is over. */
    assert_true(end.elapsed_s < 1.05 * kept.elapsed_s + 2 * late.elapsed_s / late.epoch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_that_is_new_learns_from_the_jobs_own_epochs),
        cmocka_unit_test(an_agent_of_a_larger_world_comes_home_and_stays),
        cmocka_unit_test(the_same_epochs_refine_to_the_same_agent),
        cmocka_unit_test(the_guard_takes_the_constant_in_place_of_a_scheduler_that_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
