#include "testing/testing.h"
#include "train/optimizer.h"

#include <math.h>

TEST(momentum_carries_earlier_gradients_on)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("plain", &set, &error));
    AUTO(optimizer) struct optimizer *optimizer = NULL;
    const struct optimizer_options options = {.lr = 0.1, .momentum = 0.5};
    ASSERT_OK(optimizer_open(&options, 2, 2, &optimizer, &error));
    float parameters[] = {1, 2};
    float gradients[] = {1, -2};
    optimizer_step(optimizer, set, parameters, gradients);
    assert_true(fabsf(parameters[0] - 0.9F) < 1e-6F);
    optimizer_step(optimizer, set, parameters, gradients);
    assert_true(fabsf(parameters[0] - 0.75F) < 1e-6F);
    assert_true(fabsf(parameters[1] - 2.5F) < 1e-6F);
    assert_true(fabsf(optimizer_velocity(optimizer)[0] - 1.5F) < 1e-6F);
    ASSERT_OK(optimizer_set_lr(optimizer, 1, &error));
    optimizer_step(optimizer, set, parameters, gradients);
    assert_true(fabsf(parameters[0] - (0.75F - 1.75F)) < 1e-6F);
}

TEST(plain_steps_have_no_momentum_and_go_as_far_in_the_end)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("plain", &set, &error));
    AUTO(optimizer) struct optimizer *optimizer = NULL;
    const struct optimizer_options options = {.lr = 0.1, .momentum = 0.75, .is_nesterov = true};
    ASSERT_OK(optimizer_open(&options, 1, 1, &optimizer, &error));
    float parameter = 1, gradient = 1;
    optimizer_set_plain(optimizer, true);
    for (int step = 1; step <= 3; step++) {
        optimizer_step(optimizer, set, &parameter, &gradient);
        assert_true(fabsf(parameter - (1 - 0.4F * (float)step)) < 1e-6F);
    }
    /* Momentum again, which goes on from the last gradient: v = 1.75. */
    optimizer_set_plain(optimizer, false);
    parameter = 1;
    optimizer_step(optimizer, set, &parameter, &gradient);
    assert_true(fabsf(parameter - (1 - 0.1F * (1 + 0.75F * 1.75F))) < 1e-6F);
}

/* The first step of Adam is lr in the direction of each gradient, whatever its length. */
TEST(adam_steps_by_lr_and_adamw_shrinks_apart)
{
    struct error error;
    for (const char *const *name = kernel_set_names; *name; name++) {
        AUTO(kernel_set) struct kernel_set *set = NULL;
        if (kernel_set_open(*name, &set, &error) < 0)
            continue;
        AUTO(optimizer) struct optimizer *adam = NULL;
        AUTO(optimizer) struct optimizer *adamw = NULL;
        struct optimizer_options options = {.lr = 0.1, .kind = OPTIMIZER_ADAM};
        ASSERT_OK(optimizer_open(&options, 3, 2, &adam, &error));
        float parameters[] = {1, 2, 7}, gradients[] = {1e-3F, -200, 5};
        optimizer_step(adam, set, parameters, gradients);
        assert_true(fabsf(parameters[0] - 0.9F) < 1e-4F);
        assert_true(fabsf(parameters[1] - 2.1F) < 1e-4F);
        assert_true(parameters[2] == 7); /* not learned */
        options.kind = OPTIMIZER_ADAMW;
        options.weight_decay = 0.5;
        ASSERT_OK(optimizer_open(&options, 2, 2, &adamw, &error));
        float decayed[] = {1, 2};
        optimizer_step(adamw, set, decayed, gradients);
        assert_true(fabsf(decayed[0] - (0.95F - 0.1F)) < 1e-4F);
        assert_true(fabsf(decayed[1] - (1.9F + 0.1F)) < 1e-4F);
    }
}

