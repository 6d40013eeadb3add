#include "sim/siren.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

static const struct siren_options *options_of(const struct siren_world *world, bool is_noisy,
                                              uint64_t episode)
{
    static struct siren_options options;
    options = (struct siren_options){
        .world = world, .budget_micro = 300000000, .is_noisy = is_noisy, .episode = episode};
    return &options;
}

static struct siren run_constant(const struct siren_options *options, struct epoch_choice choice)
{
    struct siren siren;
    siren_begin(&siren, options);
    while (siren.end == SIREN_RUNNING)
        siren_step(&siren, choice);
    return siren;
}

TEST(the_paper_s_grid_rows_come_out)
{
    const struct siren_world world = siren_world_typical(SIREN_PAPER);
    const struct {
        uint32_t function_count;
        double cost, time_s;
    } rows[] = {{828, 299.89, 2452.3}, {482, 199.67, 2816.9}, {138, 99.99, 4979.7}};
    for (size_t i = 0; i < 3; i++) {
        const struct siren siren = run_constant(
            options_of(&world, false, 0), (struct epoch_choice){rows[i].function_count, 1024});
        assert_int_equal(siren.end, SIREN_REACHED);
        assert_int_equal(siren.state.epoch, 309);
        assert_true(fabs(siren.state.elapsed_s / rows[i].time_s - 1) < 0.002);
        assert_true(fabs(1e-6 * (double)siren_spent_micro(&siren) / rows[i].cost - 1) < 0.012);
    }
}

TEST(a_constant_takes_as_long_as_computed_elsewhere)
{
    const struct siren_world world = siren_world_typical(SIREN_FLOOR);
    const struct siren siren =
        run_constant(options_of(&world, false, 0), (struct epoch_choice){610, 2240});
    assert_int_equal(siren.end, SIREN_REACHED);
    assert_true(fabs(siren.state.elapsed_s - 2691) < 1);
}

TEST(worlds_differ_by_their_seed_and_within_bounds)
{
    const struct siren_world typical = siren_world_typical(SIREN_FLOOR);
    const struct siren_world one = siren_world_draw(SIREN_FLOOR, 1);
    const struct siren_world again = siren_world_draw(SIREN_FLOOR, 1);
    const struct siren_world other = siren_world_draw(SIREN_FLOOR, 2);
    assert_memory_equal(&one.truth, &again.truth, sizeof(one.truth));
    assert_memory_not_equal(&one.truth, &other.truth, sizeof(one.truth));
    for (uint64_t seed = 0; seed < 200; seed++) {
        const struct siren_world world = siren_world_draw(SIREN_FLOOR, seed);
        const double share = world.truth.compute_s / typical.truth.compute_s;
        assert_true(share >= 0.7 && share <= 1.3);
        assert_true(epoch_model_floor(&world.truth, 587) < world.task.loss_target);
        assert_true(epoch_model_floor(&world.truth, 1093) > world.task.loss_target);
    }
}

TEST(noise_follows_the_episode_and_has_mean_one)
{
    const struct siren_world world = siren_world_typical(SIREN_FLOOR);
    const struct epoch_choice choice = {400, 2048};
    const struct siren one = run_constant(options_of(&world, true, 5), choice);
    const struct siren again = run_constant(options_of(&world, true, 5), choice);
    const struct siren other = run_constant(options_of(&world, true, 6), choice);
    assert_memory_equal(&one.state, &again.state, sizeof(one.state));
    assert_true(one.state.elapsed_s != other.state.elapsed_s);
    double sum = 0;
    for (uint64_t episode = 0; episode < 2000; episode++) {
        struct siren siren;
        siren_begin(&siren, options_of(&world, true, episode));
        siren_step(&siren, choice);
        sum += siren.state.last.total_s / epoch_model_total_s(&world.truth, choice) / 2000;
    }
    assert_true(fabs(sum - 1) < 0.005);
}

TEST(the_budget_is_never_passed)
{
    struct random random;
    random_init(&random, 12);
    for (uint64_t seed = 0; seed < 300; seed++) {
        const struct siren_world world = siren_world_draw(SIREN_FLOOR, seed);
        struct siren siren;
        siren_begin(&siren, options_of(&world, true, seed));
        int64_t cost_micro = 0;
        while (siren.end == SIREN_RUNNING) {
            const uint32_t epoch = siren.state.epoch;
            siren_step(&siren, epoch_round(&world.task.space, exp(8 * random_unit(&random)),
                                           3008 * random_unit(&random)));
            cost_micro += siren.state.epoch > epoch ? siren.state.last.cost_micro : 0;
            if (siren.state.left_micro < 0 || siren_spent_micro(&siren) > siren.task.budget_micro)
                fail_msg("seed %d passes its budget", (int)seed);
        }
        if (siren.end != SIREN_EXHAUSTED)
            assert_int_equal(siren_spent_micro(&siren), cost_micro);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_paper_s_grid_rows_come_out),
        cmocka_unit_test(a_constant_takes_as_long_as_computed_elsewhere),
        cmocka_unit_test(worlds_differ_by_their_seed_and_within_bounds),
        cmocka_unit_test(noise_follows_the_episode_and_has_mean_one),
        cmocka_unit_test(the_budget_is_never_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
