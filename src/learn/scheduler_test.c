/* covers scheduler_auto.c */
#include "learn/scheduler.h"
#include "learn/toy_job.h"
#include "testing/testing.h"

#include <stdlib.h>

enum { EPOCHS_MAX = 700 };

static struct epoch_state run(struct scheduler *scheduler, struct epoch_state *states)
{
    struct epoch_state state = {.loss = 1, .left_micro = toy_task.budget_micro};
    while (state.loss > toy_task.loss_target && state.epoch < EPOCHS_MAX) {
        toy_step(&state, scheduler_choose(scheduler, &state));
        scheduler_see(scheduler, &state.last);
        if (states)
            states[state.epoch - 1] = state;
    }
    return state;
}

TEST(a_constant_stays_and_decay_falls_in_equal_steps)
{
    AUTO(scheduler)
    struct scheduler *constant = scheduler_new_constant((struct epoch_choice){30, 1024});
    struct epoch_state job = {.epoch = 7};
    assert_string_equal(scheduler_name(constant), "constant");
    assert_int_equal(scheduler_choose(constant, &job).function_count, 30);
    AUTO(scheduler)
    struct scheduler *decay = scheduler_new_decay(&(struct scheduler_decay){
        .function_first = 100, .function_last = 20, .epoch_count = 40, .memory_mb = 512});
    assert_int_equal(scheduler_choose(decay, &(struct epoch_state){.epoch = 0}).function_count,
                     100);
    assert_int_equal(scheduler_choose(decay, &(struct epoch_state){.epoch = 10}).function_count,
                     80);
    assert_int_equal(scheduler_choose(decay, &(struct epoch_state){.epoch = 90}).function_count,
                     20);
    assert_int_equal(scheduler_choose(decay, &job).memory_mb, 512);
}

TEST(a_decay_takes_its_memory_along_and_goes_upwards_too)
{
    AUTO(scheduler)
    struct scheduler *decay = scheduler_new_decay(&(struct scheduler_decay){.function_first = 4,
                                                                            .function_last = 16,
                                                                            .epoch_count = 4,
                                                                            .memory_mb = 512,
                                                                            .memory_last_mb = 128});
    const uint32_t counts[] = {4, 7, 10, 13, 16, 16};
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(scheduler_choose(decay, &(struct epoch_state){.epoch = i}).function_count,
                         counts[i]);
    assert_int_equal(scheduler_choose(decay, &(struct epoch_state){.epoch = 2}).memory_mb, 320);
    assert_int_equal(scheduler_choose(decay, &(struct epoch_state){.epoch = 9}).memory_mb, 128);
    AUTO(scheduler)
    struct scheduler *only = scheduler_new_decay(&(struct scheduler_decay){
        .function_first = 16, .function_last = 4, .memory_mb = 128}); /* over a single epoch */
    assert_int_equal(scheduler_choose(only, &(struct epoch_state){0}).function_count, 16);
}

TEST(growth_doubles_to_the_last)
{
    AUTO(scheduler)
    struct scheduler *grow =
        scheduler_new_grow((struct epoch_choice){3, 256}, (struct epoch_choice){20, 256});
    const uint32_t counts[] = {3, 6, 12, 20, 20};
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(scheduler_choose(grow, &(struct epoch_state){.epoch = i}).function_count,
                         counts[i]);
    assert_int_equal(
        scheduler_choose(grow, &(struct epoch_state){.epoch = UINT32_MAX}).function_count, 20);
}

/* Epochs of another job, many: by them functions are dear, since they wait for one another. */
static void mislead(struct epoch_fit *fit)
{
    struct epoch_model other = toy_model;
    other.contention_s = 500;
    epoch_fit_init(fit, &toy_task);
    for (uint32_t i = 0; i < 20000; i++) {
        const struct epoch_choice choice = {10 + i % 500, 1536 + 64 * (i % 20)};
        const struct epoch_seen seen =
            epoch_model_predict(&other, choice, &(struct epoch_state){.loss = 1 - 0.9 * i / 20000});
        epoch_fit_add(fit, &seen);
    }
}

TEST(auto_falls_back_to_the_constant_when_its_plan_is_wrong)
{
    struct epoch_state *states = calloc(EPOCHS_MAX, sizeof(*states));
    assert_non_null(states);
    AUTO(scheduler)
    struct scheduler *constant = scheduler_new_constant((struct epoch_choice){400, 1536});
    const struct epoch_state kept = run(constant, states);
    assert_true(kept.left_micro >= 0 && kept.loss <= toy_task.loss_target);
    struct epoch_fit history;
    mislead(&history);
    AUTO(scheduler) struct scheduler *misled = scheduler_new_planner(&toy_task, &history);
    const struct epoch_state alone = run(misled, NULL);
    AUTO(scheduler)
    struct scheduler *guarded =
        scheduler_new_auto(&(struct scheduler_guard){.task = &toy_task,
                                                     .history = &history,
                                                     .constant_run = states,
                                                     .constant_epochs = kept.epoch,
                                                     .margin = 0.05});
    const struct epoch_state end = run(guarded, NULL);
    free(states);
    assert_true(end.loss <= toy_task.loss_target && end.left_micro >= 0);
    if (!(alone.elapsed_s > 1.15 * kept.elapsed_s && end.elapsed_s < 1.1 * kept.elapsed_s))
        fail_msg("constant %g s, misled %g s, guarded %g s", kept.elapsed_s, alone.elapsed_s,
                 end.elapsed_s);
}

TEST(auto_is_the_planner_while_that_is_ahead)
{
    AUTO(scheduler) struct scheduler *planner = scheduler_new_planner(&toy_task, NULL);
    AUTO(scheduler)
    struct scheduler *automatic =
        scheduler_new_auto(&(struct scheduler_guard){.task = &toy_task, .margin = 0.05});
    const struct epoch_state one = run(planner, NULL), other = run(automatic, NULL);
    assert_int_equal(one.left_micro, other.left_micro);
    assert_int_equal(one.epoch, other.epoch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decay_takes_its_memory_along_and_goes_upwards_too),
        cmocka_unit_test(growth_doubles_to_the_last),
        cmocka_unit_test(a_constant_stays_and_decay_falls_in_equal_steps),
        cmocka_unit_test(auto_falls_back_to_the_constant_when_its_plan_is_wrong),
        cmocka_unit_test(auto_is_the_planner_while_that_is_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
