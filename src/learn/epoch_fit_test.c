/* covers epoch.c, epoch_model.c */
#include "base/random.h"
#include "learn/epoch_fit.h"
#include "learn/toy_job.h"
#include "testing/testing.h"

#include <math.h>

#define assert_near(value, expected, within) assert_true(fabs((value) - (expected)) <= (within))

static const struct epoch_state begun = {.loss = 1};

static void add_epochs(struct epoch_fit *fit, uint32_t count, double time_noise, double loss_noise)
{
    struct random random;
    random_init(&random, 9);
    double loss = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct epoch_choice choice =
            epoch_round(&toy_task.space, exp(4.5 + 2 * random_unit(&random)),
                        1500 + 1500 * random_unit(&random));
        struct epoch_seen seen =
            epoch_model_predict(&toy_model, choice, &(struct epoch_state){.loss = loss});
        const double factor = exp(time_noise * random_normal(&random));
        seen.fetch_s *= factor, seen.compute_s *= factor, seen.update_s *= factor;
        seen.total_s *= factor;
        seen.loss_after *= exp(loss_noise * random_normal(&random));
        epoch_fit_add(fit, &seen);
        loss = seen.loss_after > 0.05 ? seen.loss_after : 1;
    }
}

static double at(const struct epoch_model *model, uint32_t function_count, uint32_t memory_mb)
{
    return epoch_model_total_s(model, (struct epoch_choice){function_count, memory_mb});
}

TEST(three_epochs_without_noise_tell_the_constants)
{
    struct epoch_fit fit;
    epoch_fit_init(&fit, &toy_task);
    struct epoch_state job = {.loss = 1, .left_micro = toy_task.budget_micro};
    struct epoch_choice choice;
    while (epoch_fit_probe(&fit, &choice)) {
        toy_step(&job, choice);
        epoch_fit_add(&fit, &job.last);
    }
    assert_int_equal(fit.seen_count, 3);
    const struct epoch_fitted fitted = epoch_fit_solve(&fit);
    assert_near(fitted.model.start_s, toy_model.start_s, 1e-9);
    assert_near(fitted.model.fetch_s, toy_model.fetch_s, 1e-9);
    assert_near(fitted.model.contention_s, toy_model.contention_s, 1e-6);
    assert_near(fitted.model.memory_spread_mb, toy_model.memory_spread_mb, 1e-3);
    assert_near(fitted.model.loss_rate, toy_model.loss_rate, 1e-4);
    assert_near(epoch_model_floor(&fitted.model, 400), epoch_model_floor(&toy_model, 400), 1e-3);
    assert_near(at(&fitted.model, 500, 1600), at(&toy_model, 500, 1600), 0.1);
}

TEST(the_first_epochs_differ_where_functions_are_few)
{
    struct epoch_task few = toy_task;
    few.space = (struct epoch_space){16, 256, 64, 256};
    struct epoch_fit fit;
    epoch_fit_init(&fit, &few);
    struct epoch_choice choice;
    const uint32_t expected[] = {4, 8, 2};
    for (int i = 0; i < 3; i++) {
        assert_true(epoch_fit_probe(&fit, &choice));
        assert_int_equal(choice.function_count, expected[i]);
        const struct epoch_seen seen = epoch_model_predict(&toy_model, choice, &begun);
        epoch_fit_add(&fit, &seen);
    }
    assert_false(epoch_fit_probe(&fit, &choice));
}

TEST(the_price_is_what_epochs_were_billed)
{
    struct epoch_fit fit;
    epoch_fit_init(&fit, &toy_task);
    assert_near(epoch_fit_price(&fit), toy_task.price, 0);
    struct epoch_seen seen =
        epoch_model_predict(&toy_model, (struct epoch_choice){100, 1536}, &begun);
    epoch_fit_add(&fit, &seen); /* of one that costs nothing nothing is learned */
    assert_near(epoch_fit_price(&fit), toy_task.price, 0);
    seen.cost_micro = epoch_cost_micro(&toy_task, seen.choice, seen.total_s) / 4;
    epoch_fit_add(&fit, &seen);
    assert_near(epoch_fit_price(&fit), toy_task.price / 4, 1e-5 * toy_task.price);
}

TEST(many_noisy_epochs_tell_times_and_losses)
{
    struct epoch_fit fit;
    epoch_fit_init(&fit, &toy_task);
    add_epochs(&fit, 20000, 0.05, 0.015);
    const struct epoch_fitted fitted = epoch_fit_solve(&fit);
    assert_near(fitted.time_noise, 0.05, 0.005);
    assert_near(fitted.loss_noise, 0.015, 0.001);
    assert_near(at(&fitted.model, 150, 2048) / at(&toy_model, 150, 2048), 1, 0.01);
    assert_near(at(&fitted.model, 600, 1600) / at(&toy_model, 600, 1600), 1, 0.01);
    assert_near(fitted.model.loss_rate / toy_model.loss_rate, 1, 0.05);
    assert_near(epoch_model_floor(&fitted.model, 300), epoch_model_floor(&toy_model, 300),
                0.1 * epoch_model_floor(&toy_model, 300));
}

TEST(epochs_short_of_memory_tell_of_paging_only)
{
    struct epoch_fit fit;
    epoch_fit_init(&fit, &toy_task);
    add_epochs(&fit, 20, 0, 0);
    const struct epoch_fitted unpaged = epoch_fit_solve(&fit);
    const double before = at(&unpaged.model, 400, 2048);
    const struct epoch_seen paged =
        epoch_model_predict(&toy_model, (struct epoch_choice){100, 1024}, &begun);
    assert_true(paged.memory_use >= 1);
    epoch_fit_add(&fit, &paged);
    const struct epoch_fitted fitted = epoch_fit_solve(&fit);
    assert_near(fitted.model.paging, toy_model.paging, 0.01);
    assert_near(at(&fitted.model, 400, 2048), before, 1e-6);
}

TEST(choices_are_rounded_into_the_space)
{
    const struct epoch_choice high = epoch_round(&toy_task.space, 1e9, 1e9);
    assert_int_equal(high.function_count, 3000);
    assert_int_equal(high.memory_mb, 3008);
    const struct epoch_choice low = epoch_round(&toy_task.space, -5, (double)NAN);
    assert_int_equal(low.function_count, 1);
    assert_int_equal(low.memory_mb, 128);
    assert_int_equal(epoch_round(&toy_task.space, 10.4, 150).memory_mb, 128);
    assert_int_equal(epoch_round(&toy_task.space, 10.4, 165).memory_mb, 192);
}

TEST(costs_are_rounded_up)
{
    const struct epoch_task task = {.space = toy_task.space, .price = 1e-6};
    assert_int_equal(epoch_cost_micro(&task, (struct epoch_choice){3, 1024}, 1.1), 4);
    assert_int_equal(epoch_cost_micro(&task, (struct epoch_choice){3, 2048}, 1), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_epochs_without_noise_tell_the_constants),
        cmocka_unit_test(the_first_epochs_differ_where_functions_are_few),
        cmocka_unit_test(the_price_is_what_epochs_were_billed),
        cmocka_unit_test(many_noisy_epochs_tell_times_and_losses),
        cmocka_unit_test(epochs_short_of_memory_tell_of_paging_only),
        cmocka_unit_test(choices_are_rounded_into_the_space),
        cmocka_unit_test(costs_are_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
