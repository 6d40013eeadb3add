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
    ASSERT_OK(optimizer_open(&options, 2, &optimizer, &error));
    float parameters[] = {1, 2};
    const float gradients[] = {1, -2};
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

static void assert_refused(struct optimizer_options options)
{
    struct error error;
    struct optimizer *none = NULL;
    ASSERT_FAILS(optimizer_open(&options, 1, &none, &error), ERROR_INVALID);
}

TEST(options_out_of_range_are_refused)
{
    assert_refused((struct optimizer_options){.lr = 0});
    assert_refused((struct optimizer_options){.lr = (double)NAN});
    assert_refused((struct optimizer_options){.lr = 0.1, .momentum = 1});
    assert_refused((struct optimizer_options){.lr = 0.1, .weight_decay = -1});
    assert_refused((struct optimizer_options){.lr = 0.1, .is_nesterov = true});
    struct error error;
    struct optimizer_options options;
    optimizer_options_default(&options);
    ASSERT_OK(optimizer_options_check(&options, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum_carries_earlier_gradients_on),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