TEST(momentum_is_that_of_sgd_or_the_first_beta)
{
    struct optimizer_options options = {.kind = OPTIMIZER_SGD, .momentum = 0.5, .beta1 = 0.8};
    assert_true(optimizer_momentum(&options) == 0.5);
    options.kind = OPTIMIZER_ADAMW;
    assert_true(optimizer_momentum(&options) == 0.8);
    options.beta1 = 0; /* the default */
    assert_true(optimizer_momentum(&options) == 0.9);
}

TEST(long_gradients_are_shortened_to_the_norm)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *set = NULL;
    ASSERT_OK(kernel_set_open("auto", &set, &error));
    AUTO(optimizer) struct optimizer *optimizer = NULL;
    const struct optimizer_options options = {.lr = 1, .clip_norm = 1};
    ASSERT_OK(optimizer_open(&options, 2, 2, &optimizer, &error));
    float parameters[] = {0, 0}, gradients[] = {3, 4}, small[] = {0.3F, 0.4F};
    optimizer_step(optimizer, set, parameters, gradients);
    assert_true(fabsf(parameters[0] + 0.6F) < 1e-5F && fabsf(parameters[1] + 0.8F) < 1e-5F);
    optimizer_step(optimizer, set, parameters, small);
    assert_true(fabsf(parameters[0] + 0.9F) < 1e-5F);
}

TEST(schedules_warm_up_and_come_down)
{
    const struct schedule none = {0};
    assert_true(schedule_factor(&none, 0) == 1 && schedule_factor(&none, 1000) == 1);
    const struct schedule step = {SCHEDULE_STEP, .warmup = 4, .period = 10, .factor = 0.5};
    assert_true(schedule_factor(&step, 0) == 0.25 && schedule_factor(&step, 3) == 1);
    assert_true(schedule_factor(&step, 13) == 1 && schedule_factor(&step, 14) == 0.5);
    assert_true(schedule_factor(&step, 24) == 0.25);
    const struct schedule cosine = {SCHEDULE_COSINE, .period = 100, .factor = 0.1};
    assert_true(schedule_factor(&cosine, 0) == 1);
    assert_true(fabs(schedule_factor(&cosine, 50) - 0.55) < 1e-9);
    assert_true(fabs(schedule_factor(&cosine, 1000) - 0.1) < 1e-9);
}

static void assert_refused(struct optimizer_options options)
{
    struct error error;
    struct optimizer *none = NULL;
    ASSERT_FAILS(optimizer_open(&options, 1, 1, &none, &error), ERROR_INVALID);
}

TEST(options_out_of_range_are_refused)
{
    assert_refused((struct optimizer_options){.lr = 0});
    assert_refused((struct optimizer_options){.lr = (double)NAN});
    assert_refused((struct optimizer_options){.lr = 0.1, .momentum = 1});
    assert_refused((struct optimizer_options){.lr = 0.1, .weight_decay = -1});
    assert_refused((struct optimizer_options){.lr = 0.1, .is_nesterov = true});
    assert_refused((struct optimizer_options){.lr = 0.1, .kind = OPTIMIZER_ADAM, .momentum = 0.9});
    assert_refused((struct optimizer_options){.lr = 0.1, .kind = OPTIMIZER_ADAM, .beta2 = 1});
    assert_refused((struct optimizer_options){.lr = 0.1, .clip_norm = -1});
    assert_refused((struct optimizer_options){.lr = 0.1, .schedule = {SCHEDULE_STEP}});
    assert_refused((struct optimizer_options){.lr = 0.1, .schedule = {SCHEDULE_COSINE, 0, 5, 1.5}});
    struct error error;
    struct optimizer_options options;
    optimizer_options_default(&options);
    ASSERT_OK(optimizer_options_check(&options, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum_carries_earlier_gradients_on),
        cmocka_unit_test(plain_steps_have_no_momentum_and_go_as_far_in_the_end),
        cmocka_unit_test(adam_steps_by_lr_and_adamw_shrinks_apart),
        cmocka_unit_test(momentum_is_that_of_sgd_or_the_first_beta),
        cmocka_unit_test(long_gradients_are_shortened_to_the_norm),
        cmocka_unit_test(schedules_warm_up_and_come_down),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
