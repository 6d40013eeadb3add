/* Each way a displacement enters the model, against sums worked out by hand. */
#include "exchange/global_model.h"
#include "testing/testing.h"

#include <math.h>

enum { COUNT = 2 };

static struct global_model *model_of(float first, float second)
{
    struct error error;
    struct global_model *model;
    ASSERT_OK(global_model_open((const float[COUNT]){first, second}, NULL, COUNT, &model, &error));
    return model;
}

static void assert_parameters(struct global_model *model, double first, double second)
{
    const float *values = global_model_parameters(model);
    assert_true(fabs((double)values[0] - first) < 1e-6);
    assert_true(fabs((double)values[1] - second) < 1e-6);
}

static const struct sync_outer plain = {0};

TEST(a_push_is_applied_with_its_weight)
{
    AUTO(global_model) struct global_model *model = model_of(1, 2);
    global_model_apply(model, (const float[]){4, -2}, 0.25, &plain);
    assert_parameters(model, 2, 1.5);
    assert_int_equal(global_model_version(model), 1);
}

TEST(a_fold_takes_the_weighted_mean_and_empties_the_sum)
{
    AUTO(global_model) struct global_model *model = model_of(0, 0);
    global_model_gather(model, (const float[]){4, 0}, 3);
    global_model_gather(model, (const float[]){0, 8}, 1);
    assert_int_equal(global_model_version(model), 0);
    global_model_fold(model, 0, &plain);
    assert_parameters(model, 3, 2);
    global_model_gather(model, (const float[]){1, 1}, 1);
    global_model_fold(model, 0, &plain);
    assert_parameters(model, 4, 3);
}

TEST(a_fold_can_be_told_what_to_divide_by)
{
    AUTO(global_model) struct global_model *model = model_of(0, 0);
    global_model_gather(model, (const float[]){4, 8}, 1);
    global_model_fold(model, 4, &plain);
    assert_parameters(model, 1, 2);
}

TEST(nesterov_looks_ahead)
{
    /* B = 1, W = 0.5 (1 + 0.5); B = 0.5 + 2, W += 0.5 (2 + 0.5 * 2.5) */
    AUTO(global_model) struct global_model *model = model_of(0, 0);
    const struct sync_outer outer = {.rate = 0.5, .momentum = 0.5, .direct = 1, .carried = 0.5};
    global_model_apply(model, (const float[]){1, 0}, 1, &outer);
    assert_parameters(model, 0.75, 0);
    global_model_apply(model, (const float[]){2, 0}, 1, &outer);
    assert_parameters(model, 0.75 + 1.625, 0);
}

TEST(a_heavy_ball_goes_on_without_pushes_that_move_it)
{
    AUTO(global_model) struct global_model *model = model_of(0, 0);
    const struct sync_outer outer = {.rate = 1, .momentum = 0.5, .direct = 0, .carried = 1};
    global_model_apply(model, (const float[]){1, 1}, 1, &outer);
    global_model_apply(model, (const float[]){0, 0}, 1, &outer);
    assert_parameters(model, 1.5, 1.5);
}

TEST(a_plain_push_leaves_the_momentum_alone)
{
    AUTO(global_model) struct global_model *model = model_of(0, 0);
    const struct sync_outer direct = {.rate = 0.5, .direct = 1};
    const struct sync_outer delayed = {.rate = 0.5, .momentum = 0.5, .direct = 0, .carried = 0.5};
    global_model_apply(model, (const float[]){2, 0}, 1, &direct);
    assert_parameters(model, 1, 0);
    /* B = 4 only: W += 0.5 * 0.5 * 4 */
    global_model_apply(model, (const float[]){4, 0}, 1, &delayed);
    assert_parameters(model, 2, 0);
}

TEST(a_kept_model_comes_back_with_its_momentum_and_without_the_sum)
{
    AUTO(global_model) struct global_model *model = model_of(0, 0);
    const struct sync_outer ball = {.rate = 1, .momentum = 0.5, .carried = 1};
    global_model_apply(model, (const float[]){1, 0}, 1, &ball);
    global_model_keep(model);
    global_model_apply(model, (const float[]){6, 0}, 1, &ball);
    global_model_gather(model, (const float[]){100, 100}, 1);
    global_model_return(model);
    assert_parameters(model, 1, 0);
    /* B was 1 again. */
    global_model_apply(model, (const float[]){0, 0}, 1, &ball);
    assert_parameters(model, 1.5, 0);
    global_model_gather(model, (const float[]){1, 1}, 1);
    global_model_fold(model, 0, &plain);
    assert_parameters(model, 2.5, 1);
}

TEST(an_update_that_is_late_has_entered_what_is_read_and_all_once_it_is_released)
{
    AUTO(global_model) struct global_model *model = model_of(1, 2);
    float update[COUNT] = {4, -2};
    global_model_set_late(model);
    global_model_apply(model, update, 0.5, &plain);
    assert_int_equal(global_model_version(model), 1);
    const float *values = global_model_parameters_until(model, 1);
    assert_true(values[0] == 3 && values[1] == 2);
    global_model_release(model, (const float[COUNT]){0}); /* another's */
    assert_true(values[1] == 2);
    global_model_release(model, update);
    update[0] = update[1] = 100;
    assert_parameters(model, 3, 1);
    /* The next finds the one before in place, and so do a kept copy and one that comes back. */
    global_model_apply(model, (const float[COUNT]){1, 1}, 1, &plain);
    global_model_keep(model);
    global_model_apply(model, update, 1, &plain);
    global_model_return(model);
    assert_parameters(model, 4, 2);
    global_model_apply(model, (const float[COUNT]){1, 0}, 1, &plain);
    global_model_gather(model, (const float[COUNT]){0, 1}, 1);
    global_model_fold(model, 0, &plain);
    assert_parameters(model, 5, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_applied_with_its_weight),
        cmocka_unit_test(a_fold_takes_the_weighted_mean_and_empties_the_sum),
        cmocka_unit_test(a_fold_can_be_told_what_to_divide_by),
        cmocka_unit_test(nesterov_looks_ahead),
        cmocka_unit_test(a_heavy_ball_goes_on_without_pushes_that_move_it),
        cmocka_unit_test(a_plain_push_leaves_the_momentum_alone),
        cmocka_unit_test(a_kept_model_comes_back_with_its_momentum_and_without_the_sum),
        cmocka_unit_test(
            an_update_that_is_late_has_entered_what_is_read_and_all_once_it_is_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
